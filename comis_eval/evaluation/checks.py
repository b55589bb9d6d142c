"""What an evaluation file may hold in its parts, and what it says twice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.evaluation.weights import weights_of
from comis_eval.metrics import ALL, Mean, Values, parse

_COUNTS = ("queries", "scored", "unanswerable", "failed", "unknown_ids")
_KINDS = ("trust", "scope")
_COUNTED = ("policy_leak", "scope_leak", "laundered", "resurrected")
_PERCENTILES = ("p50", "p95", "p99")


def check_parts(given: Mapping[str, Any]) -> None:
    """Check what the parts of a file hold.

    Raises:
        KeyError: If something is lacking.
        TypeError: If something is of another kind, or beyond what it can be.
    """
    for key in ("name", "version", "fingerprint", "split"):
        _text(f"dataset.{key}", given["dataset"][key])
    for key in _COUNTS:
        _count(f"counts.{key}", given["counts"][key])
    for lane, queries in given["lanes"].items():
        _count(f"lanes.{lane}", queries, most=given["counts"]["queries"])
    for key in _PERCENTILES if given["latency_ms"] is not None else ():
        _number(f"latency_ms.{key}", given["latency_ms"][key])
    for kind in given["enforces"]:
        if kind not in _KINDS:
            raise TypeError(f"enforces holds {kind!r}; there are {', '.join(_KINDS)}")
    for number, leak in enumerate(given["leaks"]):
        for key in ("query_id", "memory_id"):
            _text(f"leaks[{number}].{key}", leak[key])
        if leak["stage"] is not None:  # a live system does not show its stages
            _text(f"leaks[{number}].stage", leak["stage"])
        if leak["why"] not in _KINDS:
            raise TypeError(f"leaks[{number}].why is {leak['why']!r}")
    _check_settings(given["metrics"])


def _check_settings(settings: Mapping[str, Any]) -> None:
    for key in ("k0", "c0"):
        _count(f"metrics.{key}", settings[key], least=1)
    _number("metrics.utility.cost", settings["utility"]["cost"])
    _number(
        "metrics.utility.unanswerableWeight", settings["utility"]["unanswerableWeight"], most=1.0
    )
    _count("metrics.relevance_level", settings["relevance_level"], least=1)
    _text("metrics.gain", settings["gain"])
    headline = settings["headline"]
    if not isinstance(headline, list) or not all(isinstance(name, str) for name in headline):
        raise TypeError("metrics.headline must be a list of texts")


def check_consistent(evaluation: Evaluation) -> None:
    """Compare what a file says twice: its columns' lengths, its figures, its leaks.

    Raises:
        ValueError: Naming what contradicts what.
    """
    queries = len(evaluation.query_ids)
    if len(set(evaluation.query_ids)) < queries:
        raise ValueError("rows.query_id holds an id twice")
    columns: dict[str, Sequence[str] | Values] = {
        "group": evaluation.groups,
        "category": evaluation.categories,
        **evaluation.values,
    }
    for name, column in columns.items():
        if len(column) != queries:
            raise ValueError(f"rows.{name} has {len(column)} entries for {queries} queries")
    if evaluation.counts["queries"] != queries:
        raise ValueError(f"counts.queries is {evaluation.counts['queries']}, rows are {queries}")
    _check_counted(evaluation)
    _check_means(evaluation)
    _check_leaks(evaluation)


def _check_counted(evaluation: Evaluation) -> None:
    """What counts memories is a whole number, so that a sum cannot hide one."""
    for name in _COUNTED:
        for query_id, value in zip(
            evaluation.query_ids, evaluation.values.get(name, ()), strict=False
        ):
            if not math.isnan(value) and not (0 <= value < 2**53 and value == int(value)):
                raise ValueError(f"rows.{name} is {value:g} for {query_id!r}: no count")


def _check_means(evaluation: Evaluation) -> None:
    lacking = sorted(evaluation.values.keys() - evaluation.means.get(ALL, {}).keys())
    if lacking:
        raise ValueError(f"means.all lacks {', '.join(lacking)}, of which there are rows")
    categories = np.array(evaluation.categories, dtype=object)
    headline = np.isin(categories, evaluation.settings["headline"])
    for category, row in evaluation.means.items():
        mine = headline if category == ALL else categories == category
        for name, mean in row.items():
            found = _recomputed(evaluation, name, mine, whole=category == ALL)
            if found is not None and not _alike(mean, found):
                raise ValueError(
                    f"means.{category}.{name} is {mean.value:.6g} over {mean.n} queries, "
                    f"its rows give {found.value:.6g} over {found.n}"
                )


def _recomputed(
    evaluation: Evaluation, name: str, members: NDArray[np.bool_], *, whole: bool
) -> Mean | None:
    """A figure from its rows; None where they do not tell all that it rests on."""
    column = evaluation.values[name]
    try:
        definition = parse(name).definition
    except MetricError:
        return None  # a metric of a later version
    if whole and definition.reduce == "utility":
        return _utility(evaluation, column)
    mine = column if whole and not definition.headline_only else column[members]
    defined = mine[~np.isnan(mine)]
    if not len(defined):
        return Mean(math.nan, 0)
    total = float(defined.sum())
    return Mean(total if definition.reduce == "total" else total / len(defined), len(defined))


def _utility(evaluation: Evaluation, column: Values) -> Mean | None:
    if not any(_tells_answerable(name) for name in evaluation.values):
        return None
    shares = weights_of(evaluation, "utility")
    counted = shares > 0
    n = int(np.count_nonzero(counted))
    return Mean(float(shares[counted] @ column[counted]) if n else math.nan, n)


def _tells_answerable(name: str) -> bool:
    try:
        return parse(name).definition.queries in ("answerable", "unanswerable")
    except MetricError:
        return False


def _alike(a: Mean, b: Mean) -> bool:
    same = math.isclose(a.value, b.value, rel_tol=1e-9, abs_tol=1e-12)
    return a.n == b.n and (same or (math.isnan(a.value) and math.isnan(b.value)))


def _check_leaks(evaluation: Evaluation) -> None:
    """A leak that is listed stands in its column, and the other way round."""
    for name, kinds in (("policy_leak", _KINDS), ("scope_leak", ("scope",))):
        if name not in evaluation.values:
            continue
        counted = {
            query_id
            for query_id, value in zip(evaluation.query_ids, evaluation.values[name], strict=True)
            if value > 0
        }
        listed = {leak["query_id"] for leak in evaluation.leaks if leak["why"] in kinds}
        if counted != listed:
            raise ValueError(
                f"leaks lists {len(listed)} queries, rows.{name} counts {len(counted)}"
                + "".join(
                    f"; {query_id!r} is in one only" for query_id in sorted(counted ^ listed)[:1]
                )
            )


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}")


def _count(name: str, value: object, *, least: int = 0, most: float = math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise TypeError(f"{name} must be an integer in [{least}, {most}], got {value!r}")


def _number(name: str, value: object, *, most: float = math.inf) -> None:
    kind = isinstance(value, int | float) and not isinstance(value, bool)
    if not kind or not 0 <= value <= most or not math.isfinite(value):  # type: ignore[operator,arg-type]
        raise TypeError(f"{name} must be a finite number in [0, {most}], got {value!r}")
