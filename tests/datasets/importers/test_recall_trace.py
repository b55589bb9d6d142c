"""From a recorded trace, a database and a query log to a dataset that can be replayed."""

import json

import pytest

from comis_eval.config import Config
from comis_eval.datasets import load_dataset, validate
from comis_eval.datasets.importers import ComisOptions, Redactor, TraceOptions, import_recall_trace
from comis_eval.datasets.weak import Signal, load_weak
from comis_eval.errors import DatasetError
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recorded import trace_record
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.text import sha256_text
from comis_eval.types import Tenancy
from tests.datasets.importers.databases import T0, database, row

TEXTS = ["what does Ada drink?", "where does Ada live?"]
FEEDBACK = (
    "CREATE TABLE memory_usefulness (memory_id TEXT, used_count INTEGER, ignored_count INTEGER);"
    "INSERT INTO memory_usefulness VALUES ('m1', 3, 1), ('m2', 0, 2), ('m3', 1, 1);"
)


def recall(text, *ids, **changes):
    return {
        "schema": "comis-recall-trace", "version": 1, "ts": T0 + 1000, "seq": 1,
        "agentId": "default", "sessionId": "s", "traceId": "t", "queryDigest": sha256_text(text),
        "lanes": {"fts": 2, "vector": 0, "entity": 0}, "vectorLaneActive": True,
        "fusedOrder": list(ids), "rerank": {"outcome": "fell_back", "candidateCount": 0},
        "ranked": [
            {"id": i, "reason": "included", "breakdown": {"base": 1.0, "final": 0.9}} for i in ids
        ],
        "durationMs": 3,
    } | changes  # fmt: skip


@pytest.fixture
def world(tmp_path):
    """A database, a log and a way to import a trace that holds the given lines."""
    rows = [row("m1", tenant_id="acme"), row("m2", tenant_id="acme"), row("m3")]
    base = database(tmp_path / "memory.db", rows, more=FEEDBACK)
    log = tmp_path / "log.txt"
    log.write_text("\n".join(TEXTS) + "\n")

    def run(lines, **given):
        path = tmp_path / "recall-trace.jsonl"
        path.write_text("".join(x if isinstance(x, str) else json.dumps(x) + "\n" for x in lines))
        options = TraceOptions(**({"database": base, "query_log": log} | given))
        report = import_recall_trace(path, tmp_path / "out", options)
        assert not validate(tmp_path / "out").faults
        return load_dataset(tmp_path / "out"), report

    return run


def surfaced(dataset):
    return [json.loads(x) for x in (dataset.folder / "surfaced.jsonl").read_text().splitlines()]


def test_recalls_join_with_the_database_by_id_and_with_the_log_by_digest(world):
    dataset, report = world([recall(TEXTS[0], "m1", "m2"), recall("not in the log", "m1", "gone")])
    (query,) = dataset.queries
    assert (query.text, query.now) == (TEXTS[0], T0 + 1000)
    assert query.tenancy == Tenancy("acme", "default")
    assert report.counts["recalls"] == (2, 2)
    assert report.counts["queries"] == (2, 1)
    told = " ".join(map(str, report.notes))
    assert "1 recalls are of texts that no query log has" in told
    assert "1 memories that were surfaced are not in the dataset ('gone')" in told
    first, second = surfaced(dataset)
    assert (first["query"], second["query"]) == (query.id, None)
    assert first["ranked"][0]["breakdown"] == {"base": 1.0, "final": 0.9}
    assert not dataset.labelled


def test_one_text_asked_twice_is_one_group(world):
    dataset, _ = world([recall(TEXTS[0], "m1"), recall(TEXTS[0], "m1", ts=T0 + 2000)])
    assert len({query.group for query in dataset.queries}) == 1
    assert [query.now for query in dataset.queries] == [T0 + 1000, T0 + 2000]


def test_used_and_ignored_become_weak_labels_of_what_was_included(world):
    ranked = [
        {"id": "m1", "reason": "included"},
        {"id": "m2", "reason": "included"},
        {"id": "m3", "reason": "included"},
    ]
    dataset, report = world(
        [
            recall(TEXTS[0], ranked=ranked),
            recall(TEXTS[1], ranked=[{"id": "m1", "reason": "trust_filtered"}]),
            recall("unknown", ranked=ranked),
        ]
    )
    labels = {(label.query_id, label.memory_id): label.signal for label in load_weak(dataset)}
    assert labels == {("r1", "m1"): Signal.USED, ("r1", "m2"): Signal.IGNORED}
    assert report.counts["weak labels"] == (2, 2)
    assert len(dataset.judgments) == 0
    with pytest.raises(DatasetError, match="nobody judged it"):
        dataset.check_labelled()


def test_a_csv_takes_the_place_of_the_databases_counts(world, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("memory,used,ignored\nm1,0,9\ngone,1,0\n")
    dataset, _ = world([recall(TEXTS[0], "m1", "m2")], usefulness=path)
    assert dataset.usefulness == {"m1": (0, 9)}
    assert [label.signal for label in load_weak(dataset)] == [Signal.IGNORED]
    path.write_text("memory,used,ignored\nm1,x,9\n")
    (tmp_path / "out").rename(tmp_path / "before")
    with pytest.raises(DatasetError, match=r"mine\.csv:2: used is 'x'"):
        world([recall(TEXTS[0], "m1")], usefulness=path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{\n", "not JSON"),
        ("[1]\n", "must be one JSON object"),
        (recall("x", queryDigest="abc"), "queryDigest is 'abc'"),
        (recall("x", ts="soon"), "ts is 'soon'"),
        (recall("x", ts=True), "ts is True"),
        (recall("x", ts=-5), "ts is -5"),
        (recall("x", schema="other"), "schema is 'other'"),
        (recall("x", version=2), "1"),
        (recall("x", agentId="a b"), "agentId is 'a b'"),
        (recall("x", ranked=None), "ranked is None"),
        (recall("x", "m1", "m1"), "names a memory twice"),
        (recall("x", ranked=[{"id": 7, "reason": "included"}]), "ranked[0] is"),
        (recall("x", ranked=[{"id": "m1", "reason": "magic"}]), "reason is 'magic'"),
        (
            recall("x", ranked=[{"id": "m1", "reason": "included", "breakdown": {"final": "1"}}]),
            "breakdown.final is '1'",
        ),
    ],
)
def test_a_malformed_line_is_listed_with_its_number(world, line, why):
    good = recall(TEXTS[0], "m1")
    _, report = world([good, line, good], comis=ComisOptions(max_bad=0.5))
    assert report.counts["recalls"] == (3, 2)
    (note,) = [note for note in report.notes if "malformed" in note.done]
    assert note.where == "recall-trace.jsonl:2"
    assert why in note.what


def test_too_many_malformed_lines_stop_the_import(world, tmp_path):
    with pytest.raises(DatasetError, match="1 of 2 records are malformed"):
        world([recall(TEXTS[0], "m1"), "{\n"])
    assert not (tmp_path / "out").exists()


def test_times_in_iso_form(world):
    dataset, _ = world([recall(TEXTS[0], "m1", ts="2023-11-14T22:13:21.000Z")])
    assert dataset.queries[0].now == T0 + 1000


def test_a_log_of_json_lines(world, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"text": TEXTS[0]}) + "\n" + json.dumps(TEXTS[1]) + "\n")
    dataset, _ = world([recall(TEXTS[0], "m1"), recall(TEXTS[1], "m1")], query_log=log)
    assert [query.text for query in dataset.queries] == TEXTS
    log.write_text('{"other": 1}\n')
    (tmp_path / "out").rename(tmp_path / "before")
    with pytest.raises(DatasetError, match=r"log\.jsonl:1: holds no text"):
        world([recall(TEXTS[0], "m1")], query_log=log)


def test_redaction_leaves_no_text_and_no_digest_that_could_be_tried(world, tmp_path):
    log = tmp_path / "mail.txt"
    log.write_text("who is ada@example.org?\n")
    line = recall("who is ada@example.org?", "m1", sessionId="ada@example.org")
    options = ComisOptions(redactor=Redactor())
    dataset, _ = world([line], query_log=log, comis=options)
    assert "[email:" in dataset.queries[0].text
    for file in (tmp_path / "out").iterdir():
        assert b"example.org" not in file.read_bytes()
    assert line["queryDigest"] not in (tmp_path / "out" / "surfaced.jsonl").read_text()


def test_what_our_own_trace_says_is_read_back(world):
    """A trace as :mod:`comis_eval.pipelines.recorded` writes it joins with what it came from."""
    first, _ = world([recall(TEXTS[0], "m1")])
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    retriever = Retriever(first, cache=None)
    rankings = rank(MemoryRecall(retriever, config).candidates(first.queries), config)
    record = trace_record(rankings, 0) | {"ts": T0, "agentId": "default"}
    first.folder.rename(first.folder.with_name("first"))
    again, report = world([record])
    assert report.counts["queries"] == (1, 1)
    assert surfaced(again)[0]["fusedOrder"] == record["fusedOrder"]
