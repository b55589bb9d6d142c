"""Keyword search over postings, term at a time, for a whole query set.

Shared by the keyword lanes, which differ in what a term weighs. A memory's score for a
query is the sum over the query's terms, repeats included and in the query's order, of

    idf x (tf x (k1 + 1)) / (tf + k1 x (1 - b + b x length / average length))

computed in exactly this order, so that equal arithmetic gives equal bits. Source: Robertson
and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits, ScopeFilter, Statistics, by_scope, gather, head
from comis_eval.lanes.ragged import blocks, join
from comis_eval.lanes.terms import Occurrences
from comis_eval.store.corpus import Corpus, QueryBatch, eligible

_CELLS = 1 << 20
"""Scores held at a time: queries x memories."""

_POSTINGS = 1 << 18
"""Postings added up at a time."""


@dataclass(frozen=True, eq=False)
class Postings:
    """Which memory holds which term how often, sorted by term, tenancy, row.

    Terms are numbers; a tenancy's part of a term's postings is one range.

    Attributes:
        corpus: The memories.
        keys: term x number of tenancies + tenancy, shape (n,).
        rows: Memory rows, shape (n,).
        counts: How often the term occurs, shape (n,), float64.
        lengths: Terms of each memory, shape (m,), float64.
        terms: How many terms there are.
    """

    corpus: Corpus
    keys: NDArray[np.int64]
    rows: NDArray[np.int64]
    counts: NDArray[np.float64]
    lengths: NDArray[np.float64]
    terms: int

    @classmethod
    def of(cls, corpus: Corpus, found: Occurrences) -> Postings:
        """Count the occurrences found in the memories' contents."""
        terms = np.repeat(np.arange(len(found.terms)), np.diff(found.starts))
        lengths = np.bincount(found.texts, minlength=len(corpus)).astype(np.float64)
        nothing = np.empty(0, dtype=np.int64)
        empty = cls(corpus, nothing, nothing, nothing.astype(np.float64), lengths, 0)
        return empty.plus(terms, found.texts, len(found.terms))

    def plus(self, terms: NDArray[np.int64], rows: NDArray[np.int64], count: int) -> Postings:
        """Return these postings with more terms.

        Args:
            terms: The new term of each occurrence, counted from 0, shape (n,).
            rows: Its memory row, shape (n,).
            count: How many new terms there are.
        """
        corpus = self.corpus
        keys = (terms + self.terms) * len(corpus.tenancies) + corpus.scope[rows]
        cells, counts = np.unique(keys * len(corpus) + rows, return_counts=True)
        return Postings(
            corpus,
            np.concatenate((self.keys, cells // max(len(corpus), 1))),
            np.concatenate((self.rows, cells % max(len(corpus), 1))),
            np.concatenate((self.counts, counts.astype(np.float64))),
            self.lengths,
            self.terms + count,
        )

    def ranges(
        self, terms: NDArray[np.int64], scope: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return start and size of each term's postings in one tenancy, or in all (None)."""
        scopes = len(self.corpus.tenancies)
        first = terms * scopes + (scope or 0)
        after = first + (scopes if scope is None else 1)
        starts = np.searchsorted(self.keys, first)
        return starts, np.searchsorted(self.keys, after) - starts

    def members(self, scope: int | None) -> NDArray[np.int64]:
        """Rows of one tenancy, or of all (None), ascending."""
        if scope is None:
            return np.arange(len(self.corpus))
        start, end = np.searchsorted(self._scopes, (scope, scope + 1))
        return self._by_scope[start:end]

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Each row's position among the rows of its tenancy, shape (m,)."""
        places = np.empty(len(self.corpus), dtype=np.int64)
        starts = np.searchsorted(self._scopes, self._scopes)
        places[self._by_scope] = np.arange(len(places)) - starts
        return places

    @cached_property
    def _by_scope(self) -> NDArray[np.int64]:
        return np.argsort(self.corpus.scope, kind="stable")

    @cached_property
    def _scopes(self) -> NDArray[np.int32]:
        return self.corpus.scope[self._by_scope]


class Asked(NamedTuple):
    """The terms of a query set, query after query, in each query's order.

    Attributes:
        starts: Query q's terms are ``terms[starts[q]:starts[q + 1]]``, shape (q + 1,).
        terms: Term numbers, shape (n,), repeats kept; -1 where no memory holds the term.
    """

    starts: NDArray[np.int64]
    terms: NDArray[np.int64]


class Weighting(Protocol):
    """What a term weighs, by the statistics of one tenancy or of all (None)."""

    k1: float
    b: float

    def average_length(self, scope: int | None) -> float:
        """Mean number of terms a memory has, > 0."""

    def idf(self, terms: NDArray[np.int64], scope: int | None) -> NDArray[np.float64]:
        """Weight of each term, shape (n,); a term that weighs nothing (0) finds nothing."""


def rank(
    postings: Postings,
    weighting: Weighting,
    asked: Asked,
    batch: QueryBatch,
    *,
    depth: int,
    statistics: Statistics,
    scope_filter: ScopeFilter,
) -> LaneHits:
    """Rank memories for every query: score descending, then row.

    Args:
        postings: The memories by term.
        weighting: What a term weighs.
        asked: The queries' terms.
        batch: The queries.
        depth: How many memories a query gets at most, >= 1.
        statistics: Whether terms weigh by the query's tenancy or by the whole table; of a
            tenancy without memories, or of empty ones, nothing is known or found.
        scope_filter: ``in_lane`` ranks what is eligible for the query, ``after_fusion`` all
            rows, expired ones and other tenancies' included.
    """
    exhausted = np.ones(len(batch), dtype=bool)
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))]
    for scope, queries in _groups(batch, statistics, scope_filter):
        searched = scope if scope_filter == "in_lane" else None
        known = scope if statistics == "scope" else None
        if not postings.lengths[postings.members(known)].any():
            continue
        weighed = _weigh(postings, weighting, asked, queries, known)
        members = postings.members(searched)
        step = max(1, _CELLS // max(1, len(members)))
        for first in range(0, len(queries), step):
            part = slice(first, first + step)
            scores = weighed.score(part, searched)
            if searched is not None:
                _drop_ineligible(scores, postings.corpus, batch, queries[part], members)
            exhausted[queries[part]] = np.count_nonzero(scores, axis=1) <= depth
            asking, places, best = _top(scores, depth)
            found.append((queries[part][asking], members[places], best))
    owners, rows, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return gather(owners, rows, scores, exhausted=exhausted)


def _groups(
    batch: QueryBatch, statistics: Statistics, scope_filter: ScopeFilter
) -> Iterator[tuple[int | None, NDArray[np.int64]]]:
    """Queries that search the same rows by the same statistics."""
    if statistics == "table" and scope_filter == "after_fusion":
        yield None, np.arange(len(batch))
        return
    yield from by_scope(batch.scope, np.arange(len(batch)))


class _Weighed(NamedTuple):
    """A group of queries with what its terms weigh.

    Attributes:
        postings: The memories by term.
        starts: Bounds of each query's terms in the arrays below, shape (g + 1,).
        terms: Terms that some memory holds and that weigh something, shape (n,).
        idf: Their weights, shape (n,).
        drag: The part of the denominator that a memory's length makes, shape (m,).
        gain: k1 + 1.
    """

    postings: Postings
    starts: NDArray[np.int64]
    terms: NDArray[np.int64]
    idf: NDArray[np.float64]
    drag: NDArray[np.float64]
    gain: float

    def score(self, part: slice, scope: int | None) -> NDArray[np.float64]:
        """Score the searched rows for some queries of the group, shape (part, rows)."""
        postings = self.postings
        bounds = self.starts[part.start : part.stop + 1]
        asking = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        terms, idf = self.terms[bounds[0] : bounds[-1]], self.idf[bounds[0] : bounds[-1]]
        starts, sizes = postings.ranges(terms, scope)
        width = len(postings.members(scope))
        scores = np.zeros((len(bounds) - 1) * width)
        for block in blocks(sizes, _POSTINGS):
            term, positions = join(starts[block], sizes[block])
            rows, counts = postings.rows[positions], postings.counts[positions]
            places = rows if scope is None else postings.places[rows]
            gains = idf[block][term] * (counts * self.gain / (counts + self.drag[rows]))
            # One after the other, in the query's order: the sum is FTS5's to the last bit.
            np.add.at(scores, (asking[block] * width)[term] + places, gains)
        return scores.reshape(-1, width)


def _weigh(
    postings: Postings,
    weighting: Weighting,
    asked: Asked,
    queries: NDArray[np.int64],
    scope: int | None,
) -> _Weighed:
    sizes = np.diff(asked.starts)[queries]
    owners, positions = join(asked.starts[queries], sizes)
    terms = asked.terms[positions]
    idf = np.zeros(len(terms))
    idf[terms >= 0] = weighting.idf(terms[terms >= 0], scope)
    counts = np.bincount(owners[idf > 0], minlength=len(queries))
    k1, b = weighting.k1, weighting.b
    drag = k1 * (1 - b + b * postings.lengths / weighting.average_length(scope))
    starts = np.concatenate(([0], np.cumsum(counts)))
    return _Weighed(postings, starts, terms[idf > 0], idf[idf > 0], drag, k1 + 1.0)


def _drop_ineligible(
    scores: NDArray[np.float64],
    corpus: Corpus,
    batch: QueryBatch,
    queries: NDArray[np.int64],
    members: NDArray[np.int64],
) -> None:
    expired = (corpus.expires_at[members].min() <= batch.now[queries]).any()
    if not expired and not any(askers[queries].any() for _, askers in batch.askers):
        return
    asking, places = np.nonzero(scores)
    kept = eligible(corpus, batch, queries[asking], members[places])
    scores[asking[~kept], places[~kept]] = 0.0


def _top(
    scores: NDArray[np.float64], depth: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return line, column and value of each line's best scores above 0, ties by column.

    A line is folded and the larger of what comes together kept: the depth-th largest of
    those is no more than the depth-th largest of all, and nearly as large. What reaches
    it is then sorted, which is far less than the whole line.
    """
    width = scores.shape[1]
    least = np.zeros(len(scores))
    if width > depth:
        folds = max(1, min(16, width // (4 * depth)))
        across = width // folds
        folded = scores[:, : folds * across].reshape(-1, folds, across).max(axis=1)
        least = np.partition(folded, across - depth, axis=1)[:, across - depth]
    lines, columns = np.nonzero((scores >= least[:, None]) & (scores > 0))
    values = scores[lines, columns]
    order = np.lexsort((-values, lines))
    order = order[head(lines[order], depth)]
    return lines[order], columns[order], values[order]
