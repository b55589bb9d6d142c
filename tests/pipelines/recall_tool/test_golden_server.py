"""The deployed server's own search and graph walk, over arms that say what they are told.

Its settings are spelled out: min_importance 0.4, a half-life, the stored relevance, arms
cut at three times the limit before the later filters, no rule of the client (gate, bands,
key matches), pinned rows put before the rest with a score of 2, whoever wrote a row.
"""

import numpy as np
import pytest

from comis_eval.candidates import Candidates, Retrieval
from comis_eval.config import Config
from comis_eval.lanes.base import LaneHits
from comis_eval.pipelines.recall_tool.rank import rank
from comis_eval.pipelines.recall_tool.table import ToolFacts, ToolTable
from comis_eval.stages.recall_tool import graph, order_by
from comis_eval.stages.recall_tool.request import Request
from comis_eval.store.corpus import QueryBatch
from comis_eval.store.tool_corpus import Caller, ToolCorpus, Views
from comis_eval.types import Tenancy
from tests.builders import DAY, NOW, memory, query
from tests.golden_data import cases

AGENTS = ("agent0", "agent1")
MIN_IMPORTANCE = 0.4
HALF_LIFE_DAYS = 30


def corpus_of(records):
    made = [
        memory(
            one["key"], key=one["key"], scope=one["scope"], status=one["status"],
            importance=one["importance_score"], relevance=one["relevance"], tags=tuple(one["tags"]),
            created_at=ago(one["created_age_days"]), tenancy=Tenancy("w1", one["agent"]),
        )
        for one in records
    ]  # fmt: skip
    # two records of one key never meet here, and nothing expires
    corpus = ToolCorpus.of(made, default_expiry=False)
    # the server is told how fresh a row is, and takes 0 for 1
    told = np.array([one["freshness_score"] for one in records], dtype=np.float64)
    vars(corpus)["freshness"] = np.where(told == 0, 1.0, told)
    return corpus


def ago(days):
    return NOW - round(days * DAY)


def seen_by_anybody(corpus, **asked):
    request = Request(query="", limit=1, include_expired=True, **asked)
    masks = [corpus.visible(Caller(Tenancy("w1", agent), NOW), request) for agent in AGENTS]
    return np.logical_or.reduce(masks)


def answered(given, corpus):
    """Keys with raw scores of the server's list, and what the arms returned."""
    limit = given.get("limit") or 20
    asked = {
        "scope": given.get("scope") or None,
        "tags": tuple(given.get("tags") or ()),
        "tags_any": tuple(given.get("tags_any") or ()),
    }
    in_arm = seen_by_anybody(corpus, **asked, include_superseded=True, include_archived=True)
    living = np.array([m.status != "superseded" for m in corpus.memories])

    def arm(keys, allowed):
        rows = [corpus.row_of[key] for key in keys]
        return [row for row in rows if allowed[row]][: 3 * limit]

    text = [] if given["text_arm_error"] else arm(given["text_arm"], in_arm & living)
    arms = {"fts": text}
    if given["embedder"] == "ok":
        arms["vector"] = arm(given["vector_arm"], in_arm)

    after = {
        "created_by": given.get("created_by"),
        "since": ago(given["since_age_days"]) if "since_age_days" in given else None,
        "until": ago(given["until_age_days"]) if "until_age_days" in given else None,
        "min_importance": given.get("min_importance", MIN_IMPORTANCE),
    }
    mask = seen_by_anybody(corpus, **asked, **after, include_archived=True)
    decay = given.get("apply_recency_decay", False)
    request = Request(
        query="zzzz",
        limit=min(limit, 50),
        relevance_min=given.get("relevance_min", 0.0),
        decay=decay or order_by.decays(given.get("order_by", "")),
    )
    half_life = given.get("half_life_days", HALF_LIFE_DAYS)
    config = Config.model_validate(
        {
            "harness": {
                "recallTool": {
                    "relevanceSource": "stored",
                    "decayBase": 0.5 ** (1 / half_life),
                    "band": 0.0,
                    "gate": {"noise": 0.0},
                }
            }
        }
    )
    paged = rank(table_of(corpus, arms, request, mask, config), config)
    weights = {"fts": 0.3, "vector": 0.7}
    most = sum(weights[name] for name, rows in arms.items() if rows) / 61
    order = paged.rankings.order[0, : int(paged.rankings.length[0])]
    rows = paged.rankings.table.rows[0, order].tolist()
    scores = (paged.rankings.final[0, order] * most).tolist()
    return list(zip(rows, scores, strict=True)), arms, in_arm


def table_of(corpus, arms, request, mask, config):
    batch = QueryBatch(
        ("",), (Tenancy("w1"),), np.zeros(1, dtype=np.int32), np.array([NOW]), ()
    )  # fmt: skip
    hits = {
        name: LaneHits(
            np.array([0, len(rows)]),
            np.array(rows, dtype=np.int32),
            np.zeros(len(rows)),
            np.array([True]),
        )
        for name, rows in arms.items()
    }
    retrieval = Retrieval.of(config)._replace(lanes=tuple(hits), depth=10**6)
    candidates = Candidates.assemble(ToolFacts(corpus), [query()], batch, retrieval, hits)
    views = Views(mask[None, :], np.zeros(1, dtype=np.int64))
    nothing = np.empty(0, dtype=np.int64)
    edges = graph.Edges(nothing, nothing, np.empty(0))
    caller = Caller(Tenancy("w1", "agent0"), NOW)
    return ToolTable(candidates, corpus, (caller,), (request,), views, edges)


@pytest.mark.parametrize("case", cases("recall-tool", "recall_pipeline"), ids=lambda c: c["name"])
def test_golden_recall_pipeline(case):
    given, expected = case["input"], case["expected"]
    corpus = corpus_of(given["records"])
    listed, arms, in_arm = answered(given, corpus)
    found = {row for row, _ in listed}
    pinned = [corpus.row_of[key] for key in given["pinned"] or ()]
    lead = [(row, 2.0) for row in pinned if row not in found and in_arm[row]]
    page = [*lead, *listed][: given["limit"] or 20]
    keys = [corpus.memories[row].key for row, _ in page]
    assert keys == [one["key"] for one in expected["items"]]
    assert [score for _, score in page] == pytest.approx(
        [one["score"] for one in expected["items"]], abs=1e-7
    )
    assert len(arms["fts"]) == expected["sparse_rows"]
    assert len(arms.get("vector", ())) == expected["dense_rows"]
    assert ("hybrid" if "vector" in arms else "bm25-only") == expected["search_mode"]


@pytest.mark.parametrize("case", cases("recall-tool", "recall_graph"), ids=lambda c: c["name"])
def test_golden_recall_graph(case):
    given = case["input"]
    corpus = corpus_of(given["records"])
    here = np.array([one["workspace"] == given["workspace"] for one in given["records"]])
    asked = {"scope": given["scope"] or None, "tags_any": tuple(given["tags_any"] or ())}
    search = {
        **asked, "text_arm": given["seed_text_arm"], "vector_arm": [], "text_arm_error": False,
        "embedder": "noop", "limit": 10,
    }  # fmt: skip
    seeds, _, _ = answered(search, corpus)
    pairs = [(corpus.row_of[e["from"]], corpus.row_of[e["to"]]) for e in given["edges"]]
    mask = here & seen_by_anybody(
        corpus, **asked, min_importance=MIN_IMPORTANCE, include_superseded=True
    )
    nodes = graph.walk(
        dict(seeds),
        graph.Edges(
            np.array([a for a, _ in pairs], dtype=np.int64),
            np.array([b for _, b in pairs], dtype=np.int64),
            np.array([e["weight"] for e in given["edges"]], dtype=np.float64),
        ),
        lambda rows: mask[rows],
        hops=min(given["hops"] or 2, 5),
        min_weight=given["weight_threshold"] or 0.1,
        edges_per_hop=200,
    )
    found = {
        corpus.memories[row].key: (
            pytest.approx(node.score, abs=1e-9),
            node.hops,
            "via:recall" if row in dict(seeds) else "via:graph",
        )
        for row, node in nodes.items()
    }
    expected = {
        one["key"]: (one["composite_score"], one["hop_distance"], one["provenance"])
        for one in case["expected"]["nodes"]
    }
    assert found == expected
    scores = [node.score for node in nodes.values()]
    assert scores == sorted(scores, reverse=True)
