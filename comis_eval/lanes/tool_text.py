"""The text arm of the recall tool: all words first, and some of them where that finds little.

A query's words are searched together. Where fewer than three memories have them all, those
that have some join, on one scale: bm25 of the words asked for one by one. Who lacks a word
keeps 0.8 of it. Words weigh by the memories the query may be answered from, and by no
others: what a caller may not see moves nothing. Source: specification of the recall tool,
sections 3.2 and 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.fts import STOP_WORDS, FtsIndex, match_tokens
from comis_eval.stages.recall_tool.words import lowered, words
from comis_eval.store.tool_corpus import ToolCorpus, Views

ENOUGH = 3
"""With that many memories that have all words, nobody else joins."""

PARTIAL = 0.8
"""What a memory that lacks a word keeps of its score."""

_OR_CHARS = 3


class Scored(NamedTuple):
    """Memories with the score an arm gave them: rows, shape (n,), scores, shape (n,)."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]


def all_words(query: str) -> list[str]:
    """Return the words a memory must have, each once, stop words dropped."""
    return list({lowered(token): token for token in match_tokens(query)}.values())


def or_words(query: str) -> list[str]:
    """Return the words of three code points or more, in lower case, each once."""
    return list(dict.fromkeys(words(query, least=_OR_CHARS)))


def merge(strict: Scored, loose: Scored) -> Scored:
    """Join those that have all words with those that have some, best first.

    Who is in both keeps the loose score, which is the common scale, whole; who is in the
    loose one alone keeps 0.8 of it; who is in the strict one alone keeps the strict score.
    Equal scores stand in the order given, the strict first.
    """
    both = np.isin(loose.rows, strict.rows)
    only = ~np.isin(strict.rows, loose.rows)
    rows = np.concatenate((loose.rows[both], strict.rows[only], loose.rows[~both]))
    scores = np.concatenate(
        (loose.scores[both], strict.scores[only], PARTIAL * loose.scores[~both])
    )
    order = np.argsort(-scores, kind="stable")
    return Scored(rows[order], scores[order])


def search(
    index: FtsIndex, corpus: ToolCorpus, texts: Sequence[str], views: Views, *, depth: int
) -> LaneHits:
    """Rank memories for every query: score descending, then newest, then key.

    Args:
        index: Of the corpus's keys and contents.
        corpus: The memories.
        texts: The queries; one of stop words alone finds nothing.
        views: Which memories each may be answered from.
        depth: How many memories a query gets at most, >= 1.
    """
    statistics = [_Statistics.of(index, mask) for mask in views.masks]
    counts, exhausted = [0], []
    rows: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    scores: list[NDArray[np.float64]] = [np.empty(0)]
    for query, text in enumerate(texts):
        found = _found(index, text, statistics[views.which[query]])
        ties = (corpus.key_rank[found.rows], -corpus.created_at[found.rows], -found.scores)
        best = np.lexsort(ties)[:depth]
        rows.append(found.rows[best])
        scores.append(found.scores[best])
        counts.append(len(best))
        exhausted.append(len(found.rows) <= depth)
    return LaneHits(
        np.cumsum(counts),
        np.concatenate(rows).astype(np.int32),
        np.concatenate(scores),
        np.array(exhausted, dtype=bool),
    )


class _Statistics(NamedTuple):
    """What bm25 must know of the memories that may be shown.

    Attributes:
        mask: Which they are, shape (m,).
        size: How many.
        average: Terms they have on average; 0 without any.
    """

    mask: NDArray[np.bool_]
    size: int
    average: float

    @classmethod
    def of(cls, index: FtsIndex, mask: NDArray[np.bool_]) -> _Statistics:
        size = int(np.count_nonzero(mask))
        total = float(index.postings.lengths[mask].sum())
        return cls(mask, size, total / size if size else 0.0)


def _found(index: FtsIndex, text: str, known: _Statistics) -> Scored:
    nothing = Scored(np.empty(0, dtype=np.int64), np.empty(0))
    tokens = all_words(text)
    if not tokens or not known.average:
        return nothing
    strict = nothing
    units = index.units(tokens)
    if (units >= 0).all():
        rows, scores, held = _bm25(index, units, known)
        strict = Scored(rows[held == len(units)], scores[held == len(units)])
        if len(strict.rows) >= ENOUGH:
            return strict
    loose = [word for word in or_words(text) if word not in STOP_WORDS]
    units = index.units(loose)
    rows, scores, _ = _bm25(index, units[units >= 0], known)
    return merge(strict, Scored(rows, scores))


class _Weighed(NamedTuple):
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    held: NDArray[np.int64]


def _bm25(index: FtsIndex, units: NDArray[np.int64], known: _Statistics) -> _Weighed:
    """Score the memories that have some of the units; ``held`` counts how many.

    Two words of one stem are one unit that is asked for twice, and weighs twice.
    """
    postings, lengths = index.postings, index.postings.lengths
    k1, b = index.k1, index.b
    found, gains = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for unit in units:
        (start,), (size,) = postings.ranges(np.array([unit]), None)
        part = slice(start, start + size)
        here = known.mask[postings.rows[part]]
        rows, tf = postings.rows[part][here], postings.counts[part][here]
        ratio = (known.size - len(rows) + 0.5) / (len(rows) + 0.5)
        idf = max(math.log(ratio), 1e-6)
        drag = k1 * (1 - b + b * lengths[rows] / known.average)
        found.append(rows)
        gains.append(idf * (tf * (k1 + 1.0) / (tf + drag)))
    everyone, place, held = np.unique(
        np.concatenate(found), return_inverse=True, return_counts=True
    )
    scores = np.zeros(len(everyone))
    np.add.at(scores, place, np.concatenate(gains))
    return _Weighed(everyone, scores, held)
