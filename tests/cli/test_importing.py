"""From another format to a dataset folder, with a report of what was left out."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import comis_eval.cli.importing
from comis_eval.datasets import Dataset, Judgments, load_dataset, write_dataset
from comis_eval.datasets.importers import Count, Format, ImportReport, Note
from comis_eval.text import sha256_text
from tests.cli.world import JUDGED, MEMORIES, QUERIES, error, is_tame, output, run
from tests.datasets.importers.databases import T0, database, row

FORMATS = Path(__file__).parents[1] / "golden" / "formats"


@pytest.fixture
def importer(monkeypatch):
    """A format whose source does not matter."""
    rows = {m.id: row for row, m in enumerate(MEMORIES)}
    places = {q.id: place for place, q in enumerate(QUERIES)}
    dataset = Dataset(
        name="made",
        memories=MEMORIES,
        queries=QUERIES,
        judgments=Judgments.of(
            [(places[q], rows[m], grade) for (q, m), grade in JUDGED.items()],
            n_queries=len(QUERIES),
        ),
    )
    report = ImportReport(
        {"memories": Count(9, 7), "queries": Count(4, 4)},
        (Note("line 3", "id \x1b[2J is odd", "dropped"),),
    )

    def run(request):
        write_dataset(dataset, request.folder)
        return replace(report, name=dataset.name, fingerprint=dataset.fingerprint)

    monkeypatch.setattr(comis_eval.cli.importing, "FORMATS", {"made": Format(run)})
    return dataset


def test_the_report_says_in_out_dropped_and_why(importer, tmp_path):
    told = output("import", "made", "source", "--out", str(tmp_path / "set"))
    assert [line.split() for line in told.split("\n") if line.startswith("memories")] == [
        ["memories", "9", "7", "2"]
    ]
    assert "line 3: id ␛[2J is odd; dropped" in told
    assert is_tame(told)
    assert load_dataset(tmp_path / "set").fingerprint == importer.fingerprint


def test_the_report_as_json(importer, tmp_path):
    told = json.loads(output("import", "made", "x", "--out", str(tmp_path / "set"), "--json"))
    assert told["counts"]["memories"] == {"found": 9, "kept": 7, "dropped": 2}
    assert told["fingerprint"] == importer.fingerprint
    assert told["notes"][0]["where"] == "line 3"


@pytest.mark.usefixtures("importer")
def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    assert "exists and is not empty" in error("import", "made", "x", "--out", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_format_lists_the_known(tmp_path):
    told = error("import", "locmo", "x", "--out", str(tmp_path / "set"))
    assert "no format 'locmo'; there are " in told
    assert "locomo" in told


def test_a_missing_source_is_one_line(tmp_path):
    told = error("import", "locomo", str(tmp_path / "no.json"), "--out", str(tmp_path / "set"))
    assert "no.json" in told


def test_a_memory_db_is_imported_validated_asked_and_compared(tmp_path):
    rows = [row("m1", content="Ada drinks tea"), row("m2", content="Bob \x1b[2J drinks mate")]
    path = str(database(tmp_path / "memory.db", rows))
    folder = str(tmp_path / "set")
    told = output("import", "comis", path, "--out", folder)
    assert ["memories", "2", "2", "0"] in [line.split() for line in told.split("\n")]
    assert "is usable: 2 memories, 0 queries" in output("validate", folder)
    assert "m1" in output("recall", folder, "what does Ada drink", "--lanes", "fts")
    config = tmp_path / "c.yaml"
    config.write_text("rag: {minScore: 0}\n")
    assert "queries.jsonl is empty" in error("diff", folder, str(config), str(config))
    (tmp_path / "set" / "queries.jsonl").write_text('{"id": "q1", "text": "Ada tea"}\n')
    assert "0 of 1 contexts change" in output(
        "diff", folder, str(config), str(config), "--lanes", "fts"
    )
    assert "nobody judged it" in error("evaluate", folder, "--lanes", "fts")


def test_malformed_rows_are_shown_and_too_many_stop_the_import(tmp_path):
    rows = [row("m1"), row("m2", content=b"\x1b[2J")]
    path = str(database(tmp_path / "memory.db", rows))
    folder = str(tmp_path / "set")
    stopped = run("import", "comis", path, "--out", folder)
    assert stopped.exit_code == 2
    told = stopped.stderr
    assert "1 of 2 records are malformed" in told
    assert "memories rowid 2: content is a blob of 4 bytes" in told
    assert not (tmp_path / "set").exists()
    told = json.loads(
        output("import", "comis", path, "--out", folder, "--max-bad", "0.5", "--json")
    )
    assert told["counts"]["memories"] == {"found": 2, "kept": 1, "dropped": 1}
    assert told["reasons"] == {"dropped: malformed": 1}


def test_redaction_under_a_key_of_ones_own_is_the_same_twice(tmp_path):
    path = str(database(tmp_path / "memory.db", [row("m1", content="mail ada@example.org")]))
    key = str(tmp_path / "key")
    written = []
    for name in ("one", "two"):
        output(
            "import", "comis", path, "--out", str(tmp_path / name), "--redact", "--redact-key", key
        )
        written.append((tmp_path / name / "memories.jsonl").read_text())
    assert written[0] == written[1]
    assert "example.org" not in written[0]


def test_a_trace_needs_its_database_and_takes_a_log(tmp_path):
    base = str(database(tmp_path / "memory.db", [row("m1")]))
    trace, log, folder = (tmp_path / name for name in ("trace.jsonl", "log.txt", "set"))
    log.write_text("what is it?\n")
    record = {
        "ts": T0,
        "queryDigest": sha256_text("what is it?"),
        "ranked": [{"id": "m1", "reason": "included"}],
    }
    trace.write_text(json.dumps(record) + "\n")
    run = ("import", "recall-trace", str(trace), "--out", str(folder))
    assert "--database memory.db" in error(*run)
    told = output(*run, "--database", base, "--query-log", str(log))
    assert ["queries", "1", "1", "0"] in [line.split() for line in told.split("\n")]


def test_an_option_the_format_does_not_heed_is_refused(tmp_path):
    told = error("import", "locomo", "x.json", "--out", str(tmp_path / "set"), "--redact")
    assert "the format locomo does not take --redact" in told
    told = error("import", "comis", "x.db", "--out", str(tmp_path / "set"), "--query-log", "q")
    assert "does not take --query-log" in told


def test_grades_are_pairs_and_reach_the_format(tmp_path):
    source = str(FORMATS / "ir_datasets-0.6.3")
    run_ = ("import", "trec", source, "--out", str(tmp_path / "set"))
    assert "'4' is not FROM=TO" in error(*run_, "--grade", "4")
    assert "'1=7' is not FROM=TO" in error(*run_, "--grade", "1=7")
    assert "grade 1 is to become two things" in error(*run_, "--grade", "1=2", "--grade", "1=3")
    told = output(*run_, "--grade", "2=3", "--grade", "-1=0")
    assert "grade 2 read as 3, as asked" in told
    assert ["judgments", "5", "5", "0"] in [line.split() for line in told.split("\n")]


def test_options_of_other_formats_are_refused_by_their_names(tmp_path):
    out = ("--out", str(tmp_path / "set"))
    told = error("import", "beir", "x", *out, "--topics-by-position", "--unit", "turn")
    assert "the format beir does not take --topics-by-position, --unit" in told
    told = error("import", "locomo", "x", *out, "--grade", "4=3", "--split", "dev")
    assert "does not take --grade, --split" in told
