"""The keyword lane: what SQLite FTS5 ranks by bm25, for a whole query set at once.

FTS5's own answer costs one statement a query. The index is instead read out once and
scored with FTS5's formula: bm25 with k1 1.2 and b 0.75, idf log((N - n + 0.5) / (n + 0.5))
raised to 1e-6 where it is not positive. On a corpus of one tenancy ids and values are
those of ``bm25()``, to the last bit. Source: specification of MemoryRecall, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import regex
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits, ScopeFilter, Statistics
from comis_eval.lanes.postings import Asked, Postings, rank
from comis_eval.lanes.terms import Occurrences, occurrences, sequences
from comis_eval.store.corpus import Corpus, QueryBatch

STOP_WORDS = frozenset(
    (  # noqa: SIM905 - a hundred quoted words are harder to read
        "a about above after again all also am an and any are as at be because been before "
        "being between both but by can could did do does down during each every few for from "
        "had has have he her here him his how i if in into is it its just may me might more "
        "most my myself no nor not of on only or other our ours out over own same shall she "
        "should so some such than that the that their them then these they this those to too "
        "up very was we what when where which who whom why will with would you your"
    ).split()
)

_WORD = regex.compile(r"[\p{L}\p{N}]+")


def match_tokens(text: str) -> list[str]:
    """Return the tokens of a query that are searched for, in order, repeats kept.

    Double quotes are deleted, what is neither letter nor number separates, stop words are
    dropped in any case. No text can make this fail.
    """
    bare = text.replace('"', "")
    if not bare.isascii():
        # Halves of a surrogate pair that a quote parted are one character again; others
        # become a separator.
        bare = bare.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return [token for token in _WORD.findall(bare) if token.lower() not in STOP_WORDS]


def match_query(text: str) -> str | None:
    """Return the MATCH string for a query; None when nothing is left to search for."""
    tokens = match_tokens(text)
    return " OR ".join(f'"{token}"' for token in tokens) if tokens else None


class FtsIndex:
    """The keyword index of a corpus, read out of FTS5 once.

    Args:
        corpus: The memories.
        columns: The texts that are searched, one list a column of the FTS5 table, one text
            a memory; None: the contents alone. A phrase never reaches into another column.
    """

    k1 = 1.2
    b = 0.75

    def __init__(self, corpus: Corpus, columns: Sequence[Sequence[str]] | None = None) -> None:
        texts = columns or [[memory.content for memory in corpus.memories]]
        found = _folded(occurrences([*chain(*zip(*texts, strict=True))]), len(texts))
        self.corpus = corpus
        self.postings = Postings.of(corpus, found)
        self._found = found
        self._term_of = {term: number for number, term in enumerate(found.terms)}
        self._unit_of: dict[str, int] = {}
        self._phrase_of: dict[tuple[int, ...], int] = {}

    def units(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return what each token searches for: a term, or a phrase of several, as a number.

        Returns:
            Numbers into the postings, shape (n,); -1 where no memory can match.
        """
        new = [token for token in dict.fromkeys(tokens) if token not in self._unit_of]
        if not new:
            return np.array([self._unit_of[token] for token in tokens], dtype=np.int64)
        found = occurrences(new)
        numbers = np.array([self._term_of.get(term, -1) for term in found.terms], dtype=np.int64)
        for token, terms in zip(new, sequences(found, len(new)), strict=True):
            self._unit_of[token] = self._unit(tuple(numbers[terms].tolist()))
        return np.array([self._unit_of[token] for token in tokens], dtype=np.int64)

    def average_length(self, scope: int | None) -> float:
        """Mean number of terms of a tenancy's memories, or of all (None)."""
        lengths = self.postings.lengths[self.postings.members(scope)]
        return float(lengths.sum()) / len(lengths)

    def idf(self, terms: NDArray[np.int64], scope: int | None) -> NDArray[np.float64]:
        """Weight of each term among a tenancy's memories, or all (None), shape (n,)."""
        total = len(self.postings.members(scope))
        _, holders = self.postings.ranges(terms, scope)
        distinct, inverse = np.unique(holders, return_inverse=True)
        # Python's log is the C library's, as SQLite's is; numpy's may differ in the last bit.
        logs = [math.log((total - n + 0.5) / (n + 0.5)) for n in distinct.tolist()]
        weights = np.array(logs, dtype=np.float64)
        return np.where(weights > 0, weights, 1e-6)[inverse]

    def _unit(self, terms: tuple[int, ...]) -> int:
        if not terms or -1 in terms:
            return -1
        if len(terms) == 1:
            return terms[0]
        if terms not in self._phrase_of:
            rows = self._rows_of_phrase(terms)
            self._phrase_of[terms] = self.postings.terms
            self.postings = self.postings.plus(np.zeros(len(rows), dtype=np.int64), rows, 1)
        return self._phrase_of[terms]

    def _rows_of_phrase(self, terms: Iterable[int]) -> NDArray[np.int64]:
        """Memory row of every place where the terms follow each other."""
        found = self._found
        places: NDArray[np.int64] | None = None
        for offset, term in enumerate(terms):
            held = slice(found.starts[term], found.starts[term + 1])
            begins = (found.texts[held] << 32) + found.offsets[held] - offset
            places = begins if places is None else np.intersect1d(places, begins)
        if places is None:
            return np.empty(0, dtype=np.int64)
        return places >> 32


def _folded(found: Occurrences, columns: int) -> Occurrences:
    """Make one text of each memory's columns, with room between them that no phrase spans."""
    if columns == 1:
        return found
    texts, column = np.divmod(found.texts, columns)
    return found._replace(texts=texts, offsets=found.offsets + (column << 26))


def search(
    index: FtsIndex,
    batch: QueryBatch,
    *,
    depth: int,
    statistics: Statistics,
    scope_filter: ScopeFilter,
) -> LaneHits:
    """Rank memories by bm25 for every query: best first, equal scores in row order.

    Args:
        index: The corpus's keyword index.
        batch: The queries.
        depth: How many memories a query gets at most, >= 1.
        statistics: ``scope`` counts memories, lengths and frequencies over all rows of the
            query's tenancy, expired and filtered ones too; a tenancy without memories finds
            nothing. ``table`` counts over all rows, as one FTS5 table does.
        scope_filter: ``in_lane`` ranks what is eligible for the query, ``after_fusion`` all
            rows, expired ones and other tenancies' included.

    Returns:
        Scores are bm25 negated, as FTS5's own are negative. No text can make it fail; a
        query without tokens finds nothing.
    """
    tokens = [match_tokens(text) for text in batch.texts]
    units = index.units([token for line in tokens for token in line])
    starts = np.concatenate(([0], np.cumsum([len(line) for line in tokens]))).astype(np.int64)
    return rank(
        index.postings,
        index,
        Asked(starts, units),
        batch,
        depth=depth,
        statistics=statistics,
        scope_filter=scope_filter,
    )
