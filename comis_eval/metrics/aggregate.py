"""From values per query to long rows, to means by category, and to the weights behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.metrics.definition import Metric
from comis_eval.metrics.lists import Inputs, Values
from comis_eval.metrics.utility import utility_weights

ALL = "all"
"""The name under which the headline categories are averaged together."""


class Row(NamedTuple):
    """One value of one metric for one query; None where it is undefined."""

    query_id: str
    metric: str
    value: float | None


class Mean(NamedTuple):
    """A figure of a set and how many queries it rests on; NaN when none does."""

    value: float
    n: int


def long_rows(query_ids: Sequence[str], values: Mapping[str, Values]) -> Iterator[Row]:
    """Yield one row a metric and query, undefined ones included, metric after metric."""
    for metric, column in values.items():
        for query_id, value in zip(query_ids, column.tolist(), strict=True):
            yield Row(query_id, metric, None if np.isnan(value) else value)


def means(values: Mapping[Metric, Values], inputs: Inputs) -> dict[str, dict[str, Mean]]:
    """Reduce values to one figure a category and metric, and one for ``all``.

    ``all`` averages over the queries of the headline categories (every query for what
    must be 0 everywhere). Utility there is the weighted sum of ``utility_weights``; within
    a category it is the plain mean, since weighing categories means nothing inside one.

    Args:
        values: What each metric scored, shape (q,).
        inputs: What it was scored on.

    Returns:
        By category, then by metric name; ``all`` comes first.

    Raises:
        MetricError: If a category is itself called ``all``.
    """
    by_category = {
        ALL: {metric.name: _of_all(metric, column, inputs) for metric, column in values.items()}
    }
    if inputs.categories is None:
        return by_category
    for code, category in enumerate(inputs.categories.names):
        if category == ALL:
            raise MetricError(f"no category may be called {ALL!r}: that names all of them")
        members = inputs.categories.codes == code
        by_category[category] = {
            metric.name: _reduce(metric, column, members) for metric, column in values.items()
        }
    return by_category


def weights(metric: Metric, values: Values, inputs: Inputs) -> Values:
    """Return what each query weighs in the figure of ``all``, shape (q,).

    The sum of weight x value over the defined values is that figure; undefined values and
    queries outside it weigh 0. A paired test uses the same weights.
    """
    if metric.definition.reduce == "utility":
        return utility_weights(inputs)
    counted = _counted(metric, values, _members(metric, inputs))
    if metric.definition.reduce == "total":
        return counted.astype(np.float64)
    return counted / max(int(np.count_nonzero(counted)), 1)


def _of_all(metric: Metric, values: Values, inputs: Inputs) -> Mean:
    if metric.definition.reduce != "utility":
        return _reduce(metric, values, _members(metric, inputs))
    shares = utility_weights(inputs)
    counted = shares > 0
    n = int(np.count_nonzero(counted))
    return Mean(float(shares[counted] @ values[counted]) if n else np.nan, n)


def _reduce(metric: Metric, values: Values, members: NDArray[np.bool_]) -> Mean:
    defined = values[_counted(metric, values, members)]
    if not len(defined):
        return Mean(np.nan, 0)
    total = float(defined.sum())
    return Mean(
        total if metric.definition.reduce == "total" else total / len(defined), len(defined)
    )


def _members(metric: Metric, inputs: Inputs) -> NDArray[np.bool_]:
    if metric.definition.headline_only:
        return inputs.headline
    return np.ones(len(inputs), dtype=bool)


def _counted(metric: Metric, values: Values, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if len(values) != len(members):
        raise MetricError(f"{metric.name} has {len(values)} values for {len(members)} queries")
    return members & ~np.isnan(values)
