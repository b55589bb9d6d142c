"""The columnar table everything after retrieval is a function of, and what ranking it gives.

Rows are queries, columns are candidates in the order in which the lanes first showed them.
Padding has memory row -1. A table holds what an index, a model or the clock had to be asked
for; every knob that comes later only reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.errors import CoverageError
from comis_eval.lanes import entity
from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.causal import Links
from comis_eval.stages import dedup, present, score
from comis_eval.stages.rerank import Reason
from comis_eval.stages.score import Signals
from comis_eval.store.corpus import Corpus, QueryBatch
from comis_eval.types import Fate, Query

_T = TypeVar("_T", bound=np.generic)

SEARCH_LANES = ("fts", "vector")
FATES = tuple(Fate)
"""A fate's number in arrays is its position here."""


class Retrieval(NamedTuple):
    """The settings that decide what a table holds: another value needs another table."""

    lanes: tuple[str, ...]
    keyword_backend: str
    keyword_statistics: str
    scope_filter: str
    query_context_turns: int
    embedder: str
    depth: int

    @classmethod
    def of(cls, config: Config) -> Self:
        """The settings a configuration asks for."""
        semantics, harness = config.semantics, config.harness
        return cls(
            lanes=tuple(lane for lane in SEARCH_LANES if lane in harness.lanes),
            keyword_backend=harness.keyword_backend,
            keyword_statistics=semantics.keyword_statistics,
            scope_filter=semantics.scope_filter,
            query_context_turns=semantics.query_context_turns,
            embedder=f"{harness.embedder}:{harness.pooling}",
            depth=config.lane_depth,
        )


class Lane(NamedTuple):
    """What one search lane said of each candidate.

    Attributes:
        ranks: From 1, 0 where the lane lacks the candidate, shape (q, c).
        scores: The lane's own score, 0 where it lacks the candidate, shape (q, c).
        exhausted: Queries for which the lane had nothing deeper to give, shape (q,).
    """

    ranks: NDArray[np.int32]
    scores: NDArray[np.float64]
    exhausted: NDArray[np.bool_]


class RerankScores(NamedTuple):
    """A reranker's answers for (query, memory) pairs.

    Attributes:
        keys: ``query x len(corpus) + row``, ascending, shape (n,).
        values: Scores in [0, 1], NaN where the model gave none, shape (n,).
        elapsed_ms: Measured time of each query, shape (q,); None: the cost model's.
        fault: A rerank Reason a query, shape (q,); None: no faults.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    elapsed_ms: NDArray[np.float64] | None = None
    fault: NDArray[np.int8] | None = None


class Vectors(NamedTuple):
    """Embeddings of the corpus, for diversity: shape (m, dim), and who has one, shape (m,)."""

    matrix: NDArray[np.float32]
    has: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Facts:
    """What stages need of each memory, whatever the query; computed once a corpus."""

    corpus: Corpus
    usefulness: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How often a memory was used and ignored, by id."""

    @cached_property
    def occurred_at(self) -> NDArray[np.float64]:
        """Event times, ms, NaN where unknown, shape (m,)."""
        times = [np.nan if m.occurred_at is None else m.occurred_at for m in self.corpus.memories]
        return np.array(times, dtype=np.float64)

    @cached_property
    def proof_strength(self) -> NDArray[np.float64]:
        """See :func:`comis_eval.stages.score.proof_strength`, shape (m,)."""
        return score.proof_strength([m.proof_count for m in self.corpus.memories])

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """In [0, 1], NaN where unknown, shape (m,)."""
        values = [np.nan if m.confidence is None else m.confidence for m in self.corpus.memories]
        return np.array(values, dtype=np.float64)

    @cached_property
    def usefulness_signal(self) -> NDArray[np.float64]:
        """Share of showings in which a memory was used, neutral without any, shape (m,)."""
        counts = [self.usefulness.get(m.id, (0, 0)) for m in self.corpus.memories]
        used, ignored = np.array(counts, dtype=np.float64).reshape(-1, 2).T
        return score.usefulness(used, ignored)

    @cached_property
    def _prints(self) -> dict[str, NDArray[np.int32]]:
        return {}

    @cached_property
    def _lengths(self) -> dict[present.Style, NDArray[np.int64]]:
        return {}

    def prints(self, units: dedup.Units) -> NDArray[np.int32]:
        """A number for each distinct dedup fingerprint, shape (m,)."""
        if units not in self._prints:
            numbers: dict[str, int] = {}
            prints = [dedup.fingerprint(m.content, units=units) for m in self.corpus.memories]
            self._prints[units] = np.array(
                [numbers.setdefault(text, len(numbers)) for text in prints], dtype=np.int32
            )
        return self._prints[units]

    def line_lengths(self, style: present.Style, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """Length of each memory's line with its newline; 0 for padding. Any shape.

        A line is written the first time it is asked for, so that a large corpus costs only
        the memories that some query meets.
        """
        known = self._lengths.setdefault(
            style, np.full(len(self.corpus) + 1, -1, dtype=np.int64)
        )  # one more, for padding's row -1
        known[-1] = 0
        lengths = known[rows]
        missing = np.unique(rows[lengths < 0])
        for row in missing.tolist():
            known[row] = present.line_length(self.corpus.memories[row], style)
        return known[rows] if len(missing) else lengths

    def signals(self, now: NDArray[np.int64], rows: NDArray[np.int32]) -> Signals:
        """The signals of (moment, memory) pairs, both shape (n,)."""
        at = now.astype(np.float64)
        age = score.age_days(self.corpus.created_at[rows].astype(np.float64), at)
        event_age = score.age_days(self.occurred_at[rows], at)
        known_age = np.where(np.isnan(event_age), age, event_age)
        return Signals(
            recency=score.recency(age),
            temporal=score.temporal(event_age),
            proof=score.proof(self.proof_strength[rows], self.confidence[rows], known_age),
            trust=self.corpus.trust[rows] / 2.0,
            usefulness=self.usefulness_signal[rows],
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """Per query and memory: the rank in each lane, the model scores, the signals.

    Attributes:
        facts: The corpus and what stages need of each memory.
        queries: The queries, one a row.
        batch: What the lanes were asked.
        retrieval: The settings it was built with.
        rows: Memory rows, shape (q, c); -1 is padding.
        lanes: What each search lane said.
        signals: What the boosts look at, each shape (q, c); neutral in padding.
        rerank: A reranker's answers, when one was asked.
        vectors: Embeddings, when an embedder runs.
        links: Causal links of the dataset.
        recorded: Scores of a recorded search, shape (q, c): columns then stand in its order,
            and the search lanes are not fused again.
        entity_lane: Who answers for the entity lane; another system's may stand in.
    """

    facts: Facts
    queries: tuple[Query, ...]
    batch: QueryBatch
    retrieval: Retrieval
    rows: NDArray[np.int32]
    lanes: Mapping[str, Lane]
    signals: Signals
    rerank: RerankScores | None = None
    vectors: Vectors | None = None
    links: Links | None = None
    recorded: NDArray[np.float64] | None = None
    entity_lane: Callable[..., LaneHits] = entity.spread

    @classmethod
    def assemble(
        cls,
        facts: Facts,
        queries: Sequence[Query],
        batch: QueryBatch,
        retrieval: Retrieval,
        hits: Mapping[str, LaneHits],
    ) -> Self:
        """Lay out what the search lanes returned, in the order fts, vector."""
        rows = np.empty((len(batch), 0), dtype=np.int32)
        lanes: dict[str, Lane] = {}
        for name, found in hits.items():
            rows, ranks, scores = merge(rows, found, len(facts.corpus))
            lanes = {other: widened(lane, rows.shape[1]) for other, lane in lanes.items()}
            lanes[name] = Lane(ranks, scores, found.exhausted)
        signals = _spread_signals(facts, batch, rows, rows >= 0)
        return cls(facts, tuple(queries), batch, retrieval, rows, lanes, signals)

    @property
    def corpus(self) -> Corpus:
        """The memories that ``rows`` points into."""
        return self.facts.corpus

    @cached_property
    def trust(self) -> NDArray[np.int8]:
        """Trust rank of each candidate, shape (q, c); padding has some value too."""
        return self.corpus.trust[self.rows]

    def extended(self, hits: LaneHits) -> tuple[Self, NDArray[np.int32]]:
        """Add a spread lane's memories as columns, behind those already there.

        Returns:
            The wider table and the lane's ranks in it, shape (q, c').
        """
        rows, ranks, _ = merge(self.rows, hits, len(self.corpus))
        old, width = self.rows.shape[1], rows.shape[1]
        if width == old:
            fresh = (rows >= 0) & (self.rows < 0)
            if not fresh.any():
                return self, ranks
        fresh = rows >= 0
        fresh[:, :old] &= self.rows < 0
        new = _spread_signals(self.facts, self.batch, rows, fresh)
        merged = Signals(*(
            np.where(fresh, added, _pad(kept, width, score.NEUTRAL))
            for kept, added in zip(self.signals, new, strict=True)
        ))
        lanes = {name: widened(lane, width) for name, lane in self.lanes.items()}
        recorded = None if self.recorded is None else _pad(self.recorded, width, 0.0)
        table = replace(self, rows=rows, lanes=lanes, signals=merged, recorded=recorded)
        return table, ranks

    def restricted(self, *lanes: str) -> Self:
        """The same table as only some of its search lanes would have filled it."""
        return replace(
            self,
            lanes={name: self.lanes[name] for name in lanes},
            retrieval=self.retrieval._replace(lanes=lanes),
        )

    def rerank_plane(self, asked: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The reranker's scores of the candidates asked about, NaN elsewhere, shape (q, c).

        Raises:
            CoverageError: If a pair was never put to the model.
        """
        plane = np.full(self.rows.shape, np.nan)
        if self.rerank is None:
            return plane
        wanted = self.pair_keys(asked)
        found = np.searchsorted(self.rerank.keys, wanted)
        found = np.minimum(found, max(len(self.rerank.keys) - 1, 0))
        known = (self.rerank.keys[found] == wanted) if len(self.rerank.keys) else wanted < 0
        if not known.all():
            query, row = divmod(int(wanted[~known][0]), len(self.corpus))
            raise CoverageError(
                f"query {self.queries[query].id!r}: the reranker was never asked about memory "
                f"{self.corpus.memories[row].id!r} ({int((~known).sum())} pairs in all); the "
                "table was built for a smaller rag.rerank.maxCandidates or other lane weights; "
                "build it again for this configuration"
            )
        plane[asked] = self.rerank.values[found]
        return plane

    def pair_keys(self, asked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The keys of (query, memory) pairs, as RerankScores has them, in row-major order."""
        queries, _ = np.nonzero(asked)
        return queries.astype(np.int64) * len(self.corpus) + self.rows[asked]

    def check_covers(self, config: Config) -> None:
        """Refuse a configuration that reaches outside the table.

        Raises:
            CoverageError: Naming the setting, what the table has and what was asked.
        """
        asked = Retrieval.of(config)
        for name in Retrieval._fields:
            have, want = getattr(self.retrieval, name), getattr(asked, name)
            deep_enough = name == "depth" and (want <= have or self._exhausted)
            if have != want and not deep_enough:
                raise CoverageError(
                    f"the candidates table was built with {name} {have!r} and cannot answer for "
                    f"{want!r}; build it for this configuration"
                )

    @property
    def _exhausted(self) -> bool:
        return all(bool(lane.exhausted.all()) for lane in self.lanes.values())


@dataclass(frozen=True, eq=False)
class Rankings:
    """What a configuration makes of a table.

    Every array is shape (q, c) in column space unless it says otherwise.

    Attributes:
        table: The table, widened by what the spread lanes brought.
        config: The configuration.
        order: Columns of each query: the ranking first, then what the trust filter took,
            then the duplicates, each in scored order, then the rest in fused order.
        length: How many of ``order`` are the ranking (all survivors of trust filter and
            dedup), shape (q,).
        fate: A number of FATES, -1 where there is no candidate.
        deduped_by: Column of the memory that stayed in a duplicate's stead, else -1.
        ranks: Each lane's ranks as the fusion saw them, 0 where absent.
        fused: Normalised fused scores.
        fused_order: Columns by fused score, shape (q, c); those alive after fusion come first.
        searched: Candidates that came through the search lanes and their cuts.
        base: Scores the boosts multiply: the reranker's, or the fused.
        final: Boosted scores.
        reranker: The reranker's scores, NaN where it gave none.
        rerank_pool: Candidates that were put to the reranker.
        rerank_outcome, rerank_reason: Numbers of Outcome and Reason, shape (q,).
        included: Candidates in the context.
        inline: Candidates placed beside the user message instead of in the section.
        context_chars: Characters injected, shape (q,).
        presence: Who is still there after search, fuse, rerank, score, trust, dedup, budget.
    """

    table: Candidates
    config: Config
    order: NDArray[np.intp]
    length: NDArray[np.int64]
    fate: NDArray[np.int8]
    deduped_by: NDArray[np.int32]
    ranks: Mapping[str, NDArray[np.int32]]
    fused: NDArray[np.float64]
    fused_order: NDArray[np.intp]
    searched: NDArray[np.bool_]
    base: NDArray[np.float64]
    final: NDArray[np.float64]
    reranker: NDArray[np.float64]
    rerank_pool: NDArray[np.bool_]
    rerank_outcome: NDArray[np.int8]
    rerank_reason: NDArray[np.int8]
    included: NDArray[np.bool_]
    inline: NDArray[np.bool_]
    context_chars: NDArray[np.int64]
    presence: Mapping[str, NDArray[np.bool_]]

    def ranked_rows(self) -> NDArray[np.int32]:
        """Memory rows in final order, -1 behind each ranking's end, shape (q, longest)."""
        width = int(self.length.max(initial=0))
        rows = np.take_along_axis(self.table.rows, self.order[:, :width], axis=1)
        return np.where(np.arange(width) < self.length[:, None], rows, -1).astype(np.int32)

    def context_rows(self) -> NDArray[np.int32]:
        """Memory rows of each context in final order, -1 behind its end, shape (q, longest)."""
        taken = np.take_along_axis(self.included, self.order, axis=1)
        width = int(taken.sum(axis=1).max(initial=0))
        first = np.argsort(~taken, axis=1, kind="stable")[:, :width]
        columns = np.take_along_axis(self.order, first, axis=1)
        rows = np.take_along_axis(self.table.rows, columns, axis=1)
        return np.where(np.take_along_axis(taken, first, axis=1), rows, -1).astype(np.int32)

    def lane_counts(self) -> dict[str, int]:
        """For how many queries each lane that ran returned anything."""
        return {name: int((ranks > 0).any(axis=1).sum()) for name, ranks in self.ranks.items()}


def merge(
    rows: NDArray[np.int32], hits: LaneHits, corpus_size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Add a lane's hits to the columns; those not there yet come behind, in lane order.

    Returns:
        The wider rows, and the lane's ranks and scores in them, each shape (q, c').
    """
    queries = np.repeat(np.arange(len(rows), dtype=np.int64), hits.lengths)
    keys = queries * corpus_size + hits.rows
    there_q, there_c = np.nonzero(rows >= 0)
    there = there_q * np.int64(corpus_size) + rows[there_q, there_c]
    ascending = np.argsort(there, kind="stable")
    place = np.searchsorted(there, keys, sorter=ascending)
    place = np.minimum(place, max(len(there) - 1, 0))
    known = there[ascending[place]] == keys if len(there) else np.zeros(len(keys), dtype=bool)

    used = (rows >= 0).sum(axis=1)
    added = np.bincount(queries[~known], minlength=len(rows))
    width = max(rows.shape[1], int((used + added).max(initial=0)))
    columns = np.empty(len(keys), dtype=np.int64)
    columns[known] = there_c[ascending[place[known]]] if len(there) else 0
    fresh = queries[~known]
    starts = np.cumsum(added) - added
    columns[~known] = used[fresh] + np.arange(len(fresh)) - starts[fresh]

    wider = _pad(rows, width, -1)
    wider[fresh, columns[~known]] = hits.rows[~known]
    ranks = np.zeros((len(rows), width), dtype=np.int32)
    ranks[queries, columns] = hits.ranks
    scores = np.zeros((len(rows), width))
    scores[queries, columns] = hits.scores
    return wider, ranks, scores


def widened(lane: Lane, width: int) -> Lane:
    """The same lane over more columns, none of which it has."""
    return Lane(_pad(lane.ranks, width, 0), _pad(lane.scores, width, 0.0), lane.exhausted)


def no_faults(queries: int) -> NDArray[np.int8]:
    """What RerankScores.fault is when nothing went wrong."""
    return np.full(queries, Reason.NONE, dtype=np.int8)


def _pad(plane: NDArray[_T], width: int, value: float) -> NDArray[_T]:
    grown = np.full((len(plane), width), value, dtype=plane.dtype)
    grown[:, : plane.shape[1]] = plane
    return grown


def _spread_signals(
    facts: Facts, batch: QueryBatch, rows: NDArray[np.int32], where: NDArray[np.bool_]
) -> Signals:
    """Compute the signals of some cells, neutral elsewhere."""
    queries, _ = np.nonzero(where)
    flat = facts.signals(batch.now[queries], rows[where])
    planes = [np.full(rows.shape, score.NEUTRAL) for _ in flat]
    for plane, values in zip(planes, flat, strict=True):
        plane[where] = values
    return Signals(*planes)
