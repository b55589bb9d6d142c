"""The entity lane: memories that share entities with the best hits of the other lanes.

Source: specification of MemoryRecall, section 3, Entity lane, and its appendix.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.ragged import join
from comis_eval.lanes.spreading import Allowed, Found, Seeds, by_query, ranked, seeds_of
from comis_eval.store.corpus import Corpus


def spread(
    seed_rows: NDArray[np.int32],
    corpus: Corpus,
    batch_scope: NDArray[np.int32],
    *,
    cap: int,
    reenter: bool,
    allowed: Allowed,
) -> LaneHits:
    """Rank memories of the query's tenancy by how many of the seeds' entities they mention.

    Args:
        seed_rows: Seeds of each query, shape (q, s), padded with -1; repeats count once.
        corpus: The memories and their entities. An entity belongs to one tenancy, so a
            seed of another tenancy leads nowhere.
        batch_scope: Tenancy number of each query, shape (q,); -1 when it has no memory.
        cap: How many memories a query gets at most, >= 1.
        reenter: Whether a seed is returned when it shares an entity with another seed; it
            then counts the entities it shares with others. False: seeds are never returned.
        allowed: Filters (query, memory) pairs, by expiry or type say, before the cap.

    Returns:
        Count descending, ties by memory id descending (code points); the score is
        tanh(count / 2).
    """
    seeds = seeds_of(seed_rows, len(corpus))
    return ranked(
        _shared_counts(seeds, corpus, batch_scope, reenter=reenter),
        -corpus.id_rank,
        score=lambda counts: np.tanh(counts / 2),
        cap=cap,
        allowed=allowed,
        count=len(batch_scope),
    )


def _shared_counts(
    seeds: Seeds, corpus: Corpus, batch_scope: NDArray[np.int32], *, reenter: bool
) -> Iterator[Found]:
    """Count the entities each memory shares with seeds other than itself."""
    incidence = corpus.entities
    starts = np.searchsorted(incidence.rows, seeds.rows)
    mentions = np.searchsorted(incidence.rows, seeds.rows, side="right") - starts
    owners, positions = join(starts, mentions)
    # The entities of each query's seeds, with how many seeds mention them.
    names = max(len(incidence.names), 1)
    pairs, mentioning = np.unique(
        seeds.queries[owners] * names + incidence.entities[positions], return_counts=True
    )
    queries, entities = pairs // names, pairs % names
    first = corpus.holders.starts[entities]
    sizes = corpus.holders.starts[entities + 1] - first
    for block in by_query(queries, sizes, len(batch_scope)):
        owners, positions = join(first[block], sizes[block])
        asking, rows = queries[block][owners], corpus.holders.rows[positions]
        keys = asking * len(corpus) + rows
        keep = corpus.scope[rows] == batch_scope[asking]
        # A seed shares an entity with another seed when two seeds mention it.
        keep &= ~seeds.hold(keys) | (reenter & (mentioning[block][owners] > 1))
        distinct, counts = np.unique(keys[keep], return_counts=True)
        yield Found(distinct // len(corpus), distinct % len(corpus), counts.astype(np.float64))
