"""One implementation for one query and for many: a batch gives bit for bit what its members do."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Memory, RecallResult, Tenancy
from tests import strategies


class HashReranker:
    """A score per pair, from its hash alone; a third of the pairs get an extreme one."""

    name = "hash"
    fingerprint = "hash"

    def score(
        self, query: str, contents: Sequence[str], *, deadline: Callable[[], bool] | None = None
    ) -> NDArray[np.float64]:
        return np.array([self._one(query, content) for content in contents])

    def _one(self, query: str, content: str) -> float:
        digest = hashlib.sha256(f"{query}\0{content}".encode()).digest()
        return (0.0, 1.0)[digest[1] % 2] if digest[0] < 85 else digest[2] / 255


def pipeline(dataset: Dataset, config: Config) -> MemoryRecall:
    retriever = Retriever(dataset, embedder=HashingEmbedder(8), reranker=HashReranker(), cache=None)
    return MemoryRecall(retriever, config, delimiter=lambda: "a" * 24)


def told(answer: RecallResult) -> object:
    """Everything a recall says, in a form whose floats compare to the bit."""
    return (
        answer.text, answer.section, answer.inline, answer.context_chars, answer.lanes,
        answer.rerank, answer.rerank_candidates, [m.id for m in answer.memories],
        [
            (c.memory.id, dict(c.ranks), c.fused, c.reranker, c.base, dict(c.factors), c.final,
             c.fate, c.deduped_by)
            for c in answer.candidates
        ],
    )  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), config=strategies.configs())
def test_a_batch_equals_its_members(dataset: Dataset, config: Config) -> None:
    recall = pipeline(dataset, config)
    rankings = recall.rank(dataset.queries)
    together = [
        told(result(rankings, place, delimiter=recall.delimiter))
        for place in range(len(dataset.queries) if config.rag.enabled else 0)
    ]
    assert together == [told(recall.recall(query)) for query in dataset.queries]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    dataset=strategies.datasets(),
    config=strategies.configs(),
    others=strategies.memories(tenancies=[Tenancy("stranger", "a1")], prefix="z"),
)
def test_another_tenants_memories_change_nothing_when_documented(
    dataset: Dataset, config: Config, others: list[Memory]
) -> None:
    documented = config.evolve(semantics=Config().semantics)
    crowded = replace(dataset, memories=(*others, *dataset.memories))
    alone, beside = pipeline(dataset, documented), pipeline(crowded, documented)
    for query in dataset.queries:
        assert told(alone.recall(query)) == told(beside.recall(query))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), config=strategies.configs())
def test_ranking_again_from_the_same_table_gives_the_same(dataset: Dataset, config: Config) -> None:
    recall = pipeline(dataset, config)
    table = recall.candidates(dataset.queries)
    first, second = rank(table, config), rank(table, config)
    assert first.order.tobytes() == second.order.tobytes()
    assert first.final.tobytes() == second.final.tobytes()
