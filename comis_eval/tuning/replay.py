"""What one trial costs: rank the cached candidates again and score them; nothing is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates
from comis_eval.config import Config
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.metrics import ALL, Inputs, Metric, means, parse, weights
from comis_eval.metrics import Objective as Constants
from comis_eval.pipelines.recall_tool import ToolTables
from comis_eval.tuning.answers import Table, answers, enforces
from comis_eval.tuning.measured import Objective

TRIAL_METRICS = (
    "utility", "ndcg@10", "recall@5", "hit@5", "mrr@10", "context_recall", "context_precision",
    "context_ndcg", "context_chars", "abstention", "noise", "trust_inversion@5", "judged@5",
    "policy_leak", "scope_leak", "laundered",
)  # fmt: skip
"""What every trial is scored on besides its objectives."""

LATENCY = "latency_ms"
"""Objective of the cost model's milliseconds a query; no pipeline in this process has another."""

MAX_NEW_SILENCE = 0.01
"""Share of answerable queries that a trial may leave without context beyond the current."""

_CELLS = 80_000
"""How many candidates are ranked at a time."""

_INVERSION = "trust_inversion@5"
_LEAK = "policy_leak"


class Scored(NamedTuple):
    """What one configuration scores on the replayed queries.

    Attributes:
        figures: By metric name, the figure of ``all``; NaN where it is undefined.
        values: One figure an objective, in the order asked for.
        constraints: How far each bound is overstepped; all at most 0 in a feasible trial.
        per_query: The first objective's value of each query, NaN where undefined, shape (q,).
    """

    figures: Mapping[str, float]
    values: tuple[float, ...]
    constraints: Mapping[str, float]
    per_query: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replay:
    """Scores configurations on one table.

    Attributes:
        judge: Labels of the queries in the table, in its order.
        table: Candidates that cover every configuration that is asked about.
        current: The configuration in use: its constants fix the objective, its trust
            inversion and its silence are what a trial may not worsen.
        objectives: Names of metrics, or ``latency_ms``.
    """

    judge: Judge
    table: Table
    current: Config
    objectives: tuple[str, ...] = ("utility",)

    def __call__(self, config: Config) -> Scored:
        """Rank, score and check one configuration.

        Raises:
            CoverageError: If the configuration reaches outside the table.
        """
        inputs, latencies = self.answered(config)
        values = {metric: metric(inputs) for metric in self.metrics}
        figures = {name: mean.value for name, mean in means(values, inputs)[ALL].items()}
        figures[LATENCY] = float(latencies.mean()) if len(latencies) else 0.0
        first = self.objectives[0]
        return Scored(
            figures,
            tuple(figures[name] for name in self.objectives),
            self._constraints(figures, inputs),
            latencies if first == LATENCY else values[self._metric(first)],
        )

    def answered(self, config: Config) -> tuple[Inputs, NDArray[np.float64]]:
        """What metrics need to know of a configuration's answers, and modelled latencies."""
        return self._judged(config, self._depth)

    def whole(self, config: Config) -> Inputs:
        """The same with rankings to their ends, for metrics that look deeper than a trial's."""
        return self._judged(config, None)[0]

    def _judged(self, config: Config, depth: int | None) -> tuple[Inputs, NDArray[np.float64]]:
        found = answers(self._blocks, config, depth)
        inputs = self.judge.shown_inputs(
            found.shown, self.table.facts, config, self.constants, chars=found.chars
        )
        return inputs, found.latencies

    @cached_property
    def _blocks(self) -> list[Candidates] | ToolTables:
        """The table in parts whose arrays stay in the processor's cache: twice as fast."""
        if isinstance(self.table, ToolTables):
            return self.table
        queries, width = self.table.rows.shape
        step = max(1, _CELLS // max(width, 1))
        if queries <= step:
            return [self.table]
        return [
            self.table.subset(np.arange(start, min(start + step, queries)))
            for start in range(0, queries, step)
        ]

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """What is scored: the objectives, then what every trial reports."""
        names = [name for name in self.objectives if name != LATENCY]
        return tuple(parse(name) for name in dict.fromkeys([*names, *TRIAL_METRICS]))

    @cached_property
    def constants(self) -> Constants:
        """Constants of utility: those of the current configuration, never of a trial."""
        return objective_of(self.current)

    @cached_property
    def query_weights(self) -> NDArray[np.float64]:
        """What each query weighs in the first objective's figure, shape (q,)."""
        name = self.objectives[0]
        if name == LATENCY:
            return np.full(len(self.table.queries), 1.0 / len(self.table.queries))
        inputs, _ = self._standing
        metric = self._metric(name)
        return weights(metric, metric(inputs), inputs)

    @cached_property
    def _standing(self) -> tuple[Inputs, NDArray[np.float64]]:
        return self.answered(self.current)

    @cached_property
    def _current_figures(self) -> Mapping[str, float]:
        inputs, _ = self._standing
        found = {self._metric(name): self._metric(name)(inputs) for name in (_INVERSION, _LEAK)}
        return {name: mean.value for name, mean in means(found, inputs)[ALL].items()}

    @cached_property
    def _depth(self) -> int | None:
        """How far down rankings are looked at: the deepest cut, all of it for uncut metrics."""
        on_ranking = [m for m in self.metrics if m.definition.on == "ranking"]
        if any(metric.k is None for metric in on_ranking):
            return None
        return max((metric.k or 0 for metric in on_ranking), default=1)

    def _constraints(self, figures: Mapping[str, float], inputs: Inputs) -> dict[str, float]:
        standing = self._current_figures
        inversion = figures[_INVERSION] - standing[_INVERSION]
        current, _ = self._standing
        promised = "trust" in enforces(self.table)
        # Who promises nothing of trust lets in what it lets in now, and nothing more.
        leaks = (
            {_LEAK: figures[_LEAK]}
            if promised
            else {"scope_leak": figures["scope_leak"], _LEAK: figures[_LEAK] - standing[_LEAK]}
        )
        return leaks | {
            "laundered": figures["laundered"],
            "trust_inversion": 0.0 if np.isnan(inversion) else inversion,
            "silence": _silence(inputs) - _silence(current) - MAX_NEW_SILENCE,
        }

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)


def _silence(inputs: Inputs) -> float:
    """Share of answerable queries with an empty context; 0 without answerable queries."""
    answerable = inputs.ideal.answerable
    if inputs.context is None or not answerable.any():
        return 0.0
    return float((inputs.context.length[answerable] == 0).mean())


def objectives_of(names: Sequence[str]) -> tuple[Objective, ...]:
    """Objectives by name, with their directions.

    Raises:
        MetricError: If one is neither a metric nor ``latency_ms``.
    """
    return tuple(
        Objective(name, "maximize" if higher_is_better(name) else "minimize")
        for name in dict.fromkeys(names)
    )


def higher_is_better(name: str) -> bool:
    """Which way is up for an objective."""
    return name != LATENCY and parse(name).definition.higher_is_better
