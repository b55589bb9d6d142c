"""Pools are the union of what each pipeline ranks high, and nothing else of it."""

import pytest

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import JudgeError
from comis_eval.judge.journal import Pair
from comis_eval.judge.pool import PIPELINES, default_pipelines, pool, pooled
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import TrustLevel
from tests.builders import memory, query

FIELDS = {"key": "some-key", "scope": "workspace", "created_by": "default"}
KILN = [
    memory("hot", "the kiln is hot"),
    memory("kiln", "kiln"),
    memory("web", "kiln kiln kiln", trust_level=TrustLevel.EXTERNAL),
    memory("tax", "the tax letter"),
]


def made(memories):
    queries = (query("kiln", "q1"), query("tax letter", "q2"), query("regatta", "q3"))
    return Dataset(
        name="kiln", memories=tuple(memories), queries=queries,
        judgments=Judgments.of((), n_queries=3),
    )  # fmt: skip


def retriever(dataset):
    return Retriever(dataset, embedder=HashingEmbedder(), cache=None)


def test_a_pool_is_the_union_cut_at_the_depth():
    dataset = made(KILN)
    source = pooled("keyword", retriever(dataset), Config())
    assert pool(dataset, [source], depth=5) == [
        Pair("q1", "hot"), Pair("q1", "kiln"), Pair("q2", "tax"),
    ]  # fmt: skip
    assert pool(dataset, [source], depth=1) == [Pair("q1", "kiln"), Pair("q2", "tax")]
    both = [source, pooled("vector", retriever(dataset), Config())]
    deep = pool(dataset, both, depth=5)
    assert set(deep) >= set(pool(dataset, [source], depth=5))
    assert set(deep) == {pair for one in both for pair in pool(dataset, [one], depth=5)}
    assert len(set(deep)) == len(deep)


def test_what_the_trust_filter_takes_comes_in_by_another_source():
    dataset = made([*KILN, memory("keyed", "kiln", trust_level=TrustLevel.EXTERNAL, **FIELDS)])
    source = retriever(dataset)
    keyword = pool(dataset, [pooled("keyword", source, Config())], depth=9)
    tool = pool(dataset, [pooled("recall-tool", source, Config())], depth=9)
    assert Pair("q1", "keyed") not in keyword
    assert Pair("q1", "keyed") in tool


def test_the_tool_is_pooled_where_memories_have_its_fields():
    assert default_pipelines(made(KILN)) == ("keyword", "vector", "fused", "reranked")
    assert default_pipelines(made([*KILN, memory("m", **FIELDS)])) == PIPELINES


def test_fused_is_the_configuration_as_it_is():
    dataset = made(KILN)
    loose = Config().evolve(**{"rag.include_trust_levels": ("learned", "external")})
    found = pool(dataset, [pooled("fused", retriever(dataset), loose)], depth=9)
    assert Pair("q1", "web") in found
    assert Pair("q1", "web") not in pool(
        dataset, [pooled("fused", retriever(dataset), Config())], depth=9
    )


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(JudgeError, match=r"'keywrd' is neither .* did you mean keyword\?"):
        pooled("keywrd", retriever(made(KILN)), Config())
