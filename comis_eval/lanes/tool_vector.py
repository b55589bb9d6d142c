"""The vector arm of the recall tool: a memory is as near as the nearest of its parts.

Long memories are embedded in parts, each behind the memory's key and tags, so that every
part can be found by them. Those of one memory count as its nearest, so they take no other
memory's place. Source: specification of the recall tool, section 3.3.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes import vector
from comis_eval.lanes.base import LaneHits, gather
from comis_eval.store.corpus import QueryBatch
from comis_eval.store.tool_corpus import ToolCorpus, Views
from comis_eval.types import Memory

_PRODUCTS = 1 << 23
"""Products of queries and parts that are kept at a time."""

_BLOCK = 512
"""Parts that are brought together and multiplied at a time: they stay in the cache."""


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
        owners: Memory row of each part, ascending, shape (p,).
        vectors: One a part, shape (p, dim), float32.
        has: Which parts have one, shape (p,). ``places`` are those of them that can be found.
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
        self.places = self.index.pointing

    @cached_property
    def units(self) -> NDArray[np.float32]:
        """The parts that have a direction, as vectors of length 1, shape (len(places), dim)."""
        return vector.units(self.index.vectors[self.places], self.index.norms[self.places])


def search(index: PartIndex, batch: QueryBatch, views: Views, *, depth: int) -> LaneHits:
    """Rank memories by the cosine of their nearest part: best first, then newest, then key.

    Only what a query may be answered from is multiplied, in float32; whoever could still be
    among the first is scored again in float64, so that hits depend on their query alone.

    Args:
        index: The parts.
        batch: The queries with their vectors, one of zeros skips its query.
        views: Which memories each query may be answered from.
        depth: How many memories a query gets at most, >= 1.

    Raises:
        LaneError: As the vector lane does.
    """
    asked = vector.checked(index.index, batch)
    norms = np.sqrt(vector.dots(asked, asked))
    exhausted = np.ones(len(batch), dtype=bool)
    nothing = np.empty(0, dtype=np.int64)
    found = [(nothing, nothing, np.empty(0))]
    for view in np.unique(views.which).tolist():
        asking = np.flatnonzero((views.which == view) & (norms > 0))
        parts = _Parts.of(index, views.masks[view])
        if not len(asking) or not len(parts.places):
            continue
        exhausted[asking] = len(parts.starts) <= depth
        step = max(1, _PRODUCTS // len(parts.places))
        for some in np.split(asking, range(step, len(asking), step)):
            products = parts.products(vector.units(asked[some], norms[some]))
            for query, scores in zip(some.tolist(), products, strict=True):
                near = parts.near(scores, depth)
                rows, cosines = _best(index, asked, norms, query, near, depth)
                found.append((np.full(len(rows), query), rows, cosines))
    queries, rows, scores = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return gather(queries, rows, scores, exhausted=exhausted)


class _Parts(NamedTuple):
    """The parts that a view holds.

    Attributes:
        among: All parts.
        places: Which of ``among.places`` they are, ascending, shape (n,).
        starts: Where each memory's parts start in them, shape (o,).
    """

    among: PartIndex
    places: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, index: PartIndex, mask: NDArray[np.bool_]) -> _Parts:
        places = np.flatnonzero(mask[index.owners[index.places]])
        owners = index.owners[index.places[places]]
        return cls(index, places, np.flatnonzero(np.diff(owners, prepend=-1)))

    def products(self, asked: NDArray[np.float32]) -> NDArray[np.float32]:
        """Multiply each query with each part, shape (q, n)."""
        units, places = self.among.units, self.places
        products = np.empty((len(asked), len(places)), dtype=np.float32)
        kept = np.empty((min(_BLOCK, len(places)), units.shape[1]), dtype=np.float32)
        for start in range(0, len(places), _BLOCK):
            some = places[start : start + _BLOCK]
            block = np.take(units, some, axis=0, out=kept[: len(some)], mode="clip")
            products[:, start : start + _BLOCK] = asked @ block.T
        return products

    def near(self, scores: NDArray[np.float32], depth: int) -> NDArray[np.int64]:
        """Return the parts that may be their memory's nearest and among the first."""
        best = np.maximum.reduceat(scores, self.starts)
        if len(best) <= depth:
            return self.among.places[self.places]
        least = np.partition(best, len(best) - depth)[len(best) - depth]
        bound = float(least) - 2 * vector.float32_error(self.among.index.dim)
        return self.among.places[self.places[scores >= bound]]


def _best(
    index: PartIndex,
    asked: NDArray[np.float32],
    norms: NDArray[np.float64],
    query: int,
    near: NDArray[np.int64],
    depth: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Score some parts exactly: the memories that are nearest by one of them, best first."""
    flat, corpus = index.index, index.corpus
    products = vector.dots(asked, flat.vectors, np.full(len(near), query), near)
    cosines = products / (norms[query] * flat.norms[near])
    owners = index.owners[near]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    rows, scores = owners[starts], np.maximum.reduceat(cosines, starts)
    order = np.lexsort((corpus.key_rank[rows], -corpus.created_at[rows], -scores))[:depth]
    return rows[order], scores[order]
