"""How much of the context repeats what already stands above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.metrics.arithmetic import count, share
from comis_eval.metrics.lists import Inputs, Ranked, Values, given

NEAR_BITS = 10
"""Two texts whose 64-bit simhashes differ in at most this many bits count as duplicates."""


def redundancy(listed: Ranked, _: Inputs, __: int) -> Values:
    """Share of memories with a duplicate above them, in [0, 1], undefined when empty.

    Lower is better. Duplicates are those the dataset labels; a dataset without labels is
    judged by simhash distance <= 10.

    Source: Charikar, "Similarity estimation techniques from rounding algorithms", STOC
    2002, for the hash; the threshold is ours.
    """
    if listed.twin is not None:
        repeats = _repeats(listed, listed.twin, _same_cluster)
    else:
        hashes = given(listed.simhash, "duplicate labels (twin) or the simhash of each memory")
        repeats = _repeats(listed, hashes, _near)
    return share(count(repeats), listed.length)


def _repeats(
    listed: Ranked,
    marks: NDArray[Any],
    alike: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    repeats = np.zeros(listed.grade.shape, dtype=bool)
    for rank in range(1, listed.depth):
        repeats[:, rank] = alike(marks[:, :rank], marks[:, rank, None]).any(axis=1)
    return repeats & listed.within(listed.depth)


def _same_cluster(above: NDArray[Any], here: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (above == here) & (here >= 0)
    return same


def _near(above: NDArray[Any], here: NDArray[Any]) -> NDArray[np.bool_]:
    near: NDArray[np.bool_] = np.bitwise_count(above ^ here) <= NEAR_BITS
    return near
