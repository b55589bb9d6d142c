"""The vector lane: exact cosine nearest neighbours, for a whole query set at once.

FAISS proposes, float64 decides. FAISS multiplies a whole block of queries in float32, so
its scores, and with them the order of near ties, depend on which queries share the call.
It is therefore only asked for a few rows more than wanted; those are scored again, each by
a dot product of its own, and its list is widened until nothing it left out can belong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import LaneError
from comis_eval.lanes.base import LaneHits, ScopeFilter, by_scope, gather, head
from comis_eval.store.corpus import Corpus, QueryBatch, eligible

_MARGIN = 32
"""How many rows more than wanted FAISS is asked for at first."""

_NUMBERS = 1 << 20
"""Vector components that are multiplied at a time."""

_PAIRS = 1 << 20
"""Proposals of FAISS that are looked at at a time."""


class Stacked(NamedTuple):
    """Vectors of memories as one matrix.

    Attributes:
        vectors: One row a memory, shape (m, dim), float32; zeros where there is none.
        has: Which memories have one, shape (m,).
    """

    vectors: NDArray[np.float32]
    has: NDArray[np.bool_]


def stack(corpus: Corpus, vectors: Mapping[str, Sequence[float]], *, dim: int) -> Stacked:
    """Bring vectors that came by memory id into the order of the corpus.

    Raises:
        LaneError: If one does not have ``dim`` components, or its memory is unknown.
    """
    matrix = np.zeros((len(corpus), dim), dtype=np.float32)
    has = np.zeros(len(corpus), dtype=bool)
    for memory_id, vector in vectors.items():
        if memory_id not in corpus.row_of:
            raise LaneError(f"there is a vector for memory {memory_id!r}, which does not exist")
        if len(vector) != dim:
            raise LaneError(
                f"the vector of memory {memory_id!r} has {len(vector)} dimensions, not {dim}; "
                "embed all memories with one model"
            )
        row = corpus.row_of[memory_id]
        matrix[row], has[row] = vector, True
    return Stacked(matrix, has)


class VectorIndex:
    """Vectors of a corpus, with a FAISS index a tenancy, built when first searched.

    Args:
        corpus: The memories.
        vectors: One row a memory, shape (m, dim), float32; not changed.
        has: Which memories have a vector, shape (m,). A vector of zeros has no direction
            and is never found; ``pointing`` are the rows of those that have one.

    Raises:
        LaneError: If the shapes do not fit the corpus, or a vector is not finite.
    """

    def __init__(
        self, corpus: Corpus, vectors: NDArray[np.float32], has: NDArray[np.bool_]
    ) -> None:
        if vectors.ndim != 2 or len(vectors) != len(corpus) or has.shape != (len(corpus),):
            raise LaneError(
                f"a corpus of {len(corpus)} memories needs vectors ({len(corpus)}, dim) and has "
                f"({len(corpus)},), got {vectors.shape} and {has.shape}"
            )
        unusable = has & ~np.isfinite(vectors).all(axis=1)
        if unusable.any():
            memory = corpus.memories[int(unusable.argmax())]
            raise LaneError(
                f"the vector of memory {memory.id!r} holds NaN or infinity; embed it again"
            )
        self.corpus = corpus
        self.vectors = vectors
        self.norms = np.sqrt(dots(vectors, vectors))
        self.pointing = np.flatnonzero(has & (self.norms > 0))
        self._parts: dict[int | None, tuple[NDArray[np.int64], Any]] = {}

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    def part(self, scope: int | None) -> tuple[NDArray[np.int64], Any]:
        """Return the rows of a tenancy, or of all (None), and the FAISS index over them."""
        if scope not in self._parts:
            import faiss

            rows = self.pointing
            if scope is not None:
                rows = rows[self.corpus.scope[rows] == scope]
            flat = faiss.IndexFlatIP(self.dim)
            if len(rows):
                flat.add(units(self.vectors[rows], self.norms[rows]))
            self._parts[scope] = rows, flat
        return self._parts[scope]


def search(
    index: VectorIndex,
    batch: QueryBatch,
    *,
    depth: int,
    scope_filter: ScopeFilter,
) -> LaneHits:
    """Rank memories by cosine for every query: nearest first, equal ones in row order.

    Args:
        index: The memories' vectors.
        batch: The queries, with their vectors; a vector of zeros skips its query, a blank
            text with another vector does not.
        depth: How many memories a query gets at most, >= 1.
        scope_filter: ``in_lane`` ranks what is eligible for the query, ``after_fusion`` all
            rows, expired ones and other tenancies' included.

    Returns:
        Scores are cosines in float64. A query's hits depend on it alone, to the last bit.

    Raises:
        LaneError: If there are no query vectors, their dimension is not the memories', or
            one is not finite.
    """
    asked = checked(index, batch)
    norms = np.sqrt(dots(asked, asked))
    exhausted = np.ones(len(batch), dtype=bool)
    found = [_Hits(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))]
    for scope, asking in _groups(batch, norms, scope_filter):
        rows, _ = index.part(scope)
        unsettled, width = (asking if len(rows) else asking[:0]), depth + _MARGIN
        while len(unsettled):
            width = min(width, len(rows))  # FAISS pads beyond with -1
            step = max(1, _PAIRS // width)
            left = []
            for queries in np.split(unsettled, range(step, len(unsettled), step)):
                hits, bound = _candidates(index, asked, norms, queries, scope, width)
                if scope is not None:
                    hits = hits.at(eligible(index.corpus, batch, hits.queries, hits.rows))
                lines = np.searchsorted(queries, hits.queries)
                counts = np.bincount(lines, minlength=len(queries))
                sure = np.bincount(lines[hits.scores > bound[lines]], minlength=len(queries))
                done = (sure >= depth) | (width == len(rows))
                exhausted[queries] = (width == len(rows)) & (counts <= depth)
                found.append(_best(hits.at(done[lines]), depth))
                left.append(queries[~done])
            unsettled, width = np.concatenate(left), 4 * width
    queries, hit_rows, scores = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return gather(queries, hit_rows, scores, exhausted=exhausted)


class _Hits(NamedTuple):
    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]

    def at(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> _Hits:
        """Return some of the hits: those at positions, or those of a mask."""
        return _Hits(self.queries[which], self.rows[which], self.scores[which])


def checked(index: VectorIndex, batch: QueryBatch) -> NDArray[np.float32]:
    """Return the vectors of a batch, shape (q, dim).

    Raises:
        LaneError: If there are none, or they cannot be compared with the index's.
    """
    if batch.vectors is None:
        raise LaneError("the vector lane needs query vectors; configure an embedder or drop it")
    if batch.vectors.shape != (len(batch), index.dim):
        raise LaneError(
            f"{len(batch)} queries and memories of {index.dim} dimensions need query vectors "
            f"({len(batch)}, {index.dim}), got {batch.vectors.shape}; embed both with one model"
        )
    unusable = ~np.isfinite(batch.vectors).all(axis=1)
    if unusable.any():
        query = int(unusable.argmax())
        raise LaneError(
            f"the vector of query {query} ({batch.texts[query][:60]!r}) holds NaN or infinity; "
            "embed it again"
        )
    return batch.vectors


def _groups(
    batch: QueryBatch, norms: NDArray[np.float64], scope_filter: ScopeFilter
) -> Iterator[tuple[int | None, NDArray[np.int64]]]:
    """Queries with a direction, ascending, by the tenancy they search (None: all)."""
    pointing = np.flatnonzero(norms > 0)
    if scope_filter == "after_fusion":
        yield None, pointing
        return
    yield from by_scope(batch.scope, pointing)


def _candidates(
    index: VectorIndex,
    asked: NDArray[np.float32],
    norms: NDArray[np.float64],
    queries: NDArray[np.int64],
    scope: int | None,
    width: int,
) -> tuple[_Hits, NDArray[np.float64]]:
    """Return what FAISS proposes, scored again, and what cosine nothing else can exceed.

    The hits stand query after query, ``width`` each; the bounds have shape (q,).
    """
    import faiss

    rows, flat = index.part(scope)
    # A process forked after a search on several threads hangs in its own first search.
    faiss.omp_set_num_threads(1)
    products, places = flat.search(units(asked[queries], norms[queries]), width)
    bound = products[:, -1].astype(np.float64) + float32_error(index.dim)
    owners, near = np.repeat(queries, width), rows[places.ravel()]
    cosines = dots(asked, index.vectors, owners, near) / (norms[owners] * index.norms[near])
    return _Hits(owners, near, cosines), bound


def float32_error(dim: int) -> float:
    """By how much a float32 dot product of unit vectors is off at most."""
    return (dim + 8) * 2.0**-24


def _best(hits: _Hits, depth: int) -> _Hits:
    ordered = hits.at(np.lexsort((hits.rows, -hits.scores, hits.queries)))
    return ordered.at(head(ordered.queries, depth))


def dots(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    a_rows: NDArray[np.int64] | None = None,
    b_rows: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Dot product of row pairs (all of both, without rows), in float64, each on its own."""
    a_rows = np.arange(len(a)) if a_rows is None else a_rows
    b_rows = np.arange(len(b)) if b_rows is None else b_rows
    products = np.empty(len(a_rows))
    step = max(1, _NUMBERS // max(1, a.shape[1]))
    for first in range(0, len(a_rows), step):
        part = slice(first, first + step)
        # Not a matrix product: its sums depend on how many rows there are.
        terms = a[a_rows[part]].astype(np.float64) * b[b_rows[part]]
        products[part] = terms.sum(axis=1)
    return products


def units(vectors: NDArray[np.float32], norms: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return vectors of length 1, shape (n, dim); no norm may be 0."""
    return np.ascontiguousarray(vectors / norms[:, None], dtype=np.float32)
