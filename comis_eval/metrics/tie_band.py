"""How much of a figure is the luck of ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from comis_eval.datasets.judgments import MAX_GRADE
from comis_eval.metrics.from_run import RunInputs
from comis_eval.metrics.lists import Inputs, Values, given


class Band(NamedTuple):
    """The least and the most a metric could be over all orders of tied memories, (q,)."""

    low: Values
    high: Values


def tie_band(judged: RunInputs, metric: Callable[[Inputs], Values]) -> Band:
    """Return how low and how high a relevance metric could be, however ties are broken.

    A score that ties many memories says little: the band is then wide, where other tools
    print the figure of whatever order their sort happened to leave.

    Args:
        judged: A run with scores.
        metric: A metric of the ranking that never falls when a better memory moves up.
    """
    ranking = given(judged.inputs.ranking, "the ranking")
    grade = np.maximum(ranking.grade, 0).astype(np.int64)
    groups = judged.tie_groups.astype(np.int64) * (2 * MAX_GRADE + 1)
    groups[~ranking.within(ranking.depth)] = np.iinfo(np.int64).max // 2
    worst, best = (
        metric(replace(judged.inputs, ranking=ranking.reordered(order)))
        for order in (
            np.argsort(groups + grade, axis=1, kind="stable"),
            np.argsort(groups - grade, axis=1, kind="stable"),
        )
    )
    return Band(worst, best)
