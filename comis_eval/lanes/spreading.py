"""What the lanes that start from seeds have in common: pairs of a query and a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits, gather, head, places
from comis_eval.lanes.ragged import blocks

Allowed = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Tells which (query, memory row) pairs may be returned, one answer a pair."""

_PAIRS = 1 << 20
"""Pairs that are held at a time."""

_RUN = 16
"""Neighbouring pairs of which only the strongest is looked at when the weak are sorted out."""


class Seeds(NamedTuple):
    """Distinct (query, seed) pairs, sorted by query then row.

    Attributes:
        queries: Shape (n,).
        rows: Memory rows, shape (n,).
        keys: query x memories + row, shape (n,), ascending.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]

    def hold(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which (query, memory) keys are a seed of their query."""
        return np.isin(keys, self.keys)


class Found(NamedTuple):
    """Distinct (query, memory) pairs, by ascending query, with what ranks them.

    Attributes:
        queries: Shape (n,).
        rows: Memory rows, shape (n,).
        strength: Higher comes first, shape (n,).
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    strength: NDArray[np.float64]

    def at(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Found:
        """Return some of the pairs: those at positions, or those of a mask."""
        return Found(self.queries[which], self.rows[which], self.strength[which])


def seeds_of(seed_rows: NDArray[np.int32], memories: int) -> Seeds:
    """Return the distinct seeds of a query set.

    Args:
        seed_rows: Memory rows, shape (q, s), padded with -1.
        memories: How many memories there are.
    """
    queries, places = np.nonzero(seed_rows >= 0)
    keys = np.unique(queries * memories + seed_rows[queries, places])
    return Seeds(keys // max(memories, 1), keys % max(memories, 1), keys)


def by_query(queries: NDArray[np.int64], sizes: NDArray[np.int64], count: int) -> Iterator[slice]:
    """Cut items into blocks of whole queries, so that no join grows beyond memory.

    Args:
        queries: The query of each item, ascending, shape (n,).
        sizes: How many pairs each item becomes, shape (n,).
        count: How many queries there are.
    """
    totals = np.bincount(queries, weights=sizes, minlength=count).astype(np.int64)
    for block in blocks(totals, _PAIRS):
        start, stop = np.searchsorted(queries, (block.start, block.stop))
        if start < stop:
            yield slice(start, stop)


def strongest(keys: NDArray[np.int64], strength: NDArray[np.float64], memories: int) -> Found:
    """Keep the strongest of every (query, memory) pair.

    Args:
        keys: query x memories + row, in any order, shape (n,).
        strength: Shape (n,).
        memories: How many memories there are.
    """
    order = np.lexsort((-strength, keys))
    distinct, first = np.unique(keys[order], return_index=True)
    return Found(distinct // memories, distinct % memories, strength[order][first])


def ranked(
    parts: Iterable[Found],
    tie_rank: NDArray[np.int32],
    *,
    score: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    cap: int,
    allowed: Allowed,
    count: int,
) -> LaneHits:
    """Rank what was found: strength descending, then tie rank ascending, cut to the cap.

    Args:
        parts: Pairs of whole queries.
        tie_rank: Of each memory, shape (m,).
        score: Makes the lane's score of a strength.
        cap: How many memories a query gets at most, >= 1.
        allowed: Filters the pairs, before the cap.
        count: How many queries there are.
    """
    exhausted = np.ones(count, dtype=bool)
    kept = [Found(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))]
    for part in parts:
        found = part.at(allowed(part.queries, part.rows))
        exhausted[found.queries[~head(found.queries, cap)]] = False
        found = found.at(_contenders(found, cap))
        found = found.at(np.lexsort((tie_rank[found.rows], -found.strength, found.queries)))
        kept.append(found.at(head(found.queries, cap)))
    queries, rows, strength = (np.concatenate(columns) for columns in zip(*kept, strict=True))
    return gather(queries, rows, score(strength), exhausted=exhausted)


def _contenders(found: Found, cap: int) -> NDArray[np.bool_]:
    """Tell which pairs can be among a query's first ``cap``; sorting all would take longer.

    Of the strongest of each run, the ``cap``-th bounds the ``cap``-th of all from below.
    """
    first = np.flatnonzero(places(found.queries) % _RUN == 0)
    if not len(first):
        return np.zeros(0, dtype=bool)
    peaks, queries = np.maximum.reduceat(found.strength, first), found.queries[first]
    order = np.lexsort((-peaks, queries))
    bounding = order[places(queries) == cap - 1]
    bounds = np.full(found.queries[-1] + 1, -np.inf)
    bounds[queries[bounding]] = peaks[bounding]
    contending: NDArray[np.bool_] = found.strength >= bounds[found.queries]
    return contending
