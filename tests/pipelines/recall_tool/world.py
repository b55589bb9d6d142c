"""A small workspace with hand-made vectors, and the recall tool as one would write it naively."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Edge, Judgments
from comis_eval.datasets.labels import Policy, ScopeRule
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Filters, Memory, Query, Tenancy
from tests.builders import memory, query

ME = Tenancy("t", "me")
SHE = Tenancy("t", "she")
THERE = Tenancy("far", "me")

DIM = 16


class WordEmbedder:
    """Texts that share words point the same way: each word is a fixed direction."""

    name = "words"
    fingerprint = "1" * 64
    dim = DIM
    reportable = True

    def embed(self, texts: Sequence[str]):
        return np.array([self._one(text) for text in texts], dtype=np.float32).reshape(-1, DIM)

    def _one(self, text):
        vector = np.zeros(DIM)
        for word in text.lower().split():
            seed = int.from_bytes(word.encode()[:8].ljust(8, b"\0"), "big") % (2**32)
            vector += np.random.default_rng(seed).normal(size=DIM)
        return vector


def mine(id_: str, content: str = "a kiln", **fields: Any) -> Memory:
    fields.setdefault("tenancy", ME)
    return memory(id_, content, key=fields.pop("key", f"key-{id_}"), **fields)


def dataset(
    memories: Sequence[Memory],
    queries: Sequence[Query] = (),
    *,
    edges: Sequence[tuple[str, str, float]] = (),
    scope: ScopeRule = ScopeRule.TENANT,
) -> Dataset:
    return Dataset(
        name="shelf",
        memories=tuple(memories),
        queries=tuple(queries),
        judgments=Judgments.of([], n_queries=len(queries)),
        policy=Policy(scope=scope),
        edges=tuple(Edge(a, b, "relates_to", weight) for a, b, weight in edges),
    )


def tool(
    memories: Sequence[Memory],
    *,
    lanes: tuple[str, ...] = ("fts",),
    settings: Mapping[str, Any] | None = None,
    **given: Any,
) -> RecallTool:
    config = Config.model_validate(
        {"harness": {"lanes": lanes, "recallTool": dict(settings or {})}}
    )
    retriever = Retriever(dataset(memories, **given), embedder=WordEmbedder(), cache=None)
    return RecallTool(retriever, config)


def asked(text: str = "kiln", *, tenancy: Tenancy = ME, id_: str = "q", **arguments: Any) -> Query:
    tags = tuple(arguments.pop("tags", ()))
    return query(
        text, id_, tenancy=tenancy, filters=Filters(tags=tags, parameters=arguments)
    )  # fmt: skip


def answer(recall: RecallTool, *text: str, **arguments: Any) -> dict[str, Any]:
    return recall.recall(asked(*text, **arguments))


def keys(given: Mapping[str, Any]) -> list[str]:
    return [item["key"].removeprefix("key-") for item in given["items"]]
