"""The sign-flip permutation test of paired differences, by group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comis_eval.stats.groups import ROUNDING, Floats, Labels, group_sums
from comis_eval.stats.sign_flips import EXACT_GROUPS, Alternative, flipped_sums, toward


def permutation_test(
    differences: Floats,
    groups: Labels,
    weights: Floats | Sequence[float] | None = None,
    *,
    alternative: Alternative = "two-sided",
    flips: int = 10_000,
    seed: int = 0,
) -> Floats:
    """Test whether a mean difference is further from 0 than flipped signs would bring it.

    p is the share of flips, the data as they are among them, whose weighted mean is at
    least as far out: (b + 1) / (flips + 1), or exactly b / 2^g for a column with at most
    20 groups that changed. Sums equal but for rounding count as ties, so as reached.

    Example: differences [1, 1, 1] of three groups -> 2 of 8 flips reach |1|, p 0.25.

    Args:
        differences: Shape (q, m) or (q,), as for :func:`group_sums`.
        groups: Group of each query, shape (q,).
        weights: Of the reported mean, as for :func:`group_sums`.
        alternative: The mean is not 0, above it, or below it.
        flips: How many to draw, >= 1.
        seed: Of the draw.

    Returns:
        p in (0, 1], shape (m,); 1 where nothing changed, NaN without a defined pair.

    Raises:
        MetricError: If an argument is out of range.

    Source:
        Fisher, "The Design of Experiments", 1935, section 21. Smucker, Allan and
        Carterette, "A comparison of statistical significance tests for information
        retrieval evaluation", CIKM 2007.
    """
    grouped = group_sums(differences, groups, weights)
    p = np.full(len(grouped.n_queries), np.nan)
    defined = grouped.n_queries > 0
    few = np.count_nonzero(grouped.sums, axis=0) <= EXACT_GROUPS
    together = [np.flatnonzero(defined & ~few)]
    # A column is exact on its own groups, however many changed in the columns beside it.
    alone = [np.array([column]) for column in np.flatnonzero(defined & few)]
    for columns in together + alone:
        if len(columns):
            p[columns] = _share_reached(grouped.sums[:, columns], alternative, flips, seed)
    return p


def _share_reached(sums: Floats, alternative: Alternative, flips: int, seed: int) -> Floats:
    threshold = toward(alternative, sums.sum(axis=0)) - ROUNDING * np.abs(sums).sum(axis=0)
    reached = np.zeros(sums.shape[1], dtype=np.int64)
    total = 0
    for chunk in flipped_sums(sums, flips=flips, seed=seed):
        reached += np.count_nonzero(toward(alternative, chunk) >= threshold, axis=0)
        total += len(chunk)
    return reached / total
