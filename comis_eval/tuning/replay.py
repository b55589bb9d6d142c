"""What one trial costs: rank the cached candidates again and score them; nothing is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates, Rankings
from comis_eval.config import Config
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.metrics import ALL, Inputs, Metric, means, parse, weights
from comis_eval.metrics import Objective as Constants
from comis_eval.pipelines.rank import rank
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

_INVERSION = "trust_inversion@5"


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
    table: Candidates
    current: Config
    objectives: tuple[str, ...] = ("utility",)

    def __call__(self, config: Config) -> Scored:
        """Rank, score and check one configuration.

        Raises:
            CoverageError: If the configuration reaches outside the table.
        """
        rankings, inputs = self.answered(config)
        values = {metric: metric(inputs) for metric in self.metrics}
        figures = {name: mean.value for name, mean in means(values, inputs)[ALL].items()}
        figures[LATENCY] = modelled_latency(rankings)
        per_query = modelled_latencies(rankings)
        if self.objectives[0] != LATENCY:
            per_query = values[self._metric(self.objectives[0])]
        return Scored(
            figures,
            tuple(figures[name] for name in self.objectives),
            self._constraints(figures, inputs),
            per_query,
        )

    def answered(self, config: Config) -> tuple[Rankings, Inputs]:
        """The rankings of a configuration and what metrics need to know of them."""
        rankings = rank(self.table, config)
        return rankings, self.judge.inputs(
            rankings, self.constants, depth=self._depth, traced=False
        )

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
        _, inputs = self._standing
        metric = self._metric(name)
        return weights(metric, metric(inputs), inputs)

    @cached_property
    def _standing(self) -> tuple[Rankings, Inputs]:
        return self.answered(self.current)

    @cached_property
    def _current_figures(self) -> Mapping[str, float]:
        _, inputs = self._standing
        metric = self._metric(_INVERSION)
        return {_INVERSION: means({metric: metric(inputs)}, inputs)[ALL][_INVERSION].value}

    @cached_property
    def _depth(self) -> int | None:
        """How far down rankings are looked at: the deepest cut, all of it for uncut metrics."""
        on_ranking = [m for m in self.metrics if m.definition.on == "ranking"]
        if any(metric.k is None for metric in on_ranking):
            return None
        return max((metric.k or 0 for metric in on_ranking), default=1)

    def _constraints(self, figures: Mapping[str, float], inputs: Inputs) -> dict[str, float]:
        standing = self._current_figures[_INVERSION]
        inversion = figures[_INVERSION] - standing
        _, current = self._standing
        return {
            "policy_leak": figures["policy_leak"],
            "laundered": figures["laundered"],
            "trust_inversion": 0.0 if np.isnan(inversion) else inversion,
            "silence": _silence(inputs) - _silence(current) - MAX_NEW_SILENCE,
        }

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)


def modelled_latencies(rankings: Rankings) -> NDArray[np.float64]:
    """What the cost model says a rerank takes, ms, shape (q,); 0 where none was attempted."""
    pool = rankings.rerank_pool.sum(axis=1)
    cost = rankings.config.harness.reranker
    return np.where(pool > 0, cost.fixed_ms + cost.ms_per_candidate * pool, 0.0)


def modelled_latency(rankings: Rankings) -> float:
    """Mean of the modelled latencies, ms; 0 for no queries."""
    each = modelled_latencies(rankings)
    return float(each.mean()) if len(each) else 0.0


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
