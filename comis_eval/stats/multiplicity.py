"""p values corrected for having tested many columns: Holm, and MaxT over shared sign flips."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comis_eval.errors import MetricError
from comis_eval.stats.groups import ROUNDING, Floats, Labels, group_sums
from comis_eval.stats.sign_flips import Alternative, flipped_sums, toward


def holm(p: Floats | Sequence[float]) -> Floats:
    """Correct p values by Holm's step-down, whatever ties them together.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none ends below one
    before it, none above 1.

    Example: [0.01, 0.04, 0.03] -> [0.03, 0.06, 0.06].

    Args:
        p: In [0, 1], shape (m,); NaN where there was no test, which stays and is not counted.

    Raises:
        MetricError: If a p lies outside [0, 1].

    Source:
        Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
        Journal of Statistics 6(2), 1979.
    """
    given = np.asarray(p, dtype=np.float64)
    outside = ~((given >= 0) & (given <= 1)) & ~np.isnan(given)
    if outside.any():
        raise MetricError(f"p must lie in [0, 1], got {given[outside][0]} at {outside.argmax()}")
    order = np.argsort(given, kind="stable")[: np.count_nonzero(~np.isnan(given))]
    stepped = np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1))
    corrected = np.full(given.shape, np.nan)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def max_t(
    differences: Floats,
    groups: Labels,
    weights: Floats | Sequence[float] | None = None,
    *,
    alternative: Alternative = "two-sided",
    flips: int = 10_000,
    seed: int = 0,
) -> Floats:
    """Correct over columns by the largest studentised mean under shared sign flips.

    Every column is divided by the root of its sum of squared group sums. Flips leave that
    unchanged, so it only puts the columns on one scale: unscaled, one of large values
    (characters) would own the maximum and the others (nDCG) could never reach it.
    Step-down: the most extreme column is held against the maximum over all, the next
    against the maximum over the rest, and so on, which rejects whatever the single-step
    form does and more. Flipping whole rows keeps the columns' dependence, so correlated
    columns cost less than under Holm.

    Example: two equal columns [1, 1, 1] of three groups -> p 0.25 for both, not 0.5.

    Args:
        differences: Shape (q, m), as for :func:`group_sums`.
        groups: Group of each query, shape (q,).
        weights: Of the reported means, as for :func:`group_sums`.
        alternative: Each mean is not 0, above it, or below it.
        flips: How many to draw, >= 1.
        seed: Of the draw.

    Returns:
        Corrected p in (0, 1], shape (m,); 1 for a column in which nothing changed, NaN for
        one without a defined pair. Neither takes part in the maximum.

    Raises:
        MetricError: If an argument is out of range.

    Source:
        Westfall and Young, "Resampling-Based Multiple Testing", 1993, algorithm 4.1.
    """
    grouped = group_sums(differences, groups, weights)
    corrected = np.where(grouped.n_queries > 0, 1.0, np.nan)
    moved = np.flatnonzero(grouped.sums.any(axis=0))
    if not len(moved):
        return corrected
    scaled = _studentised(grouped.sums[:, moved])
    observed = toward(alternative, scaled.sum(axis=0))
    order = np.argsort(-observed, kind="stable")
    scaled, observed = scaled[:, order], observed[order]

    threshold = observed - ROUNDING * np.abs(scaled).sum(axis=0).max()
    reached = np.zeros(len(order), dtype=np.int64)
    total = 0
    for chunk in flipped_sums(scaled, flips=flips, seed=seed):
        of_the_rest = np.maximum.accumulate(toward(alternative, chunk)[:, ::-1], axis=1)[:, ::-1]
        reached += np.count_nonzero(of_the_rest >= threshold, axis=0)
        total += len(chunk)
    corrected[moved[order]] = np.maximum.accumulate(reached / total)
    return corrected


def _studentised(sums: Floats) -> Floats:
    # By the largest first, or the squares of very small or large values leave float64.
    scaled: Floats = sums / np.abs(sums).max(axis=0)
    scaled /= np.sqrt(np.square(scaled).sum(axis=0))
    return scaled
