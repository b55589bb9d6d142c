"""Maximal marginal relevance: relevance traded against likeness to what is already chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosine of each pair of vectors along the last axis; 0 where one is zero or empty.

    Each pair is summed on its own, so a value does not depend on how many are computed.
    """
    dot = (a * b).sum(axis=-1)
    size = np.sqrt((a * a).sum(axis=-1)) * np.sqrt((b * b).sum(axis=-1))
    return np.where(size > 0, dot / np.where(size > 0, size, 1.0), 0.0)


def mmr(
    scores: NDArray[np.float64],
    vectors: NDArray[np.float64],
    has: NDArray[np.bool_],
    id_rank: NDArray[np.int32],
    *,
    weight: float,
) -> NDArray[np.intp]:
    """Reorder one list greedily by ``weight x score - (1 - weight) x likeness``.

    Likeness is the largest cosine to those already chosen; negative cosines and memories
    without a vector count 0. The list stays as it is when ``weight`` is 1 or fewer than
    two memories have vectors.

    Args:
        scores: Relevance, best first, shape (n,).
        vectors: Shape (n, dim).
        has: Which memories have a vector, shape (n,).
        id_rank: Place of each id in ascending order, shape (n,); settles exact ties.
        weight: The configuration's ``mmr.lambda``, in [0, 1].

    Returns:
        A permutation of the list, shape (n,).

    Source:
        Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering
        Documents and Producing Summaries", SIGIR 1998.
    """
    count = len(scores)
    if weight >= 1 or has.sum() < 2:
        return np.arange(count)
    likeness = np.zeros(count)
    open_ = np.ones(count, dtype=bool)
    chosen = np.empty(count, dtype=np.intp)
    for step in range(count):
        value = weight * scores - (1 - weight) * likeness
        best = np.flatnonzero(open_ & (value == value[open_].max()))
        pick = best[np.argmin(id_rank[best])]
        chosen[step] = pick
        open_[pick] = False
        if has[pick]:
            near = np.maximum(cosine(vectors, vectors[pick]), 0.0)
            likeness = np.maximum(likeness, np.where(has, near, 0.0))
    return chosen
