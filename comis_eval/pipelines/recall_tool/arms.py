"""A dataset as the recall tool searches it: corpus, indexes, and one call an arm."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates, Retrieval
from comis_eval.config import MAX_INTEGER, Config
from comis_eval.datasets.labels import ScopeRule
from comis_eval.errors import ModelError, RequestError
from comis_eval.lanes import tool_text, tool_vector
from comis_eval.lanes.base import LaneHits
from comis_eval.lanes.fts import FtsIndex
from comis_eval.pipelines.recall_tool.table import ToolFacts, ToolTable
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stages.recall_tool.graph import Edges
from comis_eval.stages.recall_tool.request import Request, request_of
from comis_eval.store.corpus import QueryBatch
from comis_eval.store.tool_corpus import Caller, ToolCorpus, Views
from comis_eval.types import Query

_log = logging.getLogger(__name__)


def search(
    retriever: Retriever,
    queries: Sequence[Query],
    config: Config,
    *,
    live: bool = False,
    vectors: NDArray[np.float32] | None = None,
) -> ToolTable:
    """Send a query set through the arms.

    Args:
        retriever: The dataset.
        queries: What is asked; a query's filters are the tool's parameters.
        config: Settings.
        live: Whether a vector arm that fails is left out, as the deployed tool does, instead
            of failing the whole set.
        vectors: The queries embedded, when that was done before.

    Raises:
        RequestError: If a query's parameters are not allowed, naming the query.
        LaneError: If an arm could not search.
        ModelError: If the embedder is missing and the call is not live.
    """
    settings = config.harness.recall_tool
    corpus = corpus_of(retriever, config)
    requests = tuple(request_for(query, config) for query in queries)
    callers = tuple(
        Caller(query.tenancy, min(max(query.now, -MAX_INTEGER), MAX_INTEGER)) for query in queries
    )
    views = Views.of(corpus, callers, requests)
    batch = QueryBatch(
        tuple(query.text for query in queries),
        tuple(query.tenancy for query in queries),
        np.array(
            [corpus.scope_of.get(corpus.workspace(c.tenancy.named), -1) for c in callers],
            dtype=np.int32,
        ),
        np.array([caller.now for caller in callers], dtype=np.int64),
        tuple(query.filters for query in queries),
        allowed=views.allow,
    )
    depth, asked = settings.arm_depth, config.harness.lanes
    hits: dict[str, LaneHits] = {}
    if "fts" in asked:
        index = _text_index(retriever, corpus, config)
        hits["fts"] = tool_text.search(index, corpus, batch.texts, views, depth=depth)
    if "vector" in asked:
        try:
            if vectors is None:
                vectors = retriever.query_vectors(queries, batch.texts, config)
            parts = _part_index(retriever, corpus, config)
        except ModelError as error:
            if not live or not hits:
                raise
            _log.warning("vector arm: left out: %s", error)
        else:
            whole = replace(batch, vectors=vectors)
            hits["vector"] = tool_vector.search(parts, whole, views, depth=depth)
    retrieval = Retrieval.of(config)._replace(lanes=tuple(hits), depth=depth)
    facts = ToolFacts(corpus)
    table = Candidates.assemble(facts, queries, batch, retrieval, hits)
    told: list[dict[Any, Any]] = [
        retriever.kept((f"tool {what}", str(settings.default_expiry)), dict)
        for what in ("words", "lengths")
    ]
    return ToolTable(table, corpus, callers, requests, views, _edges(retriever, corpus), *told)


def request_for(query: Query, config: Config) -> Request:
    """Return the call that a query of a dataset stands for.

    Raises:
        RequestError: If a parameter is not allowed, naming the query.
    """
    arguments = {
        "query": query.text,
        "tags": query.filters.tags or None,
        **query.filters.parameters,
    }
    try:
        return request_of(arguments, config.harness.recall_tool)
    except RequestError as error:
        raise RequestError(f"query {query.id!r}: {error}") from error


def corpus_of(retriever: Retriever, config: Config) -> ToolCorpus:
    """Return the dataset's memories as the tool has them.

    Where the dataset's policy shows a query the memories of its own agent alone, the
    caller's connection is to that agent's memories; else to its tenant's.
    """
    by_agent = retriever.dataset.policy.scope is ScopeRule.TENANCY
    expiry = config.harness.recall_tool.default_expiry
    return cast(
        ToolCorpus,
        retriever.kept(
            ("tool corpus", str(expiry)),
            lambda: ToolCorpus.of(
                retriever.dataset.memories, by_agent=by_agent, default_expiry=expiry
            ),
        ),
    )


def _text_index(retriever: Retriever, corpus: ToolCorpus, config: Config) -> FtsIndex:
    settings = config.harness.recall_tool

    def build() -> FtsIndex:
        columns = [
            [memory.key or "" for memory in corpus.memories],
            [memory.content for memory in corpus.memories],
        ]
        if settings.index_tags:
            columns.append([" ".join(memory.tags) for memory in corpus.memories])
        return FtsIndex(corpus, columns)

    key = ("tool text", str(settings.default_expiry), str(settings.index_tags))
    return cast(FtsIndex, retriever.kept(key, build))


def _part_index(retriever: Retriever, corpus: ToolCorpus, config: Config) -> tool_vector.PartIndex:
    settings, harness = config.harness.recall_tool, config.harness

    def build() -> tool_vector.PartIndex:
        if retriever.given is not None:
            ids = [memory.id for memory in corpus.memories]
            vectors, has = retriever.given.rows_for(ids)
            return tool_vector.PartIndex(corpus, np.arange(len(corpus)), vectors, has)
        parts = tool_vector.Parts.of(corpus, settings.chunk_chars)
        vectors = retriever.embedder_for(config).embed(parts.texts)
        has = (vectors != 0).any(axis=1)
        return tool_vector.PartIndex(corpus, parts.owners, vectors, has)

    key = (
        "tool parts", str(settings.default_expiry), str(settings.chunk_chars),
        harness.embedder, harness.pooling,
    )  # fmt: skip
    return cast(tool_vector.PartIndex, retriever.kept(key, build))


def _edges(retriever: Retriever, corpus: ToolCorpus) -> Edges:
    edges, row_of = retriever.dataset.edges, corpus.row_of

    def rows(ids: list[str]) -> NDArray[np.int64]:
        return np.array([row_of[memory_id] for memory_id in ids], dtype=np.int64)

    return Edges(
        rows([edge.from_id for edge in edges]),
        rows([edge.to_id for edge in edges]),
        np.array([edge.weight for edge in edges], dtype=np.float64),
    )
