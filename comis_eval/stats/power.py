"""How large an effect is, how small a one the data could show, and how much data would."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, sqrt
from statistics import NormalDist

import numpy as np

from comis_eval.errors import MetricError
from comis_eval.stats.groups import Floats, GroupSums, Labels, group_sums
from comis_eval.stats.student import error_of


def cohens_dz(
    differences: Floats, groups: Labels, weights: Floats | Sequence[float] | None = None
) -> Floats:
    """Return the mean difference in units of its spread between groups.

    Example: differences [1, 2, 3] of three groups -> 2 / 1 = 2.0.

    Returns:
        Shape (m,), no unit; NaN where the spread is 0 or there are fewer than two groups.

    Raises:
        MetricError: As :func:`group_sums`.

    Source:
        Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed. 1988, 2.3.5.
    """
    grouped = group_sums(differences, groups, weights)
    spread = spread_of(grouped)
    return np.divide(grouped.mean, spread, out=np.full_like(spread, np.nan), where=spread > 0)


def spread_of(grouped: GroupSums) -> Floats:
    """Return each column's spread between groups: the standard error times sqrt(groups).

    For single queries of equal weight it is the standard deviation of the differences.
    """
    return error_of(grouped) * np.sqrt(grouped.n_groups)


def minimum_detectable_difference(
    spread: float, n: int, *, power: float = 0.8, level: float = 0.05
) -> float:
    """Return the true difference that n groups would show with this power.

    (z of 1 - level/2 + z of power) x spread / sqrt(n - z^2 / 2), the first z squared; the
    last term stands for the t test's wider tails, and makes this the inverse of
    :func:`needed_n`.

    Example: spread 0.3 over 500 groups -> 0.0377.

    Args:
        spread: Standard deviation of the differences between groups, >= 0.
        n: Groups, >= 0.
        power: Chance to find the difference, in (0, 1).
        level: Two-sided significance level, in (0, 1).

    Returns:
        In the spread's unit; infinite when so few groups can show nothing.

    Raises:
        MetricError: If an argument is out of range.

    Source:
        Guenther, "Sample size formulas for normal theory t tests", The American
        Statistician 35(4), 1981.
    """
    significant, found = _quantiles(spread, power, level)
    room = n - significant**2 / 2
    return (significant + found) * spread / sqrt(room) if n >= 2 and room > 0 else inf


def needed_n(spread: float, margin: float, *, power: float = 0.8, level: float = 0.05) -> int:
    """Return how many groups would show a true difference of ``margin`` with this power.

    The margin is the policy's, never the observed effect: power at the observed effect is
    the p value over again.

    Example: spread 0.3, margin 0.02 -> 1768.

    Args:
        spread: Standard deviation of the differences between groups, >= 0.
        margin: Difference that matters, > 0, in the spread's unit.
        power: Chance to find it, in (0, 1).
        level: Two-sided significance level, in (0, 1).

    Returns:
        At least 2.

    Raises:
        MetricError: If an argument is out of range.

    Source:
        Guenther, as :func:`minimum_detectable_difference`. Hoenig and Heisey, "The abuse of
        power", The American Statistician 55(1), 2001.
    """
    if not 0 < margin < inf:
        raise MetricError(f"margin must be finite and > 0 to plan for, got {margin}")
    significant, found = _quantiles(spread, power, level)
    return max(ceil(((significant + found) * spread / margin) ** 2 + significant**2 / 2), 2)


def _quantiles(spread: float, power: float, level: float) -> tuple[float, float]:
    if not 0 <= spread < inf:
        raise MetricError(f"spread must be finite and >= 0, got {spread}")
    for name, value in {"power": power, "level": level}.items():
        if not 0 < value < 1:
            raise MetricError(f"{name} must lie strictly between 0 and 1, got {value}")
    if not power > level:
        raise MetricError(f"power must exceed the level, got {power} at level {level}")
    normal = NormalDist()
    return normal.inv_cdf(1 - level / 2), normal.inv_cdf(power)
