"""Lines are checked before they are written, each on its own."""

import json

import pytest

from comis_eval.datasets.importers import Redactor, folder
from comis_eval.datasets.importers.folder import FolderWriter, some_of

MEMORY = {"id": "m1", "content": "tea", "trustLevel": "learned", "createdAt": 1}


def test_what_is_written_and_what_is_told(tmp_path):
    with FolderWriter(tmp_path) as writer:
        assert writer.memory(MEMORY) is None
        assert writer.query({"id": "q1", "text": "tea?", "now": 2}) is None
        writer.judgment("q1", "m1", 2)
        assert "already stands" in str(writer.memory(MEMORY))
        assert "createdAt is missing" in str(writer.memory({**MEMORY, "createdAt": None}))
        assert "unknown key 'x'" in str(writer.memory({**MEMORY, "id": "m2", "x": 1}))
        assert "surrogate" in str(writer.memory({**MEMORY, "id": "m3", "content": "\ud800"}))
        assert "'all' is taken" in str(writer.query({"id": "q2", "text": "", "category": "all"}))
    assert writer.memory_ids == {"m1"}
    assert json.loads((tmp_path / "memories.jsonl").read_text()) == MEMORY
    assert (tmp_path / "qrels.tsv").read_text() == "q1\t0\tm1\t2\n"


def test_a_line_longer_than_a_reader_takes_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "MAX_LINE_BYTES", 100)
    with FolderWriter(tmp_path) as writer:
        assert writer.memory({**MEMORY, "content": "x" * 100}) == "is longer than 100 bytes"
        assert writer.memory(MEMORY) is None
    assert len((tmp_path / "memories.jsonl").read_text().splitlines()) == 1


def test_ids_agree_after_redaction(tmp_path):
    with FolderWriter(tmp_path, Redactor(b"k" * 32)) as writer:
        writer.memory({**MEMORY, "id": "ada@example.org"})
        writer.judgment("q1", "ada@example.org", 1)
    (line,) = (tmp_path / "memories.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == (tmp_path / "qrels.tsv").read_text().split("\t")[2]
    assert writer.replaced == 1


@pytest.mark.parametrize(
    ("ids", "told"),
    [(["a"], "'a'"), (["a", "b", "c"], "'a', 'b', 'c'"), (list("abcd"), "'a', 'b', 'c', ...")],
)
def test_some_ids_are_named(ids, told):
    assert some_of(ids) == told
