"""What choosing the best of many trials is worth by luck, and which are as good as the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.stats.groups import Floats, Labels, group_sums
from comis_eval.stats.sign_flips import flipped_sums
from comis_eval.stats.student import error_of


class SelectionFloor(NamedTuple):
    """What the best of these trials would "gain" if none were better."""

    mean: float
    percentile_95: float
    n_trials: int
    n_groups: int


def selection_floor(
    trials: Floats,
    groups: Labels,
    weights: Floats | Sequence[float] | None = None,
    *,
    flips: int = 2_000,
    seed: int = 0,
) -> SelectionFloor:
    """Return the gain that picking the best of many trials shows by luck alone.

    Each trial's differences are centred on their own mean, so that none is better; flips by
    group then show how far the largest mean wanders. What ties the trials together stays,
    so a thousand near-copies cost little. Approximate: it ignores that a sampler adapts.

    Example: one trial, differences [1, -1] of two groups -> means 0, 1, -1, 0 over the four
    flips: mean 0.

    Args:
        trials: Trial minus current configuration per query of the tune split, a column for
            each distinct feasible trial, shape (q, trials); NaN where undefined.
        groups: Group of each query, shape (q,).
        weights: Of the objective's mean, as for :func:`group_sums`.
        flips: How many to draw, >= 1; all are enumerated when there are no more than that.
        seed: Of the draw.

    Raises:
        MetricError: If no trial has a defined pair, or an argument is out of range.
    """
    grouped = group_sums(trials, groups, weights)
    defined = grouped.n_queries > 0
    if not defined.any():
        raise MetricError("a selection floor needs a trial with a defined pair, got none")
    shares = grouped.weights[:, defined]
    centred = grouped.sums[:, defined] - grouped.mean[defined] * shares
    exact_groups = flips.bit_length() - 1
    largest = np.concatenate(
        [
            chunk.max(axis=1)
            for chunk in flipped_sums(centred, flips=flips, seed=seed, exact_groups=exact_groups)
        ]
    )
    return SelectionFloor(
        mean=float(largest.mean()),
        percentile_95=float(np.quantile(largest, 0.95)),
        n_trials=int(np.count_nonzero(defined)),
        n_groups=int(np.count_nonzero(shares.any(axis=1))),
    )


def within_one_standard_error(
    trials: Floats, groups: Labels, weights: Floats | Sequence[float] | None = None
) -> NDArray[np.bool_]:
    """Say which trials' means lie within one standard error of the best one's.

    The error is the best trial's, by group. The best is always among them; with fewer than
    two groups there is no error, and it stands alone.

    Args:
        trials: Trial minus current configuration per query, shape (q, trials).
        groups: Group of each query, shape (q,).
        weights: Of the objective's mean, as for :func:`group_sums`.

    Returns:
        Shape (trials,); False for a trial without a defined pair.

    Raises:
        MetricError: If no trial has a defined pair, or an argument is out of range.

    Source:
        Breiman, Friedman, Olshen and Stone, "Classification and Regression Trees", 1984,
        section 3.4.3 (the 1 SE rule).
    """
    grouped = group_sums(trials, groups, weights)
    mean = grouped.mean
    if np.isnan(mean).all():
        raise MetricError("choosing among trials needs one with a defined pair, got none")
    best = int(np.nanargmax(mean))
    error = error_of(grouped)[best]
    as_good: NDArray[np.bool_] = mean >= mean[best] - (0.0 if np.isnan(error) else error)
    return as_good
