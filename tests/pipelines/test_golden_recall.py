"""The whole orchestrator under production semantics, against the shipped one's own traces."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from comis_eval.candidates import Candidates, Facts, RerankScores, Retrieval
from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import LaneError
from comis_eval.lanes.base import LaneHits
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.fusing import fuse_lanes
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recorded import trace_record
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.pipelines.scoring import rerank_pool
from comis_eval.stages.rerank import Reason
from comis_eval.stages.score import NEUTRAL, Signals
from comis_eval.store.corpus import Corpus, Entities, QueryBatch
from comis_eval.types import Filters, Memory, Tenancy
from tests.builders import golden_memory, memory, query
from tests.golden_data import cases

CASES = [case for case in cases("memory-recall", "recall") if case["expected"]["ok"]]


class GivenEntities:
    """The fake entity store: a fixed order, cut to the cap; remembers what it was asked."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        self.calls: list[dict[str, Any]] = []

    def __call__(
        self, seeds: np.ndarray, corpus: Corpus, scope: np.ndarray, *, cap: int, **_: Any
    ) -> LaneHits:
        asked = [corpus.memories[row].id for row in seeds[0] if row >= 0]
        if asked:
            self.calls.append({"seedIds": asked, "cap": cap})
        rows = np.array(self.rows[:cap] if asked else [], dtype=np.int32)
        return LaneHits(np.array([0, len(rows)]), rows, np.zeros(len(rows)), np.ones(1, dtype=bool))


def config_of(case: dict[str, Any]) -> Config:
    rag = case["input"]["config"]
    rag["includeTrustLevels"] = tuple(rag["includeTrustLevels"])
    entity = case["input"].get("entity")
    if entity is None or entity["store"] == "absent":
        rag = {**rag, "entityLane": {**rag["entityLane"], "enabled": False}}
    return Config.model_validate({"rag": rag, "semantics": {"preset": "production"}})


def table_of(case: dict[str, Any], config: Config) -> tuple[Candidates, GivenEntities]:
    given = case["input"]
    # The fake search answers whatever the scope, and a lane may show an id with another
    # content: the first lane's record is the one that stays.
    tenancy = Tenancy(given["sessionKey"]["tenantId"], given.get("agentId") or "default")
    pool = given["searchPool"][: config.limit]
    lane = (given.get("entity") or {}).get("lane") or []
    if (given.get("entity") or {}).get("store") != "ok":
        lane = []
    memories: dict[str, Memory] = {}
    for hit in [*given["searchPool"], *lane]:
        entry = hit["entry"]
        memories.setdefault(entry["id"], golden_memory(entry, tenancy))
    nothing = Entities(np.empty(0, np.int32), np.empty(0, np.int32), ())
    corpus = Corpus(tuple(memories.values()), nothing, (tenancy,) if memories else ())
    facts = Facts(corpus)
    rows = np.array([[corpus.row_of[hit["entry"]["id"]] for hit in pool]], np.int32)
    rows = rows.reshape(1, len(pool))
    asked = query(given["query"], now=given["nowMs"], tenancy=tenancy)
    batch = QueryBatch(
        (given["query"],),
        (tenancy,),
        np.zeros(1, np.int32),
        np.array([given["nowMs"]]),
        (Filters(),),
    )
    flat = facts.signals(np.full(len(pool), given["nowMs"]), rows[0]) if pool else None
    signals = (
        Signals(*(signal[None, :] for signal in flat))
        if flat
        else Signals(*(np.full((1, 0), NEUTRAL) for _ in Signals._fields))
    )
    scores = np.array([[hit["score"] for hit in pool]], dtype=np.float64).reshape(1, len(pool))
    entities = GivenEntities([corpus.row_of[hit["entry"]["id"]] for hit in lane])
    table = Candidates(
        facts, (asked,), batch, Retrieval.of(config), rows, {}, signals,
        recorded=scores, entity_lane=entities,
    )  # fmt: skip
    return table, entities


def reranked(table: Candidates, case: dict[str, Any], config: Config) -> Candidates:
    """Attach what the fake reranker says, by its mode."""
    fake = case["input"].get("reranker")
    if fake is None or fake["mode"] == "absent" or case["input"].get("timers") is False:
        return table
    fused = fuse_lanes(table, config)
    pool = rerank_pool(fused, config)
    columns = [c for c in fused.order[0] if pool[0, c]]
    rows = fused.table.rows[0, columns]
    values = [fake["scoreByContent"].get(fused.table.corpus.memories[r].content, 0) for r in rows]
    if fake["mode"] == "short":
        values[len(values) // 2 :] = [np.nan] * (len(values) - len(values) // 2)
    fault = {"unavailable": Reason.UNAVAILABLE, "err": Reason.ERROR, "throw": Reason.ERROR}
    order = np.argsort(rows)
    scores = RerankScores(
        rows[order].astype(np.int64),
        np.array(values, dtype=np.float64)[order],
        elapsed_ms=np.array([np.inf if fake["mode"] == "timeout" else 0.0]),
        fault=np.array([fault.get(fake["mode"], Reason.NONE)], np.int8),
    )
    return replace(table, rerank=scores)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden_recall(case: dict[str, Any]) -> None:
    config = config_of(case)
    table, entities = table_of(case, config)
    rankings = rank(reranked(table, case, config), config)
    expected = case["expected"]

    columns = rankings.order[0, : rankings.length[0]]
    found = [
        {"id": rankings.table.corpus.memories[rankings.table.rows[0, c]].id,
         "score": rankings.final[0, c]}
        for c in columns
    ]  # fmt: skip
    assert found == expected["results"]

    record = trace_record(rankings, 0)
    for told in record["ranked"]:
        if "breakdown" in told:
            told["breakdown"]["usefulness"] = 1
    assert record == expected["trace"]

    assert [{"limit": config.limit, "minScore": config.rag.min_score}] == [
        {"limit": call["limit"], "minScore": call["minScore"]} for call in expected["searchCalls"]
    ]
    if (case["input"].get("entity") or {}).get("store") == "ok":
        asked = [{"seedIds": c["seedIds"], "cap": c["cap"]} for c in expected["entityCalls"]]
        assert entities.calls[:1] == asked
    documents = [call["docs"] for call in expected["rerankCalls"]]
    assert ([rankings.rerank_pool.sum()] if documents else []) == documents


class FailingSearch(HashingEmbedder):
    """Knows the memories and breaks on the question, so that the vector lane cannot search."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        vectors = super().embed(texts)
        return vectors * np.nan if list(texts) != [ANY.content] else vectors


ANY = memory("any", "something that the lane could have found")
FAILED = [case for case in cases("memory-recall", "recall") if not case["expected"]["ok"]]


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case["name"])
def test_golden_search_error_is_the_recalls_error(case: dict[str, Any]) -> None:
    assert (case["expected"]["trace"], case["expected"]["rerankCalls"]) == (None, [])
    given = case["input"]
    dataset = Dataset(
        name="golden", memories=(ANY,), queries=(), judgments=Judgments.of([], n_queries=0)
    )
    pipeline = MemoryRecall(Retriever(dataset, FailingSearch(4), cache=None), config_of(case))
    with pytest.raises(LaneError, match="vector of query 0"):
        pipeline.recall(query(given["query"], now=given["nowMs"]))
