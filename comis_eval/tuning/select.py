"""Choosing among many trials without being fooled by their number.

The best of many trials looks better than it is, even when none is. So the trials that look
best on the tuning queries compete on others; among those that cannot be told from the best,
the one nearest to what is in use wins; and what it gains is measured once on queries that
nobody looked at. Source: specification of the metrics, "Choosing among many trials".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.stats import Comparison, SelectionFloor, within_one_standard_error

TOP = 20
"""How many of the best trials compete on other queries."""

MAX_JUDGED_GAP = 0.02
"""Most by which judged@k of winner and current may differ before the gain is in doubt."""

LEVEL = 0.05
"""Both tests must be at or below it as well: of few groups an interval alone says too much."""

SMALL = 1_500
"""Sets of fewer queries are not cut in three: folds are nested instead."""

Outcome = Literal["adopt", "keep current", "not enough queries", "not enough judgments"]


class Decision(NamedTuple):
    """What to do, in words for the person who asked.

    Attributes:
        outcome: The verdict.
        reasons: Why, one sentence each.
    """

    outcome: Outcome
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        return {
            "adopt": "Adopt the recommended settings.",
            "keep current": "No change is justified: keep the current settings.",
            "not enough queries": "Not enough queries to tell: keep the current settings.",
            "not enough judgments": "Not enough judgments to tell: keep the current settings.",
        }[self.outcome]


def nearest_of_the_best(
    differences: NDArray[np.float64],
    groups: NDArray[np.str_],
    weights: NDArray[np.float64],
    distances: NDArray[np.float64],
) -> int:
    """Which trial wins: the nearest to the current settings within one error of the best.

    Args:
        differences: Trial minus current per query, shape (q, t), t at least 1.
        groups: Group of each query.
        weights: What each query weighs in the objective, shape (q,).
        distances: How far each trial is from the current settings, shape (t,).

    Returns:
        A column. Equal distances go to the larger gain, then to the earlier column.
    """
    near = np.flatnonzero(within_one_standard_error(differences, groups, weights))
    defined = ~np.isnan(differences)
    shares = np.where(defined, weights[:, None], 0.0)
    total = np.where(shares.sum(axis=0) > 0, shares.sum(axis=0), 1.0)
    gains = (np.nan_to_num(differences) * shares).sum(axis=0) / total
    return int(min(near, key=lambda column: (distances[column], -gains[column], column)))


def distance(
    values: Mapping[str, Any], current: Mapping[str, Any], spans: Mapping[str, float]
) -> float:
    """How far two points of a space are apart: the sum over knobs of the share of the range.

    A knob of names or of truth values counts 1 when it differs, and so does one that only
    one of the points has.

    Args:
        values: One point, by knob.
        current: The other.
        spans: Width of each numeric knob's range.
    """
    total = 0.0
    for name in {*values, *current}:
        a, b = values.get(name), current.get(name)
        if a == b:
            continue
        span = spans.get(name, 0.0)
        numeric = isinstance(a, int | float) and isinstance(b, int | float) and span > 0
        total += abs(a - b) / span if numeric else 1.0  # type: ignore[operator]
    return total


def decide(
    comparison: Comparison | None,
    floor: SelectionFloor | None,
    *,
    tuned_gain: float,
    leaks: int,
    judged_gap: float,
    changed: bool,
) -> Decision:
    """Turn the one look at held-out queries into advice.

    Args:
        comparison: Winner against current on the held-out queries; None when the winner is
            the current configuration.
        floor: What the best of as many trials would seem to gain by luck.
        tuned_gain: What the winner seemed to gain on the tuning queries.
        leaks: Memories that an enforced policy keeps out and the winner let in, anywhere.
        judged_gap: By how much judged@k of the two differ.
        changed: Whether the winner differs from the current configuration at all.
    """
    if not changed or comparison is None:
        return Decision("keep current", ("no trial within noise of the best is another setting",))
    if leaks:
        return Decision(
            "keep current", (f"the winner lets {leaks} memories in that the policy keeps out",)
        )
    gain = f"{comparison.mean:+.4f} [{comparison.low:+.4f}, {comparison.high:+.4f}]"
    tests = f"p {comparison.p:.4f} by sign flips and {comparison.p_t:.4f} by t"
    if comparison.low > 0 and comparison.p <= LEVEL and comparison.p_t <= LEVEL:
        if judged_gap <= MAX_JUDGED_GAP:
            return Decision("adopt", (f"it gains {gain} on queries the search never saw",))
        doubt = (
            f"it gains {gain} on queries the search never saw, but judged@k of the two differs by "
            f"{judged_gap:.3f}, more than {MAX_JUDGED_GAP}: judge the listed memories first"
        )
        return Decision("not enough judgments", (doubt,))
    reasons = [f"the gain on queries the search never saw is {gain}, {tests}: not above 0 for sure"]
    lucky = floor is not None and tuned_gain <= floor.percentile_95
    if floor is not None and lucky:
        reasons.append(
            f"its gain of {tuned_gain:+.4f} on the tuning queries is no more than luck gives the "
            f"best of {floor.n_trials} trials (95th percentile {floor.percentile_95:.4f})"
        )
    promising = comparison.mean > 0 and comparison.mean < comparison.mdd
    if promising and not lucky:
        reasons.append(
            f"{comparison.n_groups} groups of queries show only differences of "
            f"{comparison.mdd:.4f} or more"
        )
        return Decision("not enough queries", tuple(reasons))
    return Decision("keep current", tuple(reasons))
