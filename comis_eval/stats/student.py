"""Standard error of a weighted mean by group, and the paired t test that rests on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comis_eval.stats.groups import ROUNDING, Floats, GroupSums, Labels, group_sums


def standard_error(
    differences: Floats, groups: Labels, weights: Floats | Sequence[float] | None = None
) -> Floats:
    """Return the standard error of each column's weighted mean, the group being the unit.

    The root of G / (G - 1) x the sum over G groups of (sum - mean x weight)^2: for single
    queries of equal weight the usual s / sqrt(n).

    Example: differences [1, 2, 3] of three groups -> 1 / sqrt(3) = 0.577.

    Returns:
        Shape (m,), in the differences' unit; NaN with fewer than two groups.

    Raises:
        MetricError: As :func:`group_sums`.

    Source:
        Cochran, "Sampling Techniques", 3rd ed. 1977, section 6.3 (the ratio estimate).
    """
    return error_of(group_sums(differences, groups, weights))


def paired_t(
    differences: Floats, groups: Labels, weights: Floats | Sequence[float] | None = None
) -> Floats:
    """Return the two-sided p of a paired t test by group, with groups - 1 degrees of freedom.

    For single queries of equal weight this is the textbook test. It stands beside the
    permutation test: where the two disagree, few or lopsided differences decide.

    Returns:
        p in (0, 1], shape (m,); 1 where nothing changed, the smallest float where every
        group changed by the same amount, NaN with fewer than two groups.

    Raises:
        MetricError: As :func:`group_sums`.

    Source:
        Student, "The probable error of a mean", Biometrika 6(1), 1908.
    """
    from scipy.special import stdtr

    grouped = group_sums(differences, groups, weights)
    mean, error = np.abs(grouped.mean), error_of(grouped)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / error)
    p = 2.0 * stdtr(np.maximum(grouped.n_groups - 1, 1), -t)
    return np.where(np.isnan(error), np.nan, np.clip(p, np.finfo(np.float64).tiny, 1.0))


def error_of(grouped: GroupSums) -> Floats:
    """Return the standard error from collapsed differences; see :func:`standard_error`."""
    n = grouped.n_groups
    expected = grouped.mean * grouped.weights
    rest = grouped.sums - expected
    rounding = ROUNDING * (np.abs(grouped.sums) + np.abs(expected))
    rest = np.where(np.abs(rest) <= rounding, 0.0, rest)
    spread = np.square(rest).sum(axis=0) * n / np.maximum(n - 1, 1)
    return np.where(n >= 2, np.sqrt(spread), np.nan)
