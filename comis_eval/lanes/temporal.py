"""The temporal lane: memories that happened near the best hits of the search lanes.

Source: specification of MemoryRecall, section 3, Later lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.ragged import join
from comis_eval.lanes.spreading import Allowed, Found, Seeds, by_query, ranked, seeds_of
from comis_eval.store.corpus import UNKNOWN, Corpus

DAY_MS = 86_400_000

_LONGEST_MS = 1 << 60
"""A window beyond any time there is, which still can be added to one."""


def spread(
    seed_rows: NDArray[np.int32],
    corpus: Corpus,
    batch_scope: NDArray[np.int32],
    *,
    window_days: int,
    cap: int,
    allowed: Allowed,
    with_seeds: bool = False,
) -> LaneHits:
    """Rank memories of the query's tenancy by how near to a seed they happened.

    Args:
        seed_rows: Seeds of each query, shape (q, s), padded with -1. A seed without an
            event time or of another tenancy leads nowhere.
        corpus: The memories.
        batch_scope: Tenancy number of each query, shape (q,); -1 when it has no memory.
        window_days: How far from a seed's time counts, days, inclusive, > 0.
        cap: How many memories a query gets at most, >= 1.
        allowed: Filters (query, memory) pairs, by expiry or type say, before the cap.
        with_seeds: Keep seeds and what happened at exactly a seed's time: what could be
            reached if some of the seeds were none.

    Returns:
        Nearest to any seed first, ties by memory id ascending (code points). Seeds and
        memories at exactly a seed's time are else left out. The score is 1 / (1 + days).
    """
    seeds = seeds_of(seed_rows, len(corpus))
    window = min(window_days * DAY_MS, _LONGEST_MS)
    return ranked(
        _neighbours(seeds, corpus, batch_scope, window, with_seeds=with_seeds),
        corpus.id_rank,
        score=lambda nearness: 1 / (1 - nearness / DAY_MS),
        cap=cap,
        allowed=allowed,
        count=len(batch_scope),
    )


def _neighbours(
    seeds: Seeds,
    corpus: Corpus,
    batch_scope: NDArray[np.int32],
    window: int,
    *,
    with_seeds: bool,
) -> Iterator[Found]:
    """Find what happened near seeds; strength is minus the distance to the nearest, ms."""
    times = corpus.occurred_at
    timed = np.flatnonzero(times != UNKNOWN)
    timed = timed[np.lexsort((times[timed], corpus.scope[timed]))]
    distinct, ranks = np.unique(times[timed], return_inverse=True)
    # Tenancy and time in one ascending number, so that one search finds a window.
    slots = len(distinct) + 1
    line = corpus.scope[timed].astype(np.int64) * slots + ranks
    queries, centres, earliest, latest = _windows(seeds, corpus, batch_scope, window)
    base = batch_scope[queries].astype(np.int64) * slots
    first = np.searchsorted(line, base + np.searchsorted(distinct, earliest))
    after = np.searchsorted(line, base + np.searchsorted(distinct, latest, side="right"))
    sizes = after - first
    for block in by_query(queries, sizes, len(batch_scope)):
        owners, positions = join(first[block], sizes[block])
        near = timed[positions]
        distance = np.abs(times[near] - centres[block][owners])
        found = Found(queries[block][owners], near, -distance.astype(np.float64))
        # Seeds go with what happened at exactly a seed's time.
        yield found if with_seeds else found.at(distance > 0)


def _windows(
    seeds: Seeds, corpus: Corpus, batch_scope: NDArray[np.int32], window: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return query, seed time, earliest and latest time of the windows around the seeds.

    Between two seeds of a query a window ends halfway, so that nothing is in two of them
    and everything in that of its nearest seed.
    """
    times = corpus.occurred_at[seeds.rows]
    usable = (times != UNKNOWN) & (corpus.scope[seeds.rows] == batch_scope[seeds.queries])
    queries, times = seeds.queries[usable], times[usable]
    order = np.lexsort((times, queries))
    queries, times = queries[order], times[order]
    earliest, latest = times - window, times + window
    halfway = (times[:-1] + times[1:]) // 2
    same = queries[:-1] == queries[1:]
    latest[:-1][same] = np.minimum(latest[:-1], halfway)[same]
    earliest[1:][same] = np.maximum(earliest[1:], halfway + 1)[same]
    return queries, times, earliest, latest
