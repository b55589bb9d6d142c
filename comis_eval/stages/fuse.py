"""Fusing the lanes' rankings into one list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import StageError

Ranks = NDArray[np.int32]
Scores = NDArray[np.float64]

_FAR = 1000
"""Binary exponent that no score has."""


def rrf(ranks: Sequence[Ranks], weights: Sequence[float], total: Scores, *, k: int = 60) -> Scores:
    """Fuse by weighted reciprocal rank, normalised to [0, 1].

    A candidate scores the sum over lanes of ``weight / (k + rank)``, divided by the most
    that rank 1 in every counted lane would bring, ``total / (k + 1)``, and at most 1.

    Args:
        ranks: One array a lane, each shape (q, c): rank from 1, 0 where the lane lacks it.
        weights: One a lane, >= 0.
        total: Sum of the weights that count for each query, shape (q,). Where it is 0,
            every score is 0.
        k: Rank offset, >= 1. A larger k makes the top ranks count less.

    Returns:
        Scores, shape (q, c); 0 where no lane has the candidate.

    Raises:
        StageError: If there is not exactly one weight per lane.

    Source:
        Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and
        individual Rank Learning Methods", SIGIR 2009. Weights and normalising are the
        specification's.
    """
    _one_weight_each(ranks, weights)
    best = total / (k + 1)
    fused = np.zeros(ranks[0].shape)
    for lane, weight in zip(ranks, weights, strict=True):
        # A rank never exceeds the lane's depth, so a table of reciprocals replaces a division
        # per cell by a look-up; entry 0 stands for "not in the lane".
        share = np.zeros(int(lane.max(initial=0)) + 1)
        share[1:] = weight / (k + np.arange(1, len(share)))
        fused += share.take(lane.astype(np.intp))
    return _normalised(fused, best)


def convex(
    lane_scores: Sequence[Scores], ranks: Sequence[Ranks], weights: Sequence[float], total: Scores
) -> Scores:
    """Fuse by a convex combination of the lanes' own scores: a what-if of the harness.

    Each lane's scores are scaled to [0, 1] within a query, its worst hit to 0 and its best
    to 1 (a lane whose hits all score the same gives each 1); a candidate scores the
    weighted mean over the lanes that count, 0 from a lane that lacks it.

    Args:
        lane_scores: One array a lane, each shape (q, c), higher is better.
        ranks: As for :func:`rrf`; a rank of 0 says that the lane lacks the candidate.
        weights: One a lane, >= 0.
        total: Sum of the weights that count for each query, shape (q,).

    Returns:
        Scores in [0, 1], shape (q, c).

    Source:
        Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval",
        TOIS 42(1), 2023.
    """
    _one_weight_each(ranks, weights)
    fused = np.zeros(ranks[0].shape)
    for scores, lane, weight in zip(lane_scores, ranks, weights, strict=True):
        has = lane > 0
        low = np.where(has, scores, np.inf).min(axis=1, initial=np.inf)[:, None]
        high = np.where(has, scores, -np.inf).max(axis=1, initial=-np.inf)[:, None]
        span = np.where(high > low, high - low, 1.0)
        flat = has & (high == low)
        lifted = np.where(has, scores, 0.0) - np.where(has, low, 0.0)
        fused += weight * np.where(flat, 1.0, lifted / span)
    return _normalised(fused, total)


def join(inner: Scores, lists: Sequence[Ranks], weights: Sequence[float], *, k: int = 60) -> Scores:
    """The second fusion of nested semantics: the searched list beside the spread lanes.

    Args:
        inner: Scores of the searched list, shape (q, c).
        lists: Ranks in the searched list, then in each spread lane, each shape (q, c).
        weights: One a list, >= 0. Lists without a hit for a query do not count for it.
        k: As for :func:`rrf`.

    Returns:
        Scores, shape (q, c). Where no spread lane has a hit, there is one list only, and
        the inner scores pass through.
    """
    total = np.zeros(len(inner))
    joined = np.zeros(len(inner), dtype=bool)
    for number, (ranks, weight) in enumerate(zip(lists, weights, strict=True)):
        has = (ranks > 0).any(axis=1)
        total += np.where(has, weight, 0.0)
        joined |= has & (number > 0)
    return np.where(joined[:, None], rrf(lists, weights, total, k=k), inner)


def first_seen(ranks: Sequence[Ranks]) -> NDArray[np.int64]:
    """Number candidates as they are met lane after lane, each lane best first.

    Args:
        ranks: One array a lane in the order in which ties are settled, each shape (q, c).

    Returns:
        Ordinals, shape (q, c), smaller is met earlier; larger than any real one where no
        lane has the candidate.
    """
    step = np.int64(1) << 32
    ordinal = np.full(ranks[0].shape, len(ranks) * step)
    for number in range(len(ranks) - 1, -1, -1):
        lane = ranks[number]
        ordinal = np.where(lane > 0, number * step + lane, ordinal)
    return ordinal


def behind(ordinal: NDArray[np.int64]) -> Scores:
    """Sort keys behind every score that there is, rising as candidates were first seen.

    Returns:
        Keys, shape (q, c), no two of a query equal.
    """
    columns = np.arange(ordinal.shape[1])
    keys = np.ldexp(1.0 + columns, _FAR)[None]
    if _rising(ordinal):
        return np.broadcast_to(keys, ordinal.shape)
    scattered = np.empty(ordinal.shape)
    np.put_along_axis(scattered, np.argsort(ordinal, axis=1, kind="stable"), keys, axis=1)
    return scattered


def order(scores: Scores, ordinal: NDArray[np.int64]) -> NDArray[np.intp]:
    """Columns of each query by score descending, equal scores as they were first seen.

    Returns:
        A permutation of the columns, shape (q, c).
    """
    if _rising(ordinal):
        return np.argsort(-scores, axis=1, kind="stable")
    return np.lexsort((ordinal, -scores), axis=1)


def listed(
    scores: Scores, ordinal: NDArray[np.int64], alive: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """The same, those in the list before the others, who stand as they were first seen."""
    return order(np.where(alive, scores, -np.inf), ordinal)


def _rising(ordinal: NDArray[np.int64]) -> bool:
    return bool((ordinal[:, 1:] >= ordinal[:, :-1]).all())


def _normalised(fused: Scores, best: Scores) -> Scores:
    counted = best > 0
    fused /= np.where(counted, best, 1.0)[:, None]
    fused[~counted] = 0.0
    return np.minimum(fused, 1.0, out=fused)


def _one_weight_each(ranks: Sequence[Ranks], weights: Sequence[float]) -> None:
    if len(weights) != len(ranks) or not ranks:
        raise StageError(
            f"fusion needs one weight per lane and a lane, got {len(weights)=} {len(ranks)=}"
        )
