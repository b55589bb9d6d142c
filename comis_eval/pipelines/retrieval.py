"""A dataset made searchable: store, indexes and models, each built when it is first needed."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import (
    Candidates,
    Facts,
    RerankScores,
    Retrieval,
    Vectors,
    cache,
)
from comis_eval.config import MAX_INTEGER, Config
from comis_eval.datasets import Dataset
from comis_eval.errors import ModelError
from comis_eval.lanes import fts, rank_bm25, vector
from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.causal import Links
from comis_eval.models.base import Embedder, Reranker
from comis_eval.models.cache import EmbeddingCache, cache_dir, cached
from comis_eval.models.given import GivenVectors, load_given
from comis_eval.models.load import load_embedder, load_reranker
from comis_eval.pipelines.coverage import Coverage, reachable
from comis_eval.pipelines.fusing import fuse_lanes
from comis_eval.pipelines.scoring import rerank_pool
from comis_eval.stages.formulate import formulate
from comis_eval.stages.rerank import Reason
from comis_eval.store import Store
from comis_eval.store.corpus import Corpus, QueryBatch
from comis_eval.text import sha256_text
from comis_eval.types import Query

_log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""Told the step, how much is done, and how much there is."""

_KEYWORD: Mapping[str, tuple[Callable[[Corpus], Any], Callable[..., LaneHits]]] = {
    "fts5": (fts.FtsIndex, fts.search),
    "rank_bm25": (rank_bm25.OkapiIndex, rank_bm25.search),
}


@dataclass(eq=False)
class Retriever:
    """Everything that touches an index, a model or a file, for one dataset.

    Attributes:
        dataset: What is searched.
        embedder: Stands in for the configured one; tests pass theirs.
        reranker: Stands in for the configured one.
        cache: Folder of the embeddings on disk; None keeps none.
        progress: Told of long steps.
    """

    dataset: Dataset
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    cache: Path | None = field(default_factory=cache_dir)
    progress: Progress | None = None
    _loaded: dict[tuple[str, ...], Any] = field(default_factory=dict)

    @cached_property
    def corpus(self) -> Corpus:
        """The dataset's memories, written through the store's rules."""
        store = Store.open(None)
        try:
            store.add(self.dataset.memories)
            return store.corpus()
        finally:
            store.close()

    @cached_property
    def facts(self) -> Facts:
        """What stages need of each memory."""
        return Facts(self.corpus, self.dataset.usefulness)

    @cached_property
    def given(self) -> GivenVectors | None:
        """Vectors that came with the dataset."""
        folder = self.dataset.folder
        return None if folder is None else load_given(folder)

    def candidates(
        self, queries: Sequence[Query], config: Config, *, depth: int | None = None
    ) -> Candidates:
        """Send a query set through the search lanes, each in one call.

        Args:
            queries: What is asked.
            config: Which lanes, with which models and semantics.
            depth: To which rank the lanes are read; None: as the configuration needs.

        Raises:
            LaneError: If a lane could not search.
            ModelError: If a model that is asked for is missing.
        """
        retrieval = Retrieval.of(config)._replace(depth=depth or config.lane_depth)
        batch = self.batch(queries, config)
        hits = {
            name: self._search(name, batch, config, retrieval.depth) for name in retrieval.lanes
        }
        table = Candidates.assemble(self.facts, queries, batch, retrieval, hits)
        return self._completed(table, config)

    def covering(self, queries: Sequence[Query], config: Config, coverage: Coverage) -> Candidates:
        """A table that answers for every configuration within a coverage, kept on disk.

        Raises:
            LaneError: If a lane could not search.
            ModelError: If a model that is asked for is missing.
        """
        folder = None if self.cache is None else self.cache / "candidates"
        key = self._key(queries, config, coverage)
        held = None if folder is None else cache.load(folder, key)
        if held is not None:
            rows, lanes, scores = held
            retrieval = Retrieval.of(config)._replace(depth=coverage.depth)
            batch = self.batch(queries, config, embed=False)
            table = Candidates.laid_out(self.facts, queries, batch, retrieval, rows, lanes)
            return self._completed(replace(table, rerank=scores), config)
        table = self.candidates(queries, config, depth=coverage.depth)
        if coverage.rerank:
            reach = reachable(table, coverage)
            table = replace(table, rerank=self._scored(reach, reach.rows >= 0, config))
        if folder is not None:
            cache.save(table, folder, key)
        return table

    def batch(self, queries: Sequence[Query], config: Config, *, embed: bool = True) -> QueryBatch:
        """Formulate the search strings, embed them, and resolve whose memories they see."""
        turns = config.semantics.query_context_turns
        texts = tuple(formulate(q.text, q.turns, context_turns=turns) for q in queries)
        scope = [self.corpus.scope_of.get(q.tenancy.named, -1) for q in queries]
        vectors = None
        if embed and "vector" in Retrieval.of(config).lanes:
            vectors = self.query_vectors(queries, texts, config)
        return QueryBatch(
            texts,
            tuple(q.tenancy for q in queries),
            np.array(scope, dtype=np.int32),
            # No memory's time lies beyond it, and 2^63 - 1 itself stands for "never expires".
            np.array([min(max(q.now, -MAX_INTEGER), MAX_INTEGER) for q in queries], dtype=np.int64),
            tuple(q.filters for q in queries),
            vectors,
        )

    def vectors(self, config: Config) -> Vectors:
        """Embeddings of the memories: the dataset's own where it brings them."""
        key = ("vectors", config.harness.embedder, config.harness.pooling)
        if key not in self._loaded:
            matrix, has = self._memory_vectors(config)
            self._loaded[key] = Vectors(matrix, has)
        vectors: Vectors = self._loaded[key]
        return vectors

    def rerank(self, table: Candidates, config: Config) -> Candidates:
        """Put each query's pool to the reranker; time is the cost model's.

        Raises:
            ModelError: If the reranker is missing or answers out of contract.
        """
        if not _reranks(config):
            return table
        fused = fuse_lanes(table, config)
        scores = self._scored(fused.table, rerank_pool(fused, config), config)
        return replace(table, rerank=scores)

    def rerank_live(
        self, table: Candidates, config: Config, *, clock: Callable[[], float] = time.monotonic
    ) -> Candidates:
        """Put one query's pool to the reranker under ``timeoutMs`` by a real clock.

        A recall never fails because of it: an error or a late answer goes into the trace.
        """
        if not _reranks(config):
            return table
        fused = fuse_lanes(table, config)
        asked = rerank_pool(fused, config)
        rows, keys = fused.table.rows[asked], fused.table.pair_keys(asked)
        contents = [self.corpus.memories[row].content for row in rows.tolist()]
        live = self._scored_live(table.batch.texts[0], contents, config, clock)
        order = np.argsort(keys, kind="stable")
        return replace(
            table,
            rerank=RerankScores(
                keys[order],
                live.values[order],
                np.array([live.elapsed_ms]),
                np.array([live.fault], dtype=np.int8),
            ),
        )

    def _scored_live(
        self, text: str, contents: Sequence[str], config: Config, clock: Callable[[], float]
    ) -> _Live:
        nothing = np.full(len(contents), np.nan)
        try:
            model = self.reranker_for(config)
        except ModelError as error:
            _log.warning("reranker: unavailable: %s", error)
            return _Live(nothing, 0.0, Reason.UNAVAILABLE)
        if not contents:
            return _Live(nothing, 0.0, Reason.NONE)
        start, timeout = clock(), config.rag.rerank.timeout_ms / 1000
        try:
            given = model.score(text, contents, deadline=lambda: clock() - start > timeout)
            values = _in_contract(model, given, len(contents))
        except TimeoutError:
            return _Live(nothing, np.inf, Reason.NONE)
        except ModelError as error:
            _log.warning("reranker: %s", error)
            return _Live(nothing, 0.0, Reason.ERROR)
        except Exception:  # noqa: BLE001 - no fault in a reranker may fail the recall
            _log.warning("reranker %s failed", model.name, exc_info=True)
            return _Live(nothing, 0.0, Reason.ERROR)
        return _Live(values, (clock() - start) * 1000, Reason.NONE)

    def embedder_for(self, config: Config) -> Embedder:
        """The configured embedder, with its vectors kept on disk."""
        key = ("embedder", config.harness.embedder, config.harness.pooling)
        if key not in self._loaded:
            model = self.embedder or load_embedder(
                config.harness.embedder, pooling=config.harness.pooling
            )
            if self.cache is not None and model.reportable:
                kept = EmbeddingCache(self.cache)
                model = cached(model, kept, progress=lambda d, t: self._tell("embed", d, t))
            self._loaded[key] = model
        embedder: Embedder = self._loaded[key]
        return embedder

    def embedder_in_use(self, config: Config) -> Embedder | None:
        """The model whose vectors an answer depends on; None: no vectors, or the dataset's own."""
        compared = "vector" in config.harness.lanes or config.rag.mmr.enabled
        if not (config.rag.enabled and compared) or self.given is not None:
            return None
        return self.embedder_for(config)

    def reranker_for(self, config: Config) -> Reranker:
        """The configured reranker."""
        if self.reranker is not None:
            return self.reranker
        settings = config.harness.reranker
        key = ("reranker", settings.kind, settings.path or "", config.harness.embedder)
        if key not in self._loaded:
            shared = settings.kind == "late_interaction" and settings.path is None
            self._loaded[key] = load_reranker(
                settings.kind,
                settings.path,
                embedder=self.embedder_for(config) if shared else None,
                cache=None if self.cache is None else EmbeddingCache(self.cache),
            )
        reranker: Reranker = self._loaded[key]
        return reranker

    @cached_property
    def links(self) -> Links:
        """Causal links of the dataset, by row."""
        links, row_of = self.dataset.links, self.corpus.row_of
        return Links(
            np.array([row_of[link.from_id] for link in links], dtype=np.int32),
            np.array([row_of[link.to_id] for link in links], dtype=np.int32),
            np.array([link.confidence for link in links], dtype=np.float64),
        )

    def _completed(self, table: Candidates, config: Config) -> Candidates:
        """Add what spread lanes and diversity need."""
        wanted = config.rag.enabled and (config.rag.mmr.enabled or "vector" in table.lanes)
        return replace(table, links=self.links, vectors=self.vectors(config) if wanted else None)

    def _scored(self, table: Candidates, asked: NDArray[np.bool_], config: Config) -> RerankScores:
        """Put some (query, memory) pairs to the reranker, query by query."""
        model, keys = self.reranker_for(config), table.pair_keys(asked)
        values = np.empty(len(keys))
        queries, rows = np.nonzero(asked)[0], table.rows[asked]
        starts = np.flatnonzero(np.diff(queries, prepend=-1))
        for done, (start, stop) in enumerate(pairwise([*starts.tolist(), len(keys)])):
            contents = [self.corpus.memories[row].content for row in rows[start:stop].tolist()]
            given = model.score(table.batch.texts[queries[start]], contents)
            values[start:stop] = _in_contract(model, given, len(contents))
            self._tell("rerank", done + 1, len(starts))
        order = np.argsort(keys, kind="stable")
        return RerankScores(keys[order], values[order])

    def _key(self, queries: Sequence[Query], config: Config, coverage: Coverage) -> str:
        given = "" if self.given is None else self.given.fingerprint
        # A record's repr names every field, so queries that differ in anything differ here.
        asked = "\n".join(map(repr, queries))
        return cache.key_of(
            dataset=self.dataset.fingerprint,
            queries=sha256_text(asked),
            retrieval=Retrieval.of(config)._asdict(),
            given=given,
            embedder=self.embedder_for(config).fingerprint
            if "vector" in config.harness.lanes
            else "",
            reranker=self.reranker_for(config).fingerprint if coverage.rerank else "",
            coverage=coverage._asdict(),
            faiss=version("faiss-cpu"),
            sqlite=sqlite3.sqlite_version,
        )

    def _search(self, lane: str, batch: QueryBatch, config: Config, depth: int) -> LaneHits:
        semantics = config.semantics
        if lane == "vector":
            index = self.kept(
                ("vector index", config.harness.embedder, config.harness.pooling),
                lambda: vector.VectorIndex(self.corpus, *self.vectors(config)),
            )
            return vector.search(index, batch, depth=depth, scope_filter=semantics.scope_filter)
        index_of, search = _KEYWORD[config.harness.keyword_backend]
        index = self.kept(
            ("keyword index", config.harness.keyword_backend), lambda: index_of(self.corpus)
        )
        return search(
            index,
            batch,
            depth=depth,
            statistics=semantics.keyword_statistics,
            scope_filter=semantics.scope_filter,
        )

    def kept(self, key: tuple[str, ...], build: Callable[[], Any]) -> Any:
        """Return what was built under a key, building it when it is first asked for."""
        if key not in self._loaded:
            self._loaded[key] = build()
        return self._loaded[key]

    def query_vectors(
        self, queries: Sequence[Query], texts: Sequence[str], config: Config
    ) -> NDArray[np.float32]:
        """Embed the search strings of queries; the dataset's own vectors where it brings them.

        Raises:
            ModelError: If the model is missing, or the dataset brings none for a query.
        """
        if self.given is not None:
            matrix, has = self.given.rows_for([f"query:{query.id}" for query in queries])
            if has.all():
                return matrix
            lacking = next(q.id for q, known in zip(queries, has, strict=True) if not known)
            raise ModelError(
                f"the dataset brings its own embeddings (model {self.given.model!r}) but none "
                f"for query {lacking!r}; add a line query:{lacking} to embeddings.ids, leave the "
                "vector lane out (--lanes fts), or remove embeddings.npy to embed everything here"
            )
        return self.embedder_for(config).embed(texts)

    def _memory_vectors(self, config: Config) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        if self.given is not None:
            return self.given.rows_for([memory.id for memory in self.corpus.memories])
        matrix = self.embedder_for(config).embed([m.content for m in self.corpus.memories])
        return matrix, (matrix != 0).any(axis=1)

    def _tell(self, step: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(step, done, total)


class _Live(NamedTuple):
    """What a reranker answered one recall, and how long it took."""

    values: NDArray[np.float64]
    elapsed_ms: float
    fault: Reason


def _reranks(config: Config) -> bool:
    return config.rag.enabled and config.rag.rerank.enabled


def _in_contract(model: Reranker, given: object, asked: int) -> NDArray[np.float64]:
    """One score a memory, NaN where the model gave none.

    Raises:
        ModelError: If a score would turn the boosts around, or no memory can own it.
    """
    scores = np.asarray(given, dtype=np.float64)
    if scores.ndim != 1 or len(scores) > asked:
        raise ModelError(
            f"reranker {model.name} gave scores of shape {scores.shape} for {asked} memories; "
            f"it must give one a memory, ({asked},)"
        )
    unusable = (scores < 0) | (scores > 1)
    if unusable.any():
        place = int(unusable.argmax())
        raise ModelError(
            f"reranker {model.name} gave {scores[place]} for memory {place + 1} of {asked}; "
            "a score lies in [0, 1]: put a sigmoid behind a model that gives logits"
        )
    return np.pad(scores, (0, asked - len(scores)), constant_values=np.nan)
