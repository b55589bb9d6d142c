"""The columnar table that everything after retrieval is a function of.

Rows are queries, columns are candidates in the order in which the lanes first showed them.
Padding has memory row -1. A table holds what an index, a model or the clock had to be asked
for; every knob that comes later only reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates.facts import Facts
from comis_eval.config import Config
from comis_eval.errors import CoverageError
from comis_eval.lanes import entity
from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.causal import Links
from comis_eval.stages import dedup, fuse, score
from comis_eval.stages.rerank import Reason
from comis_eval.stages.score import Signals
from comis_eval.store.corpus import Corpus, QueryBatch
from comis_eval.types import Query

_T = TypeVar("_T", bound=np.generic)

SEARCH_LANES = ("fts", "vector")


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
        """The settings a configuration asks for; with ``rag.enabled: false`` no lane is asked."""
        semantics, harness = config.semantics, config.harness
        asked = harness.lanes if config.rag.enabled else ()
        return cls(
            lanes=tuple(lane for lane in SEARCH_LANES if lane in asked),
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


class Searched(NamedTuple):
    """The search lanes as they look when they are read to some depth.

    Attributes:
        ranks: By lane, 0 where the lane lacks the candidate or holds it deeper, shape (q, c).
        found: Candidates that some lane returned, shape (q, c).
        ordinal: In which order candidates were first seen, shape (q, c).
        behind: Sort keys of those who are in no list, see :func:`fuse.behind`, shape (q, c).
    """

    ranks: dict[str, NDArray[np.int32]]
    found: NDArray[np.bool_]
    ordinal: NDArray[np.int64]
    behind: NDArray[np.float64]


class Vectors(NamedTuple):
    """Embeddings of the corpus, for diversity: shape (m, dim), and who has one, shape (m,)."""

    matrix: NDArray[np.float32]
    has: NDArray[np.bool_]


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
        return cls.laid_out(facts, queries, batch, retrieval, rows, lanes)

    @classmethod
    def laid_out(
        cls,
        facts: Facts,
        queries: Sequence[Query],
        batch: QueryBatch,
        retrieval: Retrieval,
        rows: NDArray[np.int32],
        lanes: Mapping[str, Lane],
    ) -> Self:
        """Add the signals to columns that are laid out already."""
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

    def with_repeats(self, units: dedup.Units) -> NDArray[np.intp]:
        """Queries two of whose candidates share a fingerprint; dedup can do nothing elsewhere."""
        if units not in self._with_repeats:
            prints = self.facts.prints(units)[self.rows].astype(np.int64)
            # Padding gets numbers of its own, which no fingerprint has.
            prints[self.rows < 0] = -1 - np.nonzero(self.rows < 0)[1]
            ordered = np.sort(prints, axis=1)
            alike = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
            self._with_repeats[units] = np.flatnonzero(alike)
        return self._with_repeats[units]

    @cached_property
    def _with_repeats(self) -> dict[str, NDArray[np.intp]]:
        return {}

    def searched(self, depth: int) -> Searched:
        """Cut the search lanes at a depth; kept, since trials share it."""
        if depth not in self._searched:
            self._searched[depth] = self._cut(depth)
        return self._searched[depth]

    @cached_property
    def _searched(self) -> dict[int, Searched]:
        return {}

    def _cut(self, depth: int) -> Searched:
        shape = self.rows.shape
        if self.recorded is not None or not self.lanes:
            # A recorded search's columns stand in its order; no lane found anything else.
            seen = np.broadcast_to(np.arange(shape[1], dtype=np.int64), shape)
            found = (self.rows >= 0) & (self.recorded is not None)
            return Searched({}, found, seen, fuse.behind(seen))
        ranks = {
            name: np.where(lane.ranks <= depth, lane.ranks, 0).astype(np.int32)
            for name, lane in self.lanes.items()
        }
        found = np.logical_or.reduce([lane > 0 for lane in ranks.values()])
        ordinal = fuse.first_seen(list(ranks.values()))
        return Searched(ranks, found, ordinal, fuse.behind(ordinal))

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
        merged = Signals(
            *(
                np.where(fresh, added, _pad(kept, width, score.NEUTRAL))
                for kept, added in zip(self.signals, new, strict=True)
            )
        )
        lanes = {name: widened(lane, width) for name, lane in self.lanes.items()}
        recorded = None if self.recorded is None else _pad(self.recorded, width, 0.0)
        table = replace(self, rows=rows, lanes=lanes, signals=merged, recorded=recorded)
        return table, ranks

    def subset(self, positions: NDArray[np.integer]) -> Self:
        """The same table for some of its queries, in the order given."""
        kept = np.asarray(positions, dtype=np.int64)
        batch = self.batch
        return replace(
            self,
            queries=tuple(self.queries[i] for i in kept),
            batch=QueryBatch(
                tuple(batch.texts[i] for i in kept),
                tuple(batch.tenancies[i] for i in kept),
                batch.scope[kept],
                batch.now[kept],
                tuple(batch.filters[i] for i in kept),
                None if batch.vectors is None else batch.vectors[kept],
            ),
            rows=self.rows[kept],
            lanes={
                name: Lane(lane.ranks[kept], lane.scores[kept], lane.exhausted[kept])
                for name, lane in self.lanes.items()
            },
            signals=Signals(*(signal[kept] for signal in self.signals)),
            rerank=None if self.rerank is None else self._answers_of(self.rerank, kept),
            recorded=None if self.recorded is None else self.recorded[kept],
        )

    def _answers_of(self, held: RerankScores, kept: NDArray[np.int64]) -> RerankScores:
        size = len(self.corpus)
        starts = np.searchsorted(held.keys, kept * size)
        lengths = np.searchsorted(held.keys, (kept + 1) * size) - starts
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = np.repeat(starts, lengths) + within
        rows = held.keys[places] - np.repeat(kept, lengths) * size
        return RerankScores(
            np.repeat(np.arange(len(kept)), lengths) * size + rows,
            held.values[places],
            None if held.elapsed_ms is None else held.elapsed_ms[kept],
            None if held.fault is None else held.fault[kept],
        )

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
        if not config.rag.enabled:
            return  # nothing is asked of it
        asked = Retrieval.of(config)
        for name in Retrieval._fields:
            have, want = getattr(self.retrieval, name), getattr(asked, name)
            deep_enough = name == "depth" and (want <= have or self._exhausted)
            if have != want and not deep_enough:
                raise CoverageError(
                    f"the candidates table was built with {name} {have!r} and cannot answer for "
                    f"{want!r}; build it for this configuration"
                )
        if config.rag.mmr.enabled and self.vectors is None:
            raise CoverageError(
                "the candidates table was built without embeddings, which rag.mmr compares; "
                "build it for this configuration"
            )

    @property
    def _exhausted(self) -> bool:
        return all(bool(lane.exhausted.all()) for lane in self.lanes.values())


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
