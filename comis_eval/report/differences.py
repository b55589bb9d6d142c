"""Two evaluations of the same queries: what differs, for which queries, from which stage on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL
from comis_eval.report.trace import Trace
from comis_eval.report.weights import is_total, lower_is_better, weights_of
from comis_eval.stats import bootstrap_ci
from comis_eval.text import printable
from comis_eval.types import Fate

BEFORE_RANKING = (Fate.SCOPE_FILTERED, Fate.EXPIRED, Fate.BEYOND_LIMIT)
"""Fates that keep a candidate out of the list that is scored."""

_RANKED = (Fate.INCLUDED, Fate.OVER_BUDGET, Fate.BEYOND_MAX_RESULTS)


class Difference(NamedTuple):
    """One metric: both figures, second minus first with its 95% interval by group, and n pairs.

    For a metric that is a sum over queries the interval is NaN: nothing is averaged.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` where the interval leaves out 0, else nothing."""
        if not (self.low > 0 or self.high < 0):
            return ""
        return "better" if (self.low > 0) != lower_is_better(self.metric) else "worse"


class Moved(NamedTuple):
    """One query whose value changed.

    Attributes:
        query: Its position.
        first, second: The two values.
        stage: The first stage whose outcome differs; None when a trace is missing.
    """

    query: int
    first: float
    second: float
    stage: str | None


@dataclass(frozen=True)
class Movers:
    """The queries that lost and gained most, the largest first; ties in file order."""

    metric: str
    lost: tuple[Moved, ...]
    gained: tuple[Moved, ...]


def check_comparable(first: Evaluation, second: Evaluation) -> None:
    """Refuse two evaluations that do not answer the same queries of the same dataset.

    Raises:
        EvaluationError: Naming the difference.
    """
    one, two = first.dataset.get("fingerprint"), second.dataset.get("fingerprint")
    if one != two:
        raise EvaluationError(
            "the two evaluations are of different datasets: "
            f"{_name(first)} and {_name(second)}; evaluate both on the same one"
        )
    if first.query_ids != second.query_ids:
        only = [sorted(set(a) - set(b)) for a, b in _both_ways(first.query_ids, second.query_ids)]
        told = ", ".join(
            f"{len(ids)} only in the {which} (as '{printable(ids[0], limit=40)}')"
            for which, ids in zip(("first", "second"), only, strict=True)
            if ids
        )
        raise EvaluationError(
            f"the two evaluations answer different queries: {told or 'in another order'}; evaluate "
            "both with the same --split and --seed"
        )


def differences(
    first: Evaluation, second: Evaluation, metrics: Sequence[str], *, seed: int = 0
) -> tuple[Difference, ...]:
    """Pair the metrics that both have, over the queries where both values are defined."""
    shared = [name for name in metrics if name in first.values and name in second.values]
    return tuple(_difference(first, second, name, seed) for name in shared)


def _difference(first: Evaluation, second: Evaluation, metric: str, seed: int) -> Difference:
    paired = second.values[metric] - first.values[metric]
    weights = weights_of(first, metric)
    one, two = (evaluation.means[ALL][metric].value for evaluation in (first, second))
    counted = ~np.isnan(paired) & (weights > 0)
    low = high = nan
    if counted.any() and not is_total(metric):
        found = bootstrap_ci(paired, first.groups, weights, first.categories, seed=seed)
        low, high = float(found.low[0]), float(found.high[0])
    return Difference(metric, one, two, two - one, low, high, int(counted.sum()))


def movers(
    first: Evaluation,
    second: Evaluation,
    metric: str,
    traces: tuple[Trace | None, Trace | None],
    *,
    most: int = 10,
) -> Movers:
    """Find the queries that moved most on a metric, and where their ways part."""
    a, b = first.values[metric], second.values[metric]
    gain = np.nan_to_num(a - b if lower_is_better(metric) else b - a, nan=0.0)
    order = np.argsort(gain, kind="stable")
    lost = [place for place in order.tolist() if gain[place] < 0][:most]
    gained = [place for place in np.argsort(-gain, kind="stable").tolist() if gain[place] > 0]

    def moved(query: int) -> Moved:
        one, two = traces
        stage = None if one is None or two is None else parting(one, two, query)
        return Moved(query, float(a[query]), float(b[query]), stage)

    return Movers(metric, tuple(map(moved, lost)), tuple(map(moved, gained[:most])))


def parting(first: Trace, second: Trace, query: int) -> str | None:
    """The first stage after which two traces of a query differ; None when none does.

    Orders and memories are compared, not scores, except a reranker's. Candidates that an
    earlier stage already dropped do not count in a later one.
    """
    one, two = _outcomes(first, query), _outcomes(second, query)
    return next((stage for stage in one if one[stage] != two[stage]), None)


def _outcomes(trace: Trace, query: int) -> dict[str, object]:
    """What each stage left of one query."""
    rows = range(*trace.rows(query).indices(len(trace.fates)))
    id_of, fates = trace.memory_ids, trace.fates
    final, fused, reranker = (trace.numbers[name] for name in ("final", "fused", "reranker"))
    scored = [row for row in rows if fates[row] not in BEFORE_RANKING]
    kept = [row for row in scored if fates[row] != Fate.BELOW_MIN_SCORE]
    return {
        "search": {
            lane: [id_of[row] for row in sorted(rows, key=lambda r: ranks[r]) if ranks[row]]
            for lane, ranks in trace.ranks.items()
        },
        "fuse": [id_of[row] for row in sorted(kept, key=lambda r: (-fused[r], id_of[r]))],
        "rerank": {id_of[row]: reranker[row] for row in kept if not np.isnan(reranker[row])},
        "score": [id_of[row] for row in sorted(kept, key=lambda r: (-final[r], id_of[r]))],
        "trust": {id_of[row] for row in kept if fates[row] == Fate.TRUST_FILTERED},
        "dedup": [id_of[row] for row in rows if fates[row] in _RANKED],
        "budget": [id_of[row] for row in rows if fates[row] == Fate.INCLUDED],
    }


def changed_settings(
    first: Mapping[str, object], second: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Settings by dotted path that differ between two configurations, with both values."""
    one, two = dict(_leaves(first)), dict(_leaves(second))
    paths = dict.fromkeys((*one, *two))
    return {p: (one.get(p), two.get(p)) for p in paths if one.get(p) != two.get(p)}


def _leaves(tree: Mapping[str, object], above: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in tree.items():
        path = f"{above}{key}"
        found += (
            _leaves(value, f"{path}.") if isinstance(value, dict) and value else [(path, value)]
        )
    return found


def _both_ways(
    a: Sequence[str], b: Sequence[str]
) -> tuple[tuple[Sequence[str], Sequence[str]], tuple[Sequence[str], Sequence[str]]]:
    return (a, b), (b, a)


def _name(evaluation: Evaluation) -> str:
    name, mark = (str(evaluation.dataset.get(key)) for key in ("name", "fingerprint"))
    return f"'{printable(name, limit=64)}' ({printable(mark, limit=13)})"
