"""comis-eval baseline: setting, replacing, showing."""

import pytest

from tests.cli.world import document, error, is_tame, output

FTS = ("--lanes", "fts", "--set", "rag.minScore=0")


@pytest.fixture(scope="module")
def files(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluations")
    leaky = ("--set", "rag.includeTrustLevels=[system, learned, external]")
    output("evaluate", dataset, *FTS, "--out", str(folder / "good.json"))
    output("evaluate", dataset, *FTS, *leaky, "--out", str(folder / "leaky.json"))
    return folder


def test_it_is_written_where_it_is_said_and_shown(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = output("baseline", "set", str(files / "good.json"), "--as", "main")
    assert "written: experiments/baselines/main.json, and its trace beside it; commit both" in told
    shown = output("baseline", "show", "main")
    assert "world 7  split all" in shown
    assert "4 queries, 0 failed" in shown
    assert is_tame(shown)
    assert output("baseline", "show") == "main\n"
    assert document("baseline", "show") == ["main"]
    assert document("baseline", "show", "main")["dataset"]["name"] == "world"


def test_a_replaced_one_says_what_changes(files, tmp_path):
    where = ("--as", "main", "--dir", str(tmp_path))
    output("baseline", "set", str(files / "good.json"), *where)
    again = output("baseline", "set", str(files / "good.json"), *where)
    assert "it replaces one with the same figures" in again
    changed = output("baseline", "set", str(files / "leaky.json"), *where, "--accept-faults")
    assert "policy_leak" in changed
    assert "accepted: " in changed


def test_one_that_was_edited_by_hand_can_be_replaced(files, tmp_path):
    where = ("--as", "main", "--dir", str(tmp_path))
    output("baseline", "set", str(files / "good.json"), *where)
    path = tmp_path / "main.json"
    whole = path.read_text()
    path.write_text(whole.replace("1.0", "0.5", 1))
    told = output("baseline", "set", str(files / "good.json"), *where)
    assert "the one it replaces cannot be read: " in told
    assert path.read_text() == whole


def test_faults_a_bad_name_and_no_evaluation_are_errors(files, tmp_path):
    where = ("--dir", str(tmp_path))
    leaky, good = str(files / "leaky.json"), str(files / "good.json")
    assert "--accept-faults" in error("baseline", "set", leaky, "--as", "main", *where)
    assert "is no name of a baseline" in error("baseline", "set", good, "--as", "../x", *where)
    assert "neither a file nor" in error("baseline", "show", "main", *where)
    assert output("baseline", "show", *where).startswith("no baseline in ")
    (tmp_path / "odd.json").write_text("{")
    assert "not a whole evaluation file" in error("baseline", "set", str(tmp_path / "odd.json"),
                                                  "--as", "main", *where)  # fmt: skip
