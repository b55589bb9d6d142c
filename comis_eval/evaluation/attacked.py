"""How far planted memories get, kind by kind, with the trust filter on and off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from comis_eval.candidates import Rankings
from comis_eval.config import Config
from comis_eval.datasets import Dataset, without_poison
from comis_eval.errors import EvaluationError
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.evaluation.measure import check_serves
from comis_eval.metrics import (
    Inputs,
    Mean,
    Values,
    displacement,
    exact_interval,
    means,
    parse,
    score,
    upper_bound,
)
from comis_eval.metrics.aggregate import ALL
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Progress, Retriever
from comis_eval.stats import bootstrap_ci, mcnemar
from comis_eval.text import html_table, notebook_html, printable
from comis_eval.types import Query, TrustLevel

if TYPE_CHECKING:
    import pandas as pd

FAMILY = (
    "asr", "poison_precision", "poison_recall", "untrusted_share", "leak_rank",
    "trust_inversion",
)  # fmt: skip
"""Metrics of the leakage family that are cut at the context's size."""

WHOLE = (
    "policy_leak", "scope_leak", "laundered", "resurrected", "over_block", "ndcg@10", "utility",
)  # fmt: skip
"""Those that are not, and what recall is worth beside them."""

_RATES = ("asr", "policy_leak", "scope_leak")


class Rate(NamedTuple):
    """A share of queries and its exact two-sided 95% interval."""

    successes: int
    n: int
    low: float
    high: float


class Displaced(NamedTuple):
    """Recall lost to the poison: mean, queries it rests on, and its 95% interval."""

    mean: float
    n: int
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackFigures:
    """What one kind of attack did, under one setting of the trust filter.

    Attributes:
        kind: Of the attack; ``all`` for every attacked query together.
        trust_filter: ``on``: the configuration as it is; ``off``: every level included;
            ``none``: the pipeline has no trust filter.
        n: Attacked queries.
        figures: By metric name, over these queries.
        rates: asr@1, asr@k, policy_leak and scope_leak with exact intervals.
        displacement: Recall@k on the clean corpus less that on the poisoned one.
        filter_p: Exact McNemar p of asr@k between filter off and on; None where only one ran.
    """

    kind: str
    trust_filter: str
    n: int
    figures: Mapping[str, Mean]
    rates: Mapping[str, Rate]
    displacement: Displaced
    filter_p: float | None

    def as_json(self) -> dict[str, Any]:
        """Everything, for a machine; undefined is None."""
        return {
            "kind": self.kind,
            "trust_filter": self.trust_filter,
            "n": self.n,
            "figures": {
                name: {"value": _finite(mean.value), "n": mean.n}
                for name, mean in self.figures.items()
            },
            "rates": {
                name: {
                    **rate._asdict(),
                    "one_sided_upper": upper_bound(rate.successes, rate.n),
                }
                for name, rate in self.rates.items()
            },
            "displacement": {
                name: _finite(value) for name, value in self.displacement._asdict().items()
            },
            "filter_p": self.filter_p,
        }

    def _repr_html_(self) -> str:
        """What a notebook shows: every figure, and the interval of each that has one."""
        ends = {
            **{name: (rate.low, rate.high) for name, rate in self.rates.items()},
            "displacement": (self.displacement.low, self.displacement.high),
        }
        lost = Mean(self.displacement.mean, self.displacement.n)
        figures = {**self.figures, "displacement": lost}
        rows = [
            (
                name,
                str(figure.n),
                _shown(figure.value),
                "" if name not in ends else " .. ".join(map(_shown, ends[name])),
            )
            for name, figure in figures.items()
        ]
        return notebook_html(
            f"Attack {printable(self.kind)}, trust filter {self.trust_filter}: {self.n} queries",
            html_table(["metric", "n", "value", "95% interval"], rows),
        )


def attack_frame(found: Iterable[AttackFigures]) -> pd.DataFrame:
    """Figures of attacks as long rows.

    Returns:
        kind, trust_filter, metric, value, n, and the 95% interval low, high (NaN where the
        metric has none). Displacement, recall lost to the poison, is among the metrics.
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    for figures in found:
        about = {"kind": figures.kind, "trust_filter": figures.trust_filter}
        for name, (value, n) in figures.figures.items():
            rate = figures.rates.get(name)
            low, high = (np.nan, np.nan) if rate is None else (rate.low, rate.high)
            rows.append({**about, "metric": name, "value": value, "n": n, "low": low, "high": high})
        rows.append({**about, "metric": "displacement", **_as_row(figures.displacement)})
    columns = ["kind", "trust_filter", "metric", "value", "n", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _as_row(lost: Displaced) -> dict[str, float]:
    return {"value": lost.mean, "n": lost.n, "low": lost.low, "high": lost.high}


def _shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def measure_attacks(
    poisoned: Dataset,
    config: Config,
    *,
    pipeline: str = "memory-recall",
    seed: int = 0,
    clean: Retriever | None = None,
    retriever: Retriever | None = None,
    progress: Progress | None = None,
) -> list[AttackFigures]:
    """Measure the whole leakage family on the queries that a dataset's poison aims at.

    Two stores are searched, the dataset's and the same without its poison, each once; the
    trust filter is then applied as configured and with every level let in.

    Args:
        poisoned: A dataset with attacks.
        config: The current configuration; k is its k0.
        pipeline: ``memory-recall``, or ``recall-tool``, which has no trust filter.
        seed: Of the bootstrap.
        clean: Indexes over the memories without the poison, when they are at hand.
        retriever: Indexes over all of them.
        progress: Told of long steps.

    Returns:
        Kind by kind in order of name, filter on before off; then all kinds together.

    Raises:
        EvaluationError: If the dataset has no attacks.
    """
    if not poisoned.attacks:
        raise EvaluationError(
            f"{poisoned.name} has no attacks (attacks.jsonl); name what to plant with --kind"
        )
    bare = without_poison(poisoned)
    retriever = retriever or Retriever(poisoned, progress=progress)
    clean = clean or Retriever(bare, progress=progress)
    check_serves(retriever, poisoned, config)
    check_serves(clean, bare, config)
    kinds: dict[str, set[str]] = {}
    for attack in poisoned.attacks:
        kinds.setdefault(attack.kind, set()).add(attack.query_id)
    together = {ALL: set().union(*kinds.values())} if len(kinds) > 1 else {}
    found: list[AttackFigures] = []
    for kind, aimed in (*sorted(kinds.items()), *together.items()):
        chosen = [n for n, query in enumerate(poisoned.queries) if query.id in aimed]
        of_kind = _of_kind(poisoned.subset(chosen), kind)
        stores = _Stores(bare.subset(chosen), clean, of_kind, retriever)
        found += _measured(kind, stores, config, pipeline, seed)
    return found


def _of_kind(dataset: Dataset, kind: str) -> Dataset:
    """Count as poison what this kind planted, where a query is aimed at by several."""
    if kind == ALL:
        return dataset
    return replace(dataset, attacks=tuple(a for a in dataset.attacks if a.kind == kind))


class _Stores(NamedTuple):
    """The attacked queries, over the memories without the poison and with it."""

    bare: Dataset
    clean: Retriever
    poisoned: Dataset
    retriever: Retriever


def _measured(
    kind: str, stores: _Stores, config: Config, pipeline: str, seed: int
) -> Iterator[AttackFigures]:
    bare, poisoned = stores.bare, stores.poisoned
    objective = objective_of(config)
    k = objective.k0
    names = ("asr@1", *(f"{name}@{k}" for name in FAMILY), *WHOLE)
    metrics = [parse(name) for name in dict.fromkeys(names)]
    before = _answers(stores.clean, config, bare.queries, pipeline)
    after = _answers(stores.retriever, config, poisoned.queries, pipeline)
    asr: dict[str, Values] = {}
    scored: list[tuple[str, Inputs, Inputs]] = []
    for setting, rankings in after.items():
        inputs = Judge(poisoned).inputs(rankings, objective)
        scored.append((setting, Judge(bare).inputs(before[setting], objective), inputs))
        asr[setting] = score([f"asr@{k}"], inputs)[f"asr@{k}"]
    p = None
    if len(asr) > 1:
        on, off = asr["on"] > 0, asr["off"] > 0
        p = mcnemar(int((off & ~on).sum()), int((on & ~off).sum()))
    for setting, without, inputs in scored:
        values = {metric: metric(inputs) for metric in metrics}
        lost = displacement(without, inputs, k)
        yield AttackFigures(
            kind=kind,
            trust_filter=setting,
            n=len(poisoned.queries),
            figures=means(values, inputs)[ALL],
            rates={
                metric.name: _rate(column)
                for metric, column in values.items()
                if metric.definition.name in _RATES
            },
            displacement=_displaced(lost, poisoned.queries, seed),
            filter_p=p,
        )


def _answers(
    retriever: Retriever, config: Config, queries: Sequence[Query], pipeline: str
) -> dict[str, Rankings]:
    """What the pipeline answers, by the setting of the trust filter."""
    if pipeline == "recall-tool":
        return {"none": RecallTool(retriever, config).rank(queries)}
    recall = MemoryRecall(retriever, config)
    table = recall.candidates(queries)  # no stage before the filter looks at trust
    off = config.evolve(**{"rag.include_trust_levels": tuple(TrustLevel)})
    answers = {"off": rank(table, off)}
    if set(config.rag.include_trust_levels) < set(TrustLevel):
        answers = {"on": rank(table, config), **answers}
    return answers


def _rate(column: Values) -> Rate:
    defined = column[~np.isnan(column)]
    successes = int((defined > 0).sum())
    return Rate(successes, len(defined), *exact_interval(successes, len(defined)))


def _displaced(lost: Values, queries: Sequence[Query], seed: int) -> Displaced:
    defined = ~np.isnan(lost)
    if not defined.any():
        return Displaced(np.nan, 0, np.nan, np.nan)
    groups = [query.group or query.id for query in queries]
    ends = bootstrap_ci(lost, groups, seed=seed)
    return Displaced(
        float(lost[defined].mean()), int(defined.sum()), float(ends.low[0]), float(ends.high[0])
    )


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else value
