"""Every figure that a paired comparison prints, one record a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from comis_eval.errors import MetricError
from comis_eval.stats.groups import Floats, Labels, group_sums
from comis_eval.stats.intervals import IntervalKind, bootstrap_ci
from comis_eval.stats.permutation import permutation_test
from comis_eval.stats.power import (
    cohens_dz,
    minimum_detectable_difference,
    needed_n,
    spread_of,
)
from comis_eval.stats.student import paired_t


@dataclass(frozen=True, slots=True)
class Comparison:
    """One column of paired differences in figures; NaN where one is undefined."""

    mean: float
    """Weighted mean difference, higher is better."""
    n_queries: int
    """Pairs that are defined and weigh something."""
    n_groups: int
    """Groups they fall into: the unit of every figure below."""
    low: float
    high: float
    interval: IntervalKind
    p: float
    """Two-sided, by sign flips, uncorrected."""
    p_t: float
    """Two-sided, by paired t."""
    agree: bool
    """Whether both tests fall on the same side of the level."""
    dz: float
    """Cohen's dz."""
    mdd: float
    """Difference these groups would show with 80% power; NaN when no spread was seen."""
    n_for_margin: int | None
    """Groups that would show the margin with 80% power; None without margin or spread."""
    queries_for_margin: int | None
    """The same in queries, at as many queries a group as here."""


def compare(
    differences: Floats,
    groups: Labels,
    weights: Floats | Sequence[float] | None = None,
    strata: Labels | None = None,
    *,
    margins: float | Sequence[float] | Floats = 0.0,
    level: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Comparison, ...]:
    """Compare two evaluations column by column, without correction for their number.

    Args:
        differences: Candidate minus baseline per query, oriented so that higher is better,
            shape (q, m) or (q,); NaN where a pair is undefined.
        groups: Group of each query, shape (q,).
        weights: Of the reported means, as for :func:`group_sums`.
        strata: Category of each query, shape (q,); None means one stratum.
        margins: Loss that matters, >= 0, one for all or one a column; 0 plans nothing.
        level: Two-sided significance level in (0, 1); intervals hold 1 - level.
        resamples: Of the bootstrap, and flips of the permutation test, >= 1.
        seed: Of both.

    Returns:
        One record a column, in their order.

    Raises:
        MetricError: If an argument is out of range or shapes do not fit.
    """
    grouped = group_sums(differences, groups, weights)
    columns = len(grouped.n_queries)
    margin = np.asarray(margins, dtype=np.float64)
    if margin.shape not in {(), (columns,)} or not (margin >= 0).all():
        raise MetricError(f"margins must be >= 0, one or {columns} of them, got {margins}")
    ends = bootstrap_ci(
        differences,
        groups,
        weights,
        strata,
        confidence=1 - level,
        resamples=resamples,
        seed=seed,
    )
    p = permutation_test(differences, groups, weights, flips=resamples, seed=seed)
    p_t = paired_t(differences, groups, weights)
    dz = cohens_dz(differences, groups, weights)
    spread, margin = spread_of(grouped), np.broadcast_to(margin, columns)
    plans = [
        _plan(float(spread[j]), float(margin[j]), int(grouped.n_groups[j]), level)
        for j in range(columns)
    ]
    return tuple(
        Comparison(
            mean=float(grouped.mean[j]),
            n_queries=int(grouped.n_queries[j]),
            n_groups=int(grouped.n_groups[j]),
            low=float(ends.low[j]),
            high=float(ends.high[j]),
            interval=ends.kind[j],
            p=float(p[j]),
            p_t=float(p_t[j]),
            agree=bool((p[j] <= level) == (p_t[j] <= level)),
            dz=float(dz[j]),
            mdd=mdd,
            n_for_margin=needed,
            queries_for_margin=None
            if needed is None
            else ceil(needed * int(grouped.n_queries[j]) / int(grouped.n_groups[j])),
        )
        for j, (mdd, needed) in enumerate(plans)
    )


def _plan(spread: float, margin: float, n: int, level: float) -> tuple[float, int | None]:
    """Return the detectable difference and the groups that the margin would take."""
    if not spread > 0:
        return np.nan, None
    needed = needed_n(spread, margin, level=level) if margin > 0 else None
    return minimum_detectable_difference(spread, n, level=level), needed
