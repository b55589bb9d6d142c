"""How many queries would decide: from the spread that real changes show, never their effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import EvaluationError
from comis_eval.stats import group_sums, minimum_detectable_difference, needed_n, spread_of


class Need(NamedTuple):
    """What telling one change from none would take.

    Attributes:
        change: The change whose differences were looked at.
        spread: Of the differences between groups, in the metric's unit.
        groups: Groups that would show the margin.
        queries: The same in queries, at as many queries a group as here.
        detectable: Difference that the groups at hand would show; infinite when none.
    """

    change: str
    spread: float
    groups: int
    queries: int
    detectable: float


@dataclass(frozen=True, slots=True)
class Plan:
    """How many queries would decide.

    Attributes:
        margin: Loss that matters, in the metric's unit.
        power: Chance to show it.
        level: Two-sided significance level.
        n_queries: Queries at hand, with a value.
        n_groups: Groups they fall into.
        needs: One a change that moved anything, the widest spread first.
    """

    margin: float
    power: float
    level: float
    n_queries: int
    n_groups: int
    needs: tuple[Need, ...]

    @property
    def typical(self) -> int:
        """Queries that would decide on half of the changes."""
        return ceil(median(need.queries for need in self.needs))

    @property
    def most(self) -> int:
        """Queries that would decide on every one of the changes."""
        return max(need.queries for need in self.needs)

    @property
    def decided(self) -> int:
        """On how many of the changes the queries at hand suffice."""
        return sum(need.groups <= self.n_groups for need in self.needs)


def plan(
    changes: Sequence[str],
    differences: NDArray[np.float64],
    groups: Sequence[str],
    weights: NDArray[np.float64],
    *,
    margin: float,
    power: float = 0.8,
    level: float = 0.05,
) -> Plan:
    """Say how many queries would show a loss of ``margin``, for several kinds of change.

    Args:
        changes: Name of each column.
        differences: Of each change per query, shape (q, m); NaN where undefined.
        groups: Group of each query.
        weights: What each query weighs in the metric's figure, shape (q,).
        margin: Loss that matters, > 0.
        power: Chance to show it, in (0, 1).
        level: Two-sided significance level, in (0, 1).

    Raises:
        EvaluationError: If no change moved any query, so that there is no spread to plan with.
        MetricError: If margin, power or level is out of range.
    """
    grouped = group_sums(differences, groups, weights)
    spreads = spread_of(grouped)
    needs = []
    for column, change in enumerate(changes):
        spread, here = float(spreads[column]), int(grouped.n_groups[column])
        if not spread > 0:
            continue
        needed = needed_n(spread, margin, power=power, level=level)
        a_group = int(grouped.n_queries[column]) / here
        detectable = minimum_detectable_difference(spread, here, power=power, level=level)
        needs.append(Need(change, spread, needed, ceil(needed * a_group), detectable))
    if not needs:
        raise EvaluationError(
            "no change moved the metric on any query, so there is no spread to plan with; take "
            "another metric or a larger dataset"
        )
    needs.sort(key=lambda need: (-need.spread, need.change))
    return Plan(
        margin,
        power,
        level,
        int(grouped.n_queries.max(initial=0)),
        int(grouped.n_groups.max(initial=0)),
        tuple(needs),
    )
