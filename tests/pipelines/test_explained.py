"""A recall as a table: the same figures as the stored trace, in the same order."""

import numpy as np
import pandas as pd
import pytest

from comis_eval.evaluation import trace
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import explained
from tests.builders import memory
from tests.evaluation.world import MEMORIES, QUERIES, HandEmbedder, settings, world


@pytest.fixture
def recall():
    dataset = world((*MEMORIES, memory("twin", "beta")))
    return MemoryRecall(Retriever(dataset, embedder=HandEmbedder(), cache=None), settings())


def test_by_hand(recall):
    frame = recall.explain(QUERIES[0])
    assert frame["place"].tolist() == [1, 2, 3, 4, 5]
    assert frame["memory_id"].tolist() == ["a", "b", "c", "w", "twin"]
    assert frame["trust_level"].tolist()[1:4] == ["system", "learned", "external"]
    assert frame["vector_rank"].tolist() == [1, 2, 5, 4, 3]
    assert frame["fate"].tolist() == [*["included"] * 3, "trust_filtered", "deduped"]
    assert frame["deduped_by"].tolist()[-1] == "b"
    assert frame["deduped_by"].isna().tolist() == [True] * 4 + [False]
    assert frame["reranker"].isna().all()
    assert frame["fused"].tolist() == pytest.approx([1, 61 / 62, 61 / 65, 61 / 64, 61 / 63])
    assert frame["content"].tolist()[0] == "alpha"


def test_it_says_what_the_stored_trace_says(recall):
    rankings = recall.live(QUERIES[0])
    stored = pd.DataFrame({k: np.ma.filled(v, np.nan) if v.dtype.kind == "f" else v
                           for k, v in trace.columns(rankings).items()})  # fmt: skip
    frame = result(rankings, 0).explain()
    same = [name for name in frame if name in stored and name != "deduped_by"]
    assert set(same) >= {"place", "memory_id", "vector_rank", "fused", "base", "recency", "final"}
    for name in same:
        if frame[name].isna().any():
            assert (frame[name].isna() == stored[name].isna()).all()
        else:
            assert frame[name].tolist() == stored[name].tolist(), name


def test_the_recall_tool_explains_in_the_same_columns(recall):
    tool = RecallTool(recall.retriever, recall.config)
    frame = tool.explain(QUERIES[0])
    assert set(frame) == set(recall.explain(QUERIES[0]))
    assert (frame[["recency", "proof", "trust"]] == 1).all(axis=None)


def test_no_candidates_give_an_empty_table():
    frame = explained(())
    assert len(frame) == 0
    assert list(frame)[:3] == ["place", "memory_id", "trust_level"]


def test_hidden_characters_and_length_are_shown_not_obeyed():
    dataset = world(
        (memory("a\u202e", f"alpha \x1b[2J {'x' * 500}"),), grades={("q1", "a\u202e"): 1}
    )
    embedder = HandEmbedder()
    recall = MemoryRecall(Retriever(dataset, embedder=embedder, cache=None), settings())
    row = recall.explain(QUERIES[0]).iloc[0]
    assert row["memory_id"] == "a\\u{202e}"
    assert row["content"].startswith("alpha ␛[2J xxx")
    assert len(row["content"]) == 100
