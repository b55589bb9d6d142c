"""The vector arm of the recall tool: a memory is as near as the nearest of its parts.

Long memories are embedded in parts, each behind the memory's key and tags, so that every
part can be found by them. Parts are searched like memories, deep enough that those of one
memory take no other's place. Source: specification of the recall tool, section 3.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes import vector
from comis_eval.lanes.base import LaneHits, gather, head
from comis_eval.store.corpus import QueryBatch
from comis_eval.store.tool_corpus import ToolCorpus, Views
from comis_eval.types import Memory


class Parts(NamedTuple):
    """What is embedded of a corpus.

    Attributes:
        texts: One a part.
        owners: Memory row of each part, ascending, shape (p,).
    """

    texts: tuple[str, ...]
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: ToolCorpus, chars: int) -> Parts:
        """Cut every memory into parts of at most so many characters of content."""
        pairs = [
            (text, row)
            for row, memory in enumerate(corpus.memories)
            for text in part_texts(memory, chars)
        ]
        owners = np.array([row for _, row in pairs], dtype=np.int64)
        return cls(tuple(text for text, _ in pairs), owners)


def part_texts(memory: Memory, chars: int) -> list[str]:
    """Return the texts that are embedded of a memory: key, tags, and a part of its content.

    A part ends at the last white space within its length, or is cut there.
    """
    before = " ".join((memory.key or "", *memory.tags))
    return [f"{before} {part}" for part in _pieces(memory.content, chars)]


def _pieces(content: str, chars: int) -> list[str]:
    pieces: list[str] = []
    rest = content.strip()
    while len(rest) > chars:
        space = next((at for at in range(chars, 0, -1) if rest[at].isspace()), 0)
        end = space or chars
        pieces.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*pieces, rest] if rest or not pieces else pieces


class PartIndex:
    """Vectors of parts, searched by memory.

    Args:
        corpus: The memories.
        owners: Memory row of each part, shape (p,).
        vectors: One a part, shape (p, dim), float32.
        has: Which parts have one, shape (p,).
    """

    def __init__(
        self,
        corpus: ToolCorpus,
        owners: NDArray[np.int64],
        vectors: NDArray[np.float32],
        has: NDArray[np.bool_],
    ) -> None:
        self.corpus = corpus
        self.owners = owners
        # The vector lane knows rows of a corpus: one whose memories are the parts.
        parts = replace(corpus, memories=tuple(corpus.memories[row] for row in owners.tolist()))
        self.index = vector.VectorIndex(parts, vectors, has)


def search(index: PartIndex, batch: QueryBatch, views: Views, *, depth: int) -> LaneHits:
    """Rank memories by the cosine of their nearest part: best first, then newest, then key.

    Args:
        index: The parts.
        batch: The queries with their vectors, one of zeros skips its query.
        views: Which memories each query may be answered from.
        depth: How many memories a query gets at most, >= 1.

    Raises:
        LaneError: As the vector lane does.
    """
    owners, corpus = index.owners, index.corpus

    def allowed(queries: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.bool_]:
        return views.allow(queries, owners[parts])

    asked = replace(batch, allowed=allowed)
    reach = depth
    while True:
        hits = vector.search(index.index, asked, depth=reach, scope_filter="in_lane")
        queries = np.repeat(np.arange(len(batch), dtype=np.int64), hits.lengths)
        rows = owners[hits.rows]
        # Parts stand best first, so a memory's first one is its nearest.
        _, first = np.unique(queries * len(corpus) + rows, return_index=True)
        counts = np.bincount(queries[first], minlength=len(batch))
        if (hits.exhausted | (counts >= depth)).all():
            break
        reach *= 4
    queries, rows, scores = queries[first], rows[first], hits.scores[first]
    order = np.lexsort((corpus.key_rank[rows], -corpus.created_at[rows], -scores, queries))
    queries, rows, scores = queries[order], rows[order], scores[order]
    kept = head(queries, depth)
    exhausted = hits.exhausted & (counts <= depth)
    return gather(queries[kept], rows[kept], scores[kept], exhausted=exhausted)
