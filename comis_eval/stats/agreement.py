"""How far two people who graded the same things agree, chance taken off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.stats.groups import Floats, Labels, label_codes

_CELLS = 1 << 21
"""Most drawn groups in a chunk of the bootstrap."""


class Agreement(NamedTuple):
    """How far two graders agree.

    Attributes:
        kappa: Weighted kappa, 1 at best, 0 what chance would give; NaN where chance alone
            gives full agreement, as when both gave one and the same grade to everything.
        low, high: Both ends of its interval; NaN where none can be given.
        n: Pairs of grades.
        groups: How many groups they belong to.
        same: How many pairs are of one grade.
    """

    kappa: float
    low: float
    high: float
    n: int
    groups: int
    same: int


def weighted_kappa(
    first: Sequence[int] | NDArray[np.integer],
    second: Sequence[int] | NDArray[np.integer],
    groups: Labels | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Return Cohen's kappa with quadratic weights, and a percentile bootstrap interval.

    Being one grade apart costs 1, two apart 4, three apart 9: the mean cost is divided by
    what it would be if the same grades met by chance. Whole groups are drawn with
    replacement, since the memories of one query are not judged independently.

    Example: (0, 1, 2, 3) and (0, 1, 2, 2) -> they cost 1/4 a pair; every grade of the one put
    to every grade of the other costs 2 a pair; kappa 1 - 1/8 = 0.875.

    Args:
        first: Grades that one gave, shape (n,).
        second: What the other gave to the same things, in the same order.
        groups: Group of each, shape (n,); None: each its own.
        confidence: Share of intervals that hold the true kappa, in (0, 1).
        resamples: How many to draw, >= 1.
        seed: Of the draw.

    Returns:
        The agreement. Without an interval (NaN) when there are fewer than two groups, when
        every draw gives the same kappa, as it does where all agree, and when over one draw in
        twenty leaves kappa undefined.

    Raises:
        MetricError: If there is not one grade of each for everything, or an argument is out
            of range.

    Source:
        Cohen, "Weighted kappa", Psychological Bulletin 70(4), 1968.
    """
    if not 0 < confidence < 1:
        raise MetricError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if not resamples >= 1:
        raise MetricError(f"a bootstrap needs resamples >= 1, got {resamples}")
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise MetricError(f"kappa needs two grades of each thing, got {a.shape} and {b.shape}")
    codes = np.arange(len(a)) if groups is None else label_codes(groups, len(a), "group")
    n_groups = int(codes.max(initial=-1)) + 1
    moments = np.stack([np.ones(len(a)), a, b, a * a, b * b, a * b], axis=1)
    sums = np.zeros((n_groups, moments.shape[1]))
    np.add.at(sums, codes, moments)
    low, high = _interval(sums, confidence, resamples, seed)
    return Agreement(
        kappa=float(_kappa(sums.sum(axis=0))),
        low=low,
        high=high,
        n=len(a),
        groups=n_groups,
        same=int((a == b).sum()),
    )


def _kappa(moments: Floats) -> Floats:
    """Kappa from the sums of (1, a, b, a^2, b^2, a b), the last axis; NaN where undefined."""
    n, a, b, aa, bb, ab = np.moveaxis(moments, -1, 0)
    observed = aa + bb - 2 * ab
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = aa + bb - 2 * a * b / n
        kappa: Floats = np.where(chance > 0, 1 - observed / chance, np.nan)
    return kappa


def _interval(sums: Floats, confidence: float, resamples: int, seed: int) -> tuple[float, float]:
    undefined = (float("nan"), float("nan"))
    groups = len(sums)
    if groups < 2:
        return undefined
    rng = np.random.default_rng(seed)
    most = max(_CELLS // groups, 1)
    drawn: list[Floats] = []
    for start in range(0, resamples, most):
        rows = min(most, resamples - start)
        counts = rng.multinomial(groups, np.full(groups, 1 / groups), size=rows)
        drawn.append(_kappa(counts @ sums))
    values = np.concatenate(drawn)
    defined = values[~np.isnan(values)]
    if len(defined) < 0.95 * len(values) or defined.max() - defined.min() < 1e-12:
        return undefined
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    low, high = np.quantile(defined, tails).tolist()
    return low, high
