"""Bootstrap intervals of weighted mean differences, by group, stratified by category."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.stats.groups import ROUNDING, Codes, Floats, Labels, group_sums, label_codes

IntervalKind = Literal["bca", "percentile", "unchanged", "undefined"]

_CELLS = 1 << 21
"""Most drawn groups in a chunk: about 64 MB with their counts."""


class Interval(NamedTuple):
    """Both ends of each column's interval and how they were found, each of shape (m,).

    Kinds: ``bca``; ``percentile`` where BCa degenerates; ``unchanged``, [0, 0], where no
    group changed; ``undefined``, NaN, where one group or none has a defined pair.
    """

    low: Floats
    high: Floats
    kind: tuple[IntervalKind, ...]


class _Strata(NamedTuple):
    """Groups of one set of columns, put in order of their stratum."""

    order: Codes
    """Rows of the groups, shape (g,)."""
    starts: Codes
    """Where each stratum begins in that order, shape (h,)."""
    sizes: Codes
    """Groups in each stratum, shape (h,), each at least 2."""


def bootstrap_ci(
    differences: Floats,
    groups: Labels,
    weights: Floats | Sequence[float] | None = None,
    strata: Labels | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Return a BCa bootstrap interval of each column's weighted mean.

    Whole groups are drawn with replacement within their stratum, among those with a defined
    pair. A stratum keeps its share of the weight, as a category does in a macro mean, and
    the mean within it is taken anew over what was drawn. A stratum of one group would
    pretend to certainty: such groups are pooled, and a lone one joins the smallest stratum.

    Args:
        differences: Shape (q, m) or (q,), as for :func:`group_sums`.
        groups: Group of each query, shape (q,).
        weights: Of the reported mean, as for :func:`group_sums`.
        strata: Category of each query, shape (q,); a group has its most common one. None
            means one stratum.
        confidence: Share of intervals that hold the true mean, in (0, 1).
        resamples: How many to draw, >= 1.
        seed: Of the draw; columns defined on the same groups share it.

    Raises:
        MetricError: If an argument is out of range or shapes do not fit.

    Source:
        Efron, "Better bootstrap confidence intervals", JASA 82, 1987. Davison and Hinkley,
        "Bootstrap Methods and their Application", 1997, section 5.3 (several samples).
    """
    if not 0 < confidence < 1:
        raise MetricError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if not resamples >= 1:
        raise MetricError(f"a bootstrap needs resamples >= 1, got {resamples}")
    grouped = group_sums(differences, groups, weights)
    stratum = _most_common(grouped.codes, strata)
    columns = len(grouped.n_queries)
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    kind: list[IntervalKind] = ["undefined"] * columns

    moved = grouped.sums.any(axis=0)
    unchanged = (grouped.n_queries > 0) & ~moved
    low[unchanged] = high[unchanged] = 0.0
    for column in np.flatnonzero(unchanged):
        kind[column] = "unchanged"
    for members, alike in _by_support(grouped.weights > 0, moved & (grouped.n_groups >= 2)):
        layout = _layout(members, stratum[members])
        rows = np.ix_(layout.order, alike)
        sums, shares = grouped.sums[rows], grouped.weights[rows]
        means = _resampled(sums, shares, layout, resamples, seed)
        acceleration = _acceleration(sums, shares, layout)
        for at, column in enumerate(alike):
            scale = float(np.abs(sums[:, at]).sum())
            low[column], high[column], kind[column] = _ends(
                means[:, at], float(sums[:, at].sum()), acceleration[at], scale, confidence
            )
    return Interval(low, high, tuple(kind))


def _most_common(codes: Codes, strata: Labels | None) -> Codes:
    """Return the stratum most of a group's queries have, the first by label on a tie."""
    if strata is None:
        return np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.intp)
    labels = label_codes(strata, len(codes), "stratum")
    pairs, counts = np.unique(np.stack([codes, labels]), axis=1, return_counts=True)
    order = np.lexsort((pairs[1], -counts, pairs[0]))
    ranked = pairs[:, order]
    foremost: Codes = ranked[1, np.flatnonzero(np.diff(ranked[0], prepend=-1))]
    return foremost


def _by_support(present: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> list[tuple[Codes, Codes]]:
    """Return (groups, columns) for each set of groups that some wanted columns rest on."""
    columns = np.flatnonzero(wanted)
    if not len(columns):
        return []
    supports, of_column = np.unique(present[:, columns], axis=1, return_inverse=True)
    return [
        (np.flatnonzero(support), columns[of_column == at]) for at, support in enumerate(supports.T)
    ]


def _layout(members: Codes, stratum: Codes) -> _Strata:
    """Order groups by stratum, strata of a single group put together."""
    _, stratum, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    lone = sizes[stratum] == 1
    pool = len(sizes)
    if np.count_nonzero(lone) == 1 and len(sizes) > 1:
        pool = int(np.argmin(np.where(sizes > 1, sizes, sizes.max() + 1)))
    stratum = np.where(lone, pool, stratum)
    order = np.argsort(stratum, kind="stable")
    _, starts, sizes = np.unique(stratum[order], return_index=True, return_counts=True)
    return _Strata(members[order], starts, sizes)


def _resampled(sums: Floats, shares: Floats, layout: _Strata, resamples: int, seed: int) -> Floats:
    """Return the weighted mean of each resample, shape (resamples, m)."""
    rng = np.random.default_rng(seed)
    groups, columns = sums.shape
    first = np.repeat(layout.starts, layout.sizes)
    size = np.repeat(layout.sizes, layout.sizes).astype(np.float64)
    both = np.concatenate([sums, shares], axis=1)
    most = max(_CELLS // groups, 1)
    means = np.zeros((resamples, columns))
    for start in range(0, resamples, most):
        rows = min(most, resamples - start)
        drawn = (rng.random((rows, groups)) * size).astype(np.intp)
        drawn += first + groups * np.arange(rows)[:, np.newaxis]
        counts = np.bincount(drawn.ravel(), minlength=rows * groups).reshape(rows, groups)
        times = counts.astype(np.float64)
        for begin, length in zip(layout.starts, layout.sizes, strict=True):
            within = slice(begin, begin + length)
            reached = times[:, within] @ both[within]
            share = shares[within].sum(axis=0)
            means[start : start + rows] += share * reached[:, :columns] / reached[:, columns:]
    return means


def _acceleration(sums: Floats, shares: Floats, layout: _Strata) -> Floats:
    """Return BCa's acceleration by a jackknife over groups, shape (m,); NaN without spread."""
    cubes, squares = np.zeros(sums.shape[1]), np.zeros(sums.shape[1])
    for begin, length in zip(layout.starts, layout.sizes, strict=True):
        within = slice(begin, begin + length)
        total, share = sums[within].sum(axis=0), shares[within].sum(axis=0)
        left_out = share * (total - sums[within]) / (share - shares[within])
        influence = (left_out.mean(axis=0) - left_out) * (length - 1) / length
        cubes += np.power(influence, 3).sum(axis=0)
        squares += np.square(influence).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return cubes / (6.0 * np.power(squares, 1.5))


def _ends(
    means: Floats, observed: float, acceleration: float, scale: float, confidence: float
) -> tuple[float, float, IntervalKind]:
    """Return one column's interval from its resampled means."""
    rounding = ROUNDING * scale
    off = means - observed
    if np.abs(off).max() <= rounding:
        return observed, observed, "percentile"
    below = np.count_nonzero(off < -rounding)
    level = (below + np.count_nonzero(np.abs(off) <= rounding) / 2) / len(means)
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    kind: IntervalKind = "percentile"
    corrected = _corrected(level, acceleration, tails)
    if corrected is not None:
        tails, kind = corrected, "bca"
    low, high = np.quantile(means, tails).tolist()
    return low, high, kind


def _corrected(
    level: float, acceleration: float, tails: tuple[float, float]
) -> tuple[float, float] | None:
    """Return BCa's quantiles in place of the tails; None where it degenerates.

    It does when every resample lies on one side, when the acceleration is undefined, and
    where 1 - acceleration x z turns negative, past which quantiles run backwards.
    """
    if not 0 < level < 1 or not np.isfinite(acceleration):
        return None
    normal = NormalDist()
    bias = normal.inv_cdf(level)
    shifted = [bias + normal.inv_cdf(tail) for tail in tails]
    shrink = [1 - acceleration * z for z in shifted]
    if min(shrink) <= 0:
        return None
    low, high = (normal.cdf(bias + z / by) for z, by in zip(shifted, shrink, strict=True))
    return low, high
