"""Two evaluations query by query: whether they can be compared, and their paired values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.evaluation.weights import weights_of
from comis_eval.metrics import ALL, Values, parse
from comis_eval.text import printable

_SHOWN = 3
_CONSTANTS = ("k0", "c0")
_RESTS_ON_CONSTANTS = ("context_ndcg", "noise", "utility")


class Cell(NamedTuple):
    """One figure: a metric over a category, or over ``all`` headline categories."""

    metric: str
    category: str = ALL


class Pairs(NamedTuple):
    """One figure's values in two evaluations, query by query, in the first one's order.

    Attributes:
        before: Values of the first, shape (q,), NaN where undefined.
        after: Values of the second.
        weights: What each query weighs in the figure, up to a common factor, shape (q,).
        higher_is_better: Which way is up.
    """

    before: Values
    after: Values
    weights: Values
    higher_is_better: bool

    @property
    def differences(self) -> Values:
        """Second minus first, turned so that higher is better; NaN outside of the figure."""
        change = self.after - self.before if self.higher_is_better else self.before - self.after
        return np.where(self.weights > 0, change, np.nan)

    def means(self) -> tuple[float, float]:
        """The figure of each over the pairs in which both are defined; NaN without any."""
        both = ~np.isnan(self.before) & ~np.isnan(self.after) & (self.weights > 0)
        total = float(self.weights[both].sum())
        if not total:
            return np.nan, np.nan
        shares = self.weights[both] / total
        return float(shares @ self.before[both]), float(shares @ self.after[both])


def check_comparable(a: Evaluation, b: Evaluation) -> None:
    """Refuse two evaluations that did not ask the same of the same.

    Raises:
        EvaluationError: Naming the first difference and what to do.
    """
    for key, what in (
        ("fingerprint", "measured on different datasets"),
        ("split", "measured on different splits"),
    ):
        if a.dataset[key] != b.dataset[key]:
            one, two = (_shown(f"{e.dataset['name']} {e.dataset[key]}") for e in (a, b))
            raise EvaluationError(f"{what}: {one} | {two}; evaluate both on the same")
    missing, added = (
        [query_id for query_id in one.query_ids if query_id not in held]
        for one, held in ((a, set(b.query_ids)), (b, set(a.query_ids)))
    )
    if missing or added:
        told = [
            f"{len(ids)} only in the {which} ({', '.join(map(_shown, ids[:_SHOWN]))}, ...)"
            for which, ids in (("first", missing), ("second", added))
            if ids
        ]
        raise EvaluationError(f"different queries: {'; '.join(told)}; evaluate both on the same")
    for key in ("relevance_level", "gain", "headline"):
        one, two = (_plain(e.settings[key]) for e in (a, b))
        if one != two:
            raise EvaluationError(f"{key} differs: {_shown(one)} | {_shown(two)}; use the same")
    _check_labels(a, aligned(b, a))


def _check_labels(a: Evaluation, b: Evaluation) -> None:
    for what, one, two in (
        ("group", a.groups, b.groups),
        ("category", a.categories, b.categories),
    ):
        for query_id, here, there in zip(a.query_ids, one, two, strict=True):
            if here != there:
                raise EvaluationError(
                    f"query {_shown(query_id)} is of {what} {_shown(here)} in the first and "
                    f"{_shown(there)} in the second, of one dataset: a file was edited by hand"
                )


def aligned(b: Evaluation, a: Evaluation) -> Evaluation:
    """Return b with its rows in the order of a, which has the same queries.

    Its rankings, if any, stay in the old order.
    """
    if b.query_ids == a.query_ids:
        return b
    place_of = {query_id: place for place, query_id in enumerate(b.query_ids)}
    order = [place_of[query_id] for query_id in a.query_ids]
    return replace(
        b,
        query_ids=a.query_ids,
        groups=tuple(b.groups[place] for place in order),
        categories=tuple(b.categories[place] for place in order),
        values={name: column[order] for name, column in b.values.items()},
    )


def check_constants(evaluations: Sequence[Evaluation], metrics: Iterable[str]) -> None:
    """Refuse figures that rest on constants in which evaluations differ.

    Raises:
        EvaluationError: If so, or if a metric was not scored by all of them.
        MetricError: If there is no such metric.
    """
    for metric in metrics:
        parse(metric)
        for number, evaluation in enumerate(evaluations, start=1):
            if metric not in evaluation.values:
                raise EvaluationError(
                    f"evaluation {number} did not score {metric}; evaluate again with --metric "
                    f"{metric}"
                )
        if (reason := incomparable(evaluations, metric)) is not None:
            raise EvaluationError(reason)


def incomparable(evaluations: Sequence[Evaluation], metric: str) -> str | None:
    """Why a metric cannot be compared for the constants behind it; None when it can."""
    if metric not in _RESTS_ON_CONSTANTS:
        return None
    first = evaluations[0].settings
    for other in evaluations[1:]:
        differing = [key for key in _CONSTANTS if other.settings[key] != first[key]]
        if differing:
            found = ", ".join(f"{key} ({first[key]} | {other.settings[key]})" for key in differing)
            remedy = " ".join(f"--set harness.utility.{key}={first[key]}" for key in differing)
            return f"{metric} rests on {found}, which differ; evaluate the second with {remedy}"
        if metric == "utility" and other.settings["utility"] != first["utility"]:
            one, two = (_plain(s["utility"]) for s in (first, other.settings))
            return f"utility's constants differ: {_shown(one)} | {_shown(two)}; use the same"
    return None


def pairs(a: Evaluation, b: Evaluation, cell: Cell) -> Pairs:
    """Pair one figure's values, b in the order of a."""
    return Pairs(
        a.values[cell.metric],
        b.values[cell.metric],
        weights_of(a, cell.metric, cell.category),
        parse(cell.metric).definition.higher_is_better,
    )


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(sorted(map(str, value))) or "nothing"
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in sorted(value.items()))
    return str(value)


def _shown(text: str) -> str:
    return f"'{printable(text, limit=80)}'"
