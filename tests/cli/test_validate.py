"""Every fault and warning by file and line, and the exit status."""

import json

from tests.cli.world import error, is_tame, run
from tests.datasets.folders import HEADER, MEMORIES, lines, tiny


def test_a_sound_dataset(tmp_path):
    result = run("validate", str(tiny(tmp_path / "set")))
    assert result.exit_code == 0
    assert "tiny is usable: 3 memories, 2 queries, 3 judgments, 0 warnings" in result.stdout


def test_every_fault_is_told_and_the_exit_status_is_2(tmp_path):
    bad = [{**MEMORIES[0], "trustLevel": f"bad{n}", "id": f"x{n}\x1b[2J"} for n in range(60)]
    folder = tiny(tmp_path / "set", memories_jsonl=lines(bad))
    result = run("validate", str(folder))
    assert result.exit_code == 2
    assert is_tame(result.stdout)
    for n in range(1, 61):
        assert f"{folder}/memories.jsonl:{n}: " in result.stdout
    assert ": unusable" in result.stdout


def test_warnings_leave_the_dataset_usable(tmp_path):
    folder = tiny(tmp_path / "set", dataset_yaml=HEADER.replace("judgedBy: people\n", ""))
    result = run("validate", str(folder))
    assert result.exit_code == 0
    assert "warning: " in result.stdout


def test_json_has_file_line_and_message(tmp_path):
    folder = tiny(tmp_path / "set", qrels_tsv="q1\t0\tm9\t3\n")
    result = run("validate", str(folder), "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert told["dataset"] is None
    assert told["faults"][0]["file"] == "qrels.tsv"
    assert told["faults"][0]["line"] == 1
    sound = run("validate", str(tiny(tmp_path / "sound")), "--json")
    assert json.loads(sound.stdout)["dataset"]["memories"] == 3


def test_no_such_dataset_is_one_line():
    assert "no dataset 'nowhere'" in error("validate", "nowhere")
