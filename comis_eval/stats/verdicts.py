"""What a gated metric's figures say, in one word."""

from __future__ import annotations

from typing import Literal

from comis_eval.errors import MetricError

Outcome = Literal["improvement", "regression", "pass", "undecided"]


def verdict(
    *, mean: float, low: float, p_adjusted: float, margin: float, level: float = 0.05
) -> Outcome:
    """Judge one gated metric; the first that holds.

    improvement: significant and above 0; regression: significant and below -margin; pass:
    the interval's lower end is at least -margin; undecided. A figure that is NaN holds for
    nothing, so an undefined metric is undecided.

    Args:
        mean: Mean difference, higher is better.
        low: Lower end of its interval.
        p_adjusted: Two-sided p, corrected over the gated metrics.
        margin: Loss that is put up with, >= 0, in the metric's unit.
        level: Significant means p_adjusted <= level, in (0, 1).

    Raises:
        MetricError: If margin or level is out of range.
    """
    if not margin >= 0:
        raise MetricError(f"margin must be >= 0, got {margin}")
    if not 0 < level < 1:
        raise MetricError(f"level must lie strictly between 0 and 1, got {level}")
    significant = p_adjusted <= level
    if significant and mean > 0:
        return "improvement"
    if significant and mean < -margin:
        return "regression"
    return "pass" if low >= -margin else "undecided"
