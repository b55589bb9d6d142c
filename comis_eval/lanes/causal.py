"""The causal lane: memories one cause or effect away from the best hits.

Source: specification of MemoryRecall, section 3, Later lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import LaneError
from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.ragged import join
from comis_eval.lanes.spreading import (
    Allowed,
    Found,
    Seeds,
    by_query,
    ranked,
    seeds_of,
    strongest,
)
from comis_eval.store.corpus import Corpus


class Links(NamedTuple):
    """Cause and effect between memories, one link an element.

    Attributes:
        from_rows: Memory rows of the causes, shape (n,).
        to_rows: Memory rows of the effects, shape (n,).
        confidence: How sure each link is, in [0, 1], shape (n,).
    """

    from_rows: NDArray[np.int32]
    to_rows: NDArray[np.int32]
    confidence: NDArray[np.float64]


def spread(
    seed_rows: NDArray[np.int32],
    corpus: Corpus,
    batch_scope: NDArray[np.int32],
    links: Links,
    *,
    cap: int,
    allowed: Allowed,
) -> LaneHits:
    """Rank the causes and effects of the seeds in the query's tenancy.

    Args:
        seed_rows: Seeds of each query, shape (q, s), padded with -1. A seed of another
            tenancy leads nowhere.
        corpus: The memories.
        batch_scope: Tenancy number of each query, shape (q,); -1 when it has no memory.
        links: Followed one hop, both ways.
        cap: How many memories a query gets at most, >= 1.
        allowed: Filters (query, memory) pairs, by expiry or type say, before the cap.

    Returns:
        Best confidence descending, ties by memory id ascending (code points), seeds left
        out. The score is the confidence.

    Raises:
        LaneError: If a confidence is not in [0, 1].
    """
    unusable = ~((links.confidence >= 0) & (links.confidence <= 1))
    if unusable.any():
        place = int(unusable.argmax())
        cause, effect = (corpus.memories[rows[place]].id for rows in links[:2])
        raise LaneError(
            f"the link from {cause!r} to {effect!r} has confidence {links.confidence[place]}; "
            "it must be in [0, 1]"
        )
    seeds = seeds_of(seed_rows, len(corpus))
    return ranked(
        _linked(seeds, corpus, batch_scope, links),
        corpus.id_rank,
        score=lambda confidence: confidence,
        cap=cap,
        allowed=allowed,
        count=len(batch_scope),
    )


def _linked(
    seeds: Seeds, corpus: Corpus, batch_scope: NDArray[np.int32], links: Links
) -> Iterator[Found]:
    near = np.concatenate((links.from_rows, links.to_rows)).astype(np.int64)
    far = np.concatenate((links.to_rows, links.from_rows)).astype(np.int64)
    confidence = np.concatenate((links.confidence, links.confidence))
    order = np.argsort(near, kind="stable")
    near, far, confidence = near[order], far[order], confidence[order]
    usable = corpus.scope[seeds.rows] == batch_scope[seeds.queries]
    queries, rows = seeds.queries[usable], seeds.rows[usable]
    first = np.searchsorted(near, rows)
    sizes = np.searchsorted(near, rows, side="right") - first
    for block in by_query(queries, sizes, len(batch_scope)):
        owners, positions = join(first[block], sizes[block])
        asking, reached = queries[block][owners], far[positions]
        keys = asking * len(corpus) + reached
        keep = ~seeds.hold(keys) & (corpus.scope[reached] == batch_scope[asking])
        yield strongest(keys[keep], confidence[positions][keep], len(corpus))
