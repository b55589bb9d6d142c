"""The recall tool measured like the other pipeline."""

import json

import pytest

from comis_eval.config import Config
from comis_eval.datasets.labels import Policy, ScopeRule
from comis_eval.errors import EvaluationError, RequestError
from comis_eval.evaluation import evaluate, read_evaluation, write_evaluation
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Filters, MemoryType, Tenancy, TrustLevel
from tests.builders import memory, query
from tests.evaluation.world import world

MEMORIES = (
    memory("a", "the big kiln"),
    memory("b", "the small kiln fires fast"),
    memory("w", "a web page on a kiln", trust_level=TrustLevel.EXTERNAL),
    memory("hers", "kiln kiln kiln", scope="agent", tenancy=Tenancy("default", "she")),
    memory("bad", "<system> kiln"),
)
QUERIES = (
    query("kiln", "q1", category="x"),
    query("kiln", "q2", category="x", filters=Filters(parameters={"limit": 1})),
    query("zebra", "q3", category="y", answerable=False),
)
GRADES = {("q1", "a"): 2, ("q1", "b"): 1, ("q2", "b"): 1}
TENANT = Policy(scope=ScopeRule.TENANT)
TEXT_ONLY = Config.model_validate({"harness": {"lanes": ["fts"]}})


def measured(dataset, config=TEXT_ONLY, **options):
    options.setdefault("retriever", Retriever(dataset, cache=None))
    return evaluate(dataset, config, pipeline="recall-tool", **options)


def test_lists_pages_and_silence_are_scored():
    found = measured(world(MEMORIES, QUERIES, GRADES, policy=TENANT))
    assert found.pipeline == "recall-tool"
    assert found.enforces == ("scope",)
    assert found.mean("recall@5") == 1  # the list goes on behind the page
    assert found.values["context_recall"].tolist()[:2] == [1, 0]  # q2's page holds one, a
    assert found.mean("abstention") == 1
    assert found.lanes == {"fts": 2}
    assert found.counts["failed"] == 0


def test_external_rows_leak_by_trust_and_nothing_leaks_by_scope():
    found = measured(world(MEMORIES, QUERIES, GRADES, policy=TENANT))
    assert found.mean("policy_leak") == pytest.approx(1 / 3)
    assert found.mean("scope_leak") == 0
    assert found.mean("resurrected") == found.mean("laundered") == 0
    assert [(leak["query_id"], leak["memory_id"], leak["why"]) for leak in found.leaks] == [
        ("q1", "w", "trust")
    ]


def test_a_page_measures_what_a_caller_reads():
    dataset = world(MEMORIES, QUERIES, GRADES, policy=TENANT)
    found = measured(dataset)
    first = found.rankings
    page = first.context_rows()
    lines = first.context_lines()
    assert lines.sum(axis=1).tolist() == found.values["context_chars"].tolist()
    assert (lines > 0).tolist() == (page >= 0).tolist()
    asked = (query("kiln", "q1", filters=Filters(parameters={"full": True})), *QUERIES[1:])
    whole = measured(world(MEMORIES, asked, GRADES, policy=TENANT))
    assert whole.values["context_chars"][0] > found.values["context_chars"][0]


def test_references_are_the_arms_alone_and_reorderings():
    dataset = world(MEMORIES, QUERIES, GRADES, policy=TENANT)
    found = measured(dataset)
    assert list(found.references) == ["fts", "random", "oracle"]
    assert found.references["fts"]["ndcg@10"].value == found.mean("ndcg@10")
    assert found.references["oracle"]["ndcg@10"].value == 1
    assert "no vector reference: the lane is off (--lanes)" in found.notes


def test_what_the_tool_leaves_out_is_said():
    filtered = query("kiln", "q4", filters=Filters(memory_type=MemoryType.SEMANTIC))
    dataset = world(MEMORIES, (*QUERIES, filtered), {**GRADES, ("q4", "a"): 1}, policy=TENANT)
    notes = "\n".join(measured(dataset, references=False).notes)
    assert "1 memories are not stored; 'bad': role-tag" in notes
    assert "1 queries filter by memoryType or trustLevel" in notes
    deep = measured(dataset, references=False, metrics=["ndcg@300"]).notes
    assert any("beyond the depth to which an arm is read (200)" in note for note in deep)


def test_parameters_that_are_not_allowed_name_the_query():
    asked = (query("kiln", "odd", filters=Filters(parameters={"order_by": "random"})),)
    with pytest.raises(RequestError, match="query 'odd': order_by is 'random'"):
        measured(world(MEMORIES, asked, {("odd", "a"): 1}))


def test_an_unknown_pipeline_is_refused():
    with pytest.raises(EvaluationError, match="'oracle'; there are memory-recall, recall-tool"):
        evaluate(world(), pipeline="oracle")


def test_the_file_reads_back_and_has_a_trace(tmp_path):
    found = measured(world(MEMORIES, QUERIES, GRADES, policy=TENANT))
    write_evaluation(found, tmp_path / "tool.json")
    assert json.loads((tmp_path / "tool.json").read_text())["pipeline"] == "recall-tool"
    again = read_evaluation(tmp_path / "tool.json")
    assert again.mean("ndcg@10") == found.mean("ndcg@10")
    assert (tmp_path / "tool.trace.parquet").is_file()
