"""What every search lane returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Statistics = Literal["scope", "table"]
"""Whether a term weighs by the memories of the query's tenancy or by all of them."""

ScopeFilter = Literal["in_lane", "after_fusion"]
"""Whether only what is eligible for the query is ranked, or all rows."""


class LaneHits(NamedTuple):
    """Ranked memory rows of a whole query set, flattened query after query, best first.

    Attributes:
        offsets: Query q's hits are ``offsets[q]:offsets[q + 1]``, shape (q + 1,).
        rows: Memory rows, shape (n,), int32, no repeats within a query.
        scores: The lane's own score of each hit, shape (n,), float64, higher is better
            (for fts: bm25 negated). Only for display: ranks alone enter the fusion.
        exhausted: True where the lane had nothing deeper to give, shape (q,).
    """

    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    scores: NDArray[np.float64]
    exhausted: NDArray[np.bool_]

    def of(self, query: int) -> NDArray[np.int32]:
        """Rows of one query, best first."""
        return self.rows[self.offsets[query] : self.offsets[query + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Hits per query, shape (q,)."""
        return np.diff(self.offsets)

    @property
    def ranks(self) -> NDArray[np.int32]:
        """Rank of each hit within its query, from 1, shape (n,)."""
        positions = np.arange(1, len(self.rows) + 1) - np.repeat(self.offsets[:-1], self.lengths)
        return positions.astype(np.int32)


def gather(
    queries: NDArray[np.int64],
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    *,
    exhausted: NDArray[np.bool_],
) -> LaneHits:
    """Put hits that were found group by group into the order of the query set.

    Args:
        queries: Which query each hit is of, shape (n,); a query's hits stand best first.
        rows: Memory rows, shape (n,).
        scores: The lane's scores, shape (n,).
        exhausted: One a query, shape (q,).
    """
    order = np.argsort(queries, kind="stable")
    counts = np.bincount(queries, minlength=len(exhausted))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return LaneHits(offsets, rows[order].astype(np.int32), scores[order], exhausted)


def places(queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each hit's place within its query, from 0; ``queries`` is ascending."""
    first = np.flatnonzero(np.diff(queries, prepend=-1))
    counts = np.diff(first, append=len(queries))
    found: NDArray[np.int64] = np.arange(len(queries)) - np.repeat(first, counts)
    return found


def head(queries: NDArray[np.int64], depth: int) -> NDArray[np.bool_]:
    """Tell which hits are among the first ``depth`` of their query.

    Args:
        queries: Which query each hit is of, >= 0, ascending, shape (n,).
        depth: How many to keep, >= 0.
    """
    kept: NDArray[np.bool_] = places(queries) < depth
    return kept


def by_scope(
    scope: NDArray[np.int32], queries: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Group queries by tenancy; those of a tenancy without memories are left out.

    Args:
        scope: Tenancy number of every query of the batch, shape (q,).
        queries: The queries to group, ascending, shape (n,).
    """
    theirs = scope[queries]
    for number in np.unique(theirs[theirs >= 0]).tolist():
        yield number, queries[theirs == number]
