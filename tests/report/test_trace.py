"""The trace beside an evaluation: its checks, and what the query browser makes of it."""

import json

import numpy as np
import pytest

from comis_eval.errors import EvaluationError
from comis_eval.report.browser import Side, browser
from comis_eval.report.markup import data_block
from comis_eval.report.trace import trace_of
from tests.report.build import NAN, candidate, evaluation, write_trace

VALUES = {"ndcg@10": [0.25, 0.5, 0.75, NAN]}
ROWS = [
    candidate("q2", "m1", 1, recency=1.1),
    candidate("q2", "m2", 2, fts_rank=None, fate="deduped", deduped_by="m1", reranker=0.5),
    candidate("q1", "m3", 1, fate="trust_filtered"),
]


def read(tmp_path, rows=ROWS, **types):
    trace = write_trace(rows, tmp_path / "a.trace.parquet", **types)
    return trace_of(evaluation(VALUES, trace=trace), tmp_path / "a.json")


def test_each_query_has_its_rows_whatever_their_order(tmp_path):
    trace = read(tmp_path)
    assert [trace.memory_ids[trace.rows(place)] for place in range(4)] == [
        ("m3",), ("m1", "m2"), (), (),
    ]  # fmt: skip
    assert trace.ranks["fts"].tolist() == [1, 0, 1]
    assert np.isnan(trace.numbers["reranker"]).tolist() == [True, False, True]
    assert trace.deduped_by == (None, "m1", None)


def test_no_trace_is_none(tmp_path):
    assert trace_of(evaluation(VALUES), tmp_path / "a.json") is None
    gone = evaluation(VALUES, trace={"file": "gone.parquet", "sha256": "0" * 64})
    assert trace_of(gone, tmp_path / "a.json") is None


def test_another_trace_is_refused(tmp_path):
    held = write_trace(ROWS, tmp_path / "a.trace.parquet")
    write_trace(ROWS[:1], tmp_path / "a.trace.parquet")
    with pytest.raises(EvaluationError, match=r"is not the trace that a\.json was written with"):
        trace_of(evaluation(VALUES, trace=held), tmp_path / "a.json")


@pytest.mark.parametrize("name", ["../a.parquet", "/etc/passwd", "", ".", "..", "a\0b", 7, "a/b"])
def test_a_name_that_leads_elsewhere_is_refused(name, tmp_path):
    held = {"file": name, "sha256": "0" * 64}
    with pytest.raises(EvaluationError, match=r"trace(\.file)? "):
        trace_of(evaluation(VALUES, trace=held), tmp_path / "a.json")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([candidate("q9", "m", 1)], "holds query 'q9'"),
        ([candidate("q1", "m", 2)], "out of order"),
        ([ROWS[0], ROWS[2], {**ROWS[1], "place": 1}], "out of order"),
        ([candidate("q1", "m", 1, fate="eaten")], "holds the fate 'eaten'"),
        ([candidate("q1", "m", 1, final=float("inf"))], "final holds an infinite number"),
        ([candidate("q1", "m", 1, fused="high")], "not a trace"),
        ([candidate("q1", None, 1)], "memory_id has gaps"),
        ([{k: v for k, v in ROWS[0].items() if k != "base"}], "it lacks base"),
    ],
)
def test_a_trace_that_is_none_is_refused(rows, message, tmp_path):
    import pyarrow as pa

    with pytest.raises(EvaluationError, match=message):
        read(tmp_path, rows, memory_id=pa.string())


def test_bytes_that_are_no_parquet_are_refused(tmp_path):
    import hashlib

    path = tmp_path / "a.trace.parquet"
    path.write_bytes(b"PAR1" + b"\0" * 40 + b"PAR1")
    held = {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    with pytest.raises(EvaluationError, match="not a trace"):
        trace_of(evaluation(VALUES, trace=held), tmp_path / "a.json")


@pytest.fixture
def shown(tmp_path):
    measured = evaluation(VALUES, categories=["x", "x\u202e", "y", "y"])
    return browser([Side("now", measured, read(tmp_path))], ["ndcg@10"], "ndcg@10")


def test_the_browser_lists_every_query_and_holds_no_text(shown):
    told = shown.overview
    assert told["ids"] == ["q1", "q2", "q3", "q4"]
    assert told["categories"][1] == "x\\u{202e}"
    assert told["values"] == [[0.25, 0.5, 0.75, None]]
    assert told["texts"] is None
    assert shown.memories == {"ids": ["m1", "m2", "m3"]}


def test_a_column_of_one_value_stands_alone(shown):
    side = shown.queries[1]["sides"][0]
    assert side["memory"] == [0, 1]
    assert side["ranks"] == {"fts": [1, 0]}
    assert side["recency"] == [1.1, 1.0]
    assert side["trust"] == 1.0
    assert side["reranker"] == [None, 0.5]
    assert side["by"] == [None, "m1"]
    assert shown.queries[0]["sides"][0]["reranker"] is None
    assert shown.queries[0]["sides"][0]["by"] is None


def test_each_stage_says_how_many_it_left(shown):
    assert shown.queries[1]["sides"][0]["stages"] == [
        ["search", 2], ["fuse", 2], ["rerank", 2], ["score", 2], ["trust", 2], ["dedup", 1],
        ["budget", 1],
    ]  # fmt: skip
    assert shown.queries[2]["sides"][0]["stages"][0] == ["search", 0]


@pytest.mark.parametrize(("on", "stage"), [("fused", "fuse"), ("final", "score")])
def test_the_floor_counts_where_the_configuration_has_it(on, stage, tmp_path):
    rows = [candidate("q1", "m", 1, fate="below_min_score")]
    measured = evaluation(VALUES)
    measured.config["semantics"]["minScoreOn"] = on
    told = browser([Side("now", measured, read(tmp_path, rows))], ["ndcg@10"], "ndcg@10")
    left = dict(told.queries[0]["sides"][0]["stages"])
    stages = list(left)
    assert left[stages[stages.index(stage) - 1]] == 1
    assert left[stage] == 0


def test_numbers_keep_six_digits(tmp_path):
    rows = [candidate("q1", "m", 1, final=0.123456789, base=1234567.0, fused=1e-9)]
    told = browser([Side("now", evaluation(VALUES), read(tmp_path, rows))], ["ndcg@10"], "ndcg@10")
    side = told.queries[0]["sides"][0]
    assert (side["final"], side["base"], side["fused"]) == (0.123457, 1234567.0, 1e-9)


def test_data_cannot_end_its_block():
    held = {"a": "</script><!--<script>&\u2028\u2029\ud800\x1b"}
    block = data_block("x", held)
    inner = block.removeprefix('<script type="application/json" id="x">').removesuffix("</script>")
    assert not set(inner) & set("<>&\u2028\u2029\ud800\x1b")
    assert inner.isascii()
    assert json.loads(inner) == held
