"""A dataset made searchable: what is asked once, of whom, and with whose vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments, Link, load_dataset
from comis_eval.errors import DatasetError, LaneError, ModelError
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Memory, Tenancy, Turn
from tests.builders import ids, memory, query
from tests.datasets.folders import tiny


class CountingEmbedder:
    """The hashing embedder, with a note of every call."""

    name = "counting"
    fingerprint = "f" * 64
    dim = 8
    reportable = True

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        return HashingEmbedder(8).embed(texts)


MEMORIES = [memory("a", "kiln"), memory("b", "glaze", tenancy=Tenancy("t", "x"))]


def dataset(memories: Sequence[Memory] = MEMORIES, **fields: Any) -> Dataset:
    return Dataset(
        name="small", memories=tuple(memories), queries=(),
        judgments=Judgments.of([], n_queries=0), **fields,
    )  # fmt: skip


def settings(**harness: Any) -> Config:
    return Config.model_validate({"harness": harness})


def test_a_query_set_is_embedded_in_one_call_and_memories_once() -> None:
    embedder = CountingEmbedder()
    retriever = Retriever(dataset(), embedder, cache=None)
    asked = [query("kiln", "q1"), query("glaze", "q2", turns=(Turn("user", "red"),))]
    for _ in range(2):
        retriever.candidates(asked, Config())
    assert embedder.calls == [
        ["kiln", "glaze\nred"], ["kiln", "glaze"], ["kiln", "glaze\nred"],
    ]  # fmt: skip


def test_without_the_vector_lane_nothing_is_embedded() -> None:
    embedder = CountingEmbedder()
    retriever = Retriever(dataset(), embedder, cache=None)
    config = settings(lanes=["fts"])
    made = retriever.candidates([query("kiln")], config)
    assert embedder.calls == []
    assert (list(made.lanes), made.vectors) == (["fts"], None)
    mmr = config.evolve(**{"rag.mmr.enabled": True})
    assert retriever.candidates([query("kiln")], mmr).vectors is not None
    assert embedder.calls == [["kiln", "glaze"]], "diversity compares the memories"


def test_the_batch_says_whose_memories_each_query_may_see() -> None:
    retriever = Retriever(dataset(), cache=None)
    asked = [
        query("1", tenancy=Tenancy()), query("2", tenancy=Tenancy("t", "x")),
        query("3", tenancy=Tenancy("nobody")), query("4", tenancy=Tenancy("default", None)),
    ]  # fmt: skip
    batch = retriever.batch(asked, settings(lanes=["fts"]))
    assert batch.scope.tolist() == [0, 1, -1, 0], "an agent that is not named is `default`"
    assert batch.vectors is None


@pytest.mark.parametrize("now", [-(2**63), 2**63 - 1, 10**30, -(10**30)])
def test_a_moment_beyond_every_memory_is_the_end_of_time(now: int) -> None:
    mortal = memory("m", "kiln too", expires_at=2**53 - 2)
    pipeline = MemoryRecall(
        Retriever(dataset([*MEMORIES, mortal]), cache=None), settings(lanes=["fts"])
    )
    found = ids(pipeline.recall(query("kiln", now=now)).memories)
    assert sorted(found) == (["a", "m"] if now < 0 else ["a"]), "and what never expires does not"


def test_both_keyword_backends_answer_through_the_same_lane() -> None:
    retriever = Retriever(
        dataset([*MEMORIES, memory("c", "wheel"), memory("d", "clay")]), cache=None
    )
    for backend in ("fts5", "rank_bm25"):
        made = retriever.candidates(
            [query("kiln")], settings(lanes=["fts"], keywordBackend=backend)
        )
        assert made.rows.tolist() == [[0]]
        assert made.retrieval.keyword_backend == backend


def test_causal_links_are_rows_and_none_is_no_fault() -> None:
    linked = Retriever(dataset(links=(Link("b", "a", 0.5),)), cache=None).links
    assert [part.tolist() for part in linked] == [[1], [0], [0.5]]
    assert [len(part) for part in Retriever(dataset(), cache=None).links] == [0, 0, 0]


def test_a_long_step_tells_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []

    class Half:
        name = fingerprint = "half"

        def score(self, _: str, contents: Sequence[str], **__: object) -> NDArray[np.float64]:
            return np.full(len(contents), 0.5)

    retriever = Retriever(
        dataset(), reranker=Half(), cache=None, progress=lambda *step: told.append(step)
    )
    config = settings(lanes=["fts"]).evolve(**{"rag.rerank.enabled": True})
    asked = [query("kiln", "q1"), query("nothing", "q2"), query("kiln", "q3")]
    made = MemoryRecall(retriever, config).candidates(asked)
    assert told == [("rerank", 1, 2), ("rerank", 2, 2)], "the second query has no pool"
    assert made.rerank is not None
    assert made.rerank.keys.tolist() == [0, 4]


def test_the_same_memories_are_loaded_and_indexed_once() -> None:
    retriever = Retriever(dataset(), CountingEmbedder(), cache=None)
    assert retriever.corpus is retriever.corpus
    assert retriever.facts is retriever.facts
    assert retriever.vectors(Config()) is retriever.vectors(Config())


# Vectors that come with a dataset


def given(
    folder: Path, lines: Sequence[str], vectors: Sequence[Sequence[float]], *, dim: int = 2
) -> Dataset:
    tiny(folder)
    np.save(folder / "embeddings.npy", np.array(vectors, dtype=np.float32).reshape(len(lines), dim))
    (folder / "embeddings.ids").write_text("".join(f"{one}\n" for one in lines))
    (folder / "embeddings.yaml").write_text(f"model: somebody's\ndim: {dim}\n")
    return load_dataset(folder)


class NoModel:
    """Fails the test when it is asked: the dataset brings its own vectors."""

    name = "none"
    fingerprint = "0" * 64
    dim = 2
    reportable = True

    def embed(self, _: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError("asked to embed")


VECTOR = settings(lanes=["vector"]).evolve(**{"rag.min_score": 0.0})


def test_given_vectors_are_searched_without_a_model(tmp_path: Path) -> None:
    lines = ["m1", "m2", "m3", "query:q1", "query:q2"]
    # q1 points at m2 and nearly at m1, q2 at m1.
    owned = given(tmp_path / "d", lines, [[1, 0], [0.6, 0.8], [0, 1], [0.6, 0.8], [2, 0]])
    retriever = Retriever(owned, NoModel(), cache=None)
    made = retriever.candidates(owned.queries, VECTOR)
    found = [[owned.memories[row].id for row in rows] for rows in made.rows.tolist()]
    assert found == [["m2", "m3", "m1"], ["m1", "m2", "m3"]]
    assert made.lanes["vector"].scores[0].tolist() == pytest.approx([1.0, 0.8, 0.6])
    assert retriever.embedder_in_use(VECTOR) is None


def test_a_memory_without_a_given_vector_is_not_found_by_vector(tmp_path: Path) -> None:
    owned = given(tmp_path / "d", ["m2", "query:q1", "query:q2"], [[1, 0], [1, 0], [0, 0]])
    made = Retriever(owned, NoModel(), cache=None).candidates(owned.queries, VECTOR)
    assert made.rows.tolist() == [[1], [-1]], "and a query of zeros finds nothing"


def test_a_query_without_a_given_vector_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    owned = given(tmp_path / "d", ["m1", "query:q1"], [[1, 0], [1, 0]])
    retriever = Retriever(owned, NoModel(), cache=None)
    said = r"model \"somebody's\"\) but none for query 'q2'; add a line query:q2 .*--lanes fts"
    with pytest.raises(ModelError, match=said):
        retriever.candidates(owned.queries, VECTOR)
    keyword = retriever.candidates(owned.queries, settings(lanes=["fts"]))
    assert list(keyword.lanes) == ["fts"]


def test_given_vectors_of_two_lengths_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    given(folder, ["m1"], [[1, 0]])
    (folder / "embeddings.yaml").write_text("model: x\ndim: 3\n")
    with pytest.raises(DatasetError, match="dim must be 2"):
        _ = Retriever(load_dataset(folder), cache=None).given


# A model that answers out of contract


class Answers:
    """An embedder whose vectors of queries and memories a test chooses."""

    name = "answers"
    fingerprint = "1" * 64
    dim = 2
    reportable = False

    def __init__(self, memories: Any, queries: Any) -> None:
        self._memories, self._queries = memories, queries

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        one = self._queries if "?" in texts[0] else self._memories
        return np.array([one] * len(texts), dtype=np.float32)


@pytest.mark.parametrize(
    ("memories", "queries", "said"),
    [
        ([np.nan, 1], [1, 0], "vector of memory 'a' holds NaN or infinity; embed it again"),
        ([1, 0], [np.nan, 0], r"vector of query 0 \('kiln\?'\) holds NaN or infinity"),
        ([1, 0], [np.inf, 0], "holds NaN or infinity"),
        ([1, 0], [1, 0, 0], r"need query vectors \(1, 2\), got \(1, 3\)"),
        ([1, 0, 0], [1, 0], r"need query vectors \(1, 3\), got \(1, 2\)"),
        ([[1, 0]], [1, 0], r"needs vectors \(2, dim\)"),
    ],
    ids=["NaN memory", "NaN query", "infinite query", "long query", "short query", "a table each"],
)
def test_vectors_out_of_contract_are_the_lanes_error(
    memories: Any, queries: Any, said: str
) -> None:
    pipeline = MemoryRecall(Retriever(dataset(), Answers(memories, queries), cache=None), VECTOR)
    with pytest.raises(LaneError, match=said):
        pipeline.recall(query("kiln?"))
    with pytest.raises(LaneError, match=said):
        pipeline.rank([query("kiln?")])


@pytest.mark.parametrize(("memories", "queries"), [([0, 0], [1, 0]), ([1, 0], [0, 0])], ids=str)
def test_a_vector_of_zeros_finds_nothing_and_is_never_found(memories: Any, queries: Any) -> None:
    pipeline = MemoryRecall(Retriever(dataset(), Answers(memories, queries), cache=None), VECTOR)
    answer = pipeline.recall(query("kiln?"))
    assert (answer.candidates, answer.lanes) == ((), {"vector": 0})
