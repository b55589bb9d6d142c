"""The command line of sampling."""

import json
from pathlib import Path

import pytest

from comis_eval.datasets import validate
from tests.cli.world import document, error, is_tame, output, run


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "queries.jsonl"
    rows = [{"query": f"where is folder {n}?", "ts": 1_780_000_000_000 + n} for n in range(300)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_sample_waits_for_memories_and_labels(log, tmp_path):
    out = tmp_path / "mine"
    told = output("sample", str(log), "--out", str(out), "-n", "20", "--seed", "3")
    assert "20 of 300 different queries" in told
    assert sorted(p.name for p in out.iterdir()) == [
        "README.md", "dataset.yaml", "queries.jsonl", "sample.json",
    ]  # fmt: skip
    faults = [fault.file for fault in validate(out, labelled=False).faults]
    assert set(faults) == {"memories.jsonl"}
    (out / "memories.jsonl").write_text(
        '{"id": "m", "content": "a folder", "trustLevel": "learned", "createdAt": 1770000000000}\n'
    )
    assert validate(out, labelled=False).faults == ()
    assert validate(out).faults != ()
    weights = json.loads((out / "sample.json").read_text())
    assert len(weights["queries"]) == 20
    assert sum(one["weight"] for one in weights["queries"]) == pytest.approx(300, abs=30)


def test_the_same_seed_draws_the_same(log, tmp_path):
    for name in ("a", "b"):
        output("sample", str(log), "--out", str(tmp_path / name), "-n", "20", "--seed", "3")
    output("sample", str(log), "--out", str(tmp_path / "c"), "-n", "20", "--seed", "4")
    a, b, c = ((tmp_path / name / "queries.jsonl").read_text() for name in "abc")
    assert a == b != c


def test_bad_lines_are_listed_and_too_many_stop(log, tmp_path):
    with log.open("a") as file:
        file.write('{"query": "ok", "ts": 1780000000}\n{\x1b[2J\n')
    result = run("sample", str(log), "--out", str(tmp_path / "mine"), "-n", "5")
    assert result.exit_code == 0
    assert "queries.jsonl:301: ts is 1780000000, in 1970" in result.stderr
    assert "queries.jsonl:302: not JSON" in result.stderr
    assert "2 of 302 lines could not be used" in result.stderr
    assert is_tame(result.stderr)
    told = run("sample", str(log), "--out", str(tmp_path / "no"), "--max-bad", "0.001")
    assert told.exit_code == 2
    assert "2 of 302 lines cannot be used, over 0.10% (--max-bad)" in told.stderr
    assert not (tmp_path / "no").exists()
    found = document("sample", str(log), "--out", str(tmp_path / "other"))
    assert [fault["line"] for fault in found["unusable"]] == [301, 302]


def test_a_text_file_has_a_query_a_line(tmp_path):
    (tmp_path / "log.txt").write_text("tax\nkiln\ntax\n")
    output(
        "sample", str(tmp_path / "log.txt"), "--out", str(tmp_path / "t"), "--now", "1780000000000"
    )
    rows = [json.loads(row) for row in (tmp_path / "t" / "queries.jsonl").read_text().splitlines()]
    assert [(row["id"], row["text"], row["now"]) for row in rows] == [
        ("log-2", "kiln", 1_780_000_000_000), ("log-3", "tax", 1_780_000_000_000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("log.csv", "tax\n", "ends in .jsonl"),
        ("log.txt", "", "holds no query"),
        ("log.jsonl", "{}\n", "holds neither"),
    ],
)
def test_what_cannot_be_drawn_from(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    told = run("sample", str(tmp_path / name), "--out", str(tmp_path / "out"))
    assert told.exit_code == 2
    assert said in told.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(log, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "dear").write_text("x")
    assert "exists and is not empty" in error("sample", str(log), "--out", str(tmp_path / "full"))
    assert "the folder's name is the dataset's" in error(
        "sample", str(log), "--out", str(tmp_path / "a b")
    )
    assert [p.name for p in Path(tmp_path / "full").iterdir()] == ["dear"]
