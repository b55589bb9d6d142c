"""From another format to a dataset folder, with a report of what was left out."""

import json

import pytest

import comis_eval.cli.importing
from comis_eval.datasets import Dataset, Judgments, load_dataset
from comis_eval.datasets.importers import Count, ImportReport, Note
from tests.cli.world import JUDGED, MEMORIES, QUERIES, error, is_tame, output


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
    monkeypatch.setattr(
        comis_eval.cli.importing, "IMPORTERS", {"made": lambda _: (dataset, report)}
    )
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
