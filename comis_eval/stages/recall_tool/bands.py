"""The omitted order: key matches first, then bands of nearly equal scores by importance.

Source: specification of the recall tool, sections 0 (Ordering) and 4.4a.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Order = NDArray[np.intp]


def rerank(
    boost: NDArray[np.int64],
    score: NDArray[np.float64],
    importance: NDArray[np.float64],
    *,
    band: float,
) -> Order:
    """Order one list anew; what these rules do not tell apart keeps its place.

    Memories with a boost lead, by boost. The others are ordered by score and cut into
    bands: a band takes every memory at most ``band`` below its first. Within a band the
    more important comes first.

    Args:
        boost: How well each key answers the query, >= 0, shape (n,).
        score: Shape (n,); NaN, a memory without a score, comes last and is its own band.
        importance: Shape (n,).
        band: How far below a band's first its last may be, >= 0.

    Returns:
        A permutation of the list's places, shape (n,).
    """
    order = np.argsort(-boost, kind="stable")
    boosted = int(np.count_nonzero(boost > 0))
    tail = order[boosted:]
    tail = tail[np.argsort(-score[tail], kind="stable")]  # NaN sorts last
    scored = int(np.count_nonzero(~np.isnan(score[tail])))
    start = 0
    while start < scored:
        beyond = np.flatnonzero(score[tail[start]] - score[tail[start:scored]] > band)
        end = start + int(beyond[0]) if len(beyond) else scored
        members = tail[start:end]
        tail[start:end] = members[np.argsort(-importance[members], kind="stable")]
        start = end
    order[boosted:] = tail
    return order
