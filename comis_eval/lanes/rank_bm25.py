"""The keyword lane on another formula: BM25Okapi of the package ``rank_bm25``.

It differs from FTS5 in k1 (1.5), in the idf, and in taking a token that the tokenizer
splits for its terms instead of a phrase; the terms themselves are the same. The package
weighs the terms; what it would do per memory in Python runs over postings here.

Faults of the package that are kept out: it divides by zero without a term; it gives a term
in half of the memories no weight, and one in more of them a share of the mean idf, which
is negative in small or uniform collections. A weight that is not positive is no signal
here: the term finds nothing. Memories without any of the terms are never returned.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits, ScopeFilter, Statistics
from comis_eval.lanes.fts import match_tokens
from comis_eval.lanes.postings import Asked, Postings, rank
from comis_eval.lanes.terms import occurrences, sequences
from comis_eval.store.corpus import Corpus, QueryBatch


class OkapiIndex:
    """One BM25Okapi a tenancy, and one of everything, each built when first asked."""

    k1 = 1.5
    b = 0.75

    def __init__(self, corpus: Corpus) -> None:
        found = occurrences([memory.content for memory in corpus.memories])
        self.corpus = corpus
        self.postings = Postings.of(corpus, found)
        self._found = found
        self._term_of = {term: number for number, term in enumerate(found.terms)}
        self._models: dict[int | None, Any] = {}

    def terms(self, tokens: list[str]) -> list[list[int]]:
        """Return the terms of each token, as numbers; -1 for a term no memory holds."""
        distinct = list(dict.fromkeys(tokens))
        found = occurrences(distinct)
        numbers = np.array([self._term_of.get(term, -1) for term in found.terms], dtype=np.int64)
        split = {
            token: numbers[terms].tolist()
            for token, terms in zip(distinct, sequences(found, len(distinct)), strict=True)
        }
        return [split[token] for token in tokens]

    def average_length(self, scope: int | None) -> float:
        """Mean number of terms of a tenancy's memories, or of all (None)."""
        return float(self._model(scope).avgdl)

    def idf(self, terms: NDArray[np.int64], scope: int | None) -> NDArray[np.float64]:
        """Weight the package gives each term, 0 instead of a negative one, shape (n,)."""
        weights = self._model(scope).idf
        given = [weights.get(term, 0.0) for term in terms.tolist()]
        return np.maximum(np.array(given, dtype=np.float64), 0.0)

    def _model(self, scope: int | None) -> Any:
        if scope not in self._models:
            from rank_bm25 import BM25Okapi

            members = self.postings.members(scope)
            texts = [self._texts[row].tolist() for row in members.tolist()]
            self._models[scope] = BM25Okapi(texts, k1=self.k1, b=self.b)
        return self._models[scope]

    @cached_property
    def _texts(self) -> list[NDArray[np.int64]]:
        return sequences(self._found, len(self.corpus))


def search(
    index: OkapiIndex,
    batch: QueryBatch,
    *,
    depth: int,
    statistics: Statistics,
    scope_filter: ScopeFilter,
) -> LaneHits:
    """Rank memories by BM25Okapi for every query: best first, equal scores in row order.

    Args:
        index: The corpus's keyword index.
        batch: The queries.
        depth: How many memories a query gets at most, >= 1.
        statistics: ``scope`` weighs by the query's tenancy, ``table`` by all memories.
        scope_filter: ``in_lane`` ranks what is eligible for the query, ``after_fusion`` all
            rows, expired ones and other tenancies' included.
    """
    tokens = [match_tokens(text) for text in batch.texts]
    split = iter(index.terms([token for line in tokens for token in line]))
    lines = [[term for _ in line for term in next(split)] for line in tokens]
    starts = np.concatenate(([0], np.cumsum([len(line) for line in lines]))).astype(np.int64)
    terms = np.array([term for line in lines for term in line], dtype=np.int64)
    return rank(
        index.postings,
        index,
        Asked(starts, terms),
        batch,
        depth=depth,
        statistics=statistics,
        scope_filter=scope_filter,
    )
