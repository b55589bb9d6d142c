"""comis-eval attack: made and measured, kept and reproducible, no text that steers."""

import pytest

from comis_eval.datasets import KINDS, Attack, load_dataset, validate
from tests.cli.world import HOSTILE, document, error, is_tame, output, world

FTS = ("--lanes", "fts", "--set", "rag.minScore=0")


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory) -> str:
    attacks = (Attack("q-hot", ("kiln-web",), "\x1b[31mred"),)
    return world(tmp_path_factory.mktemp("poisoned"), attacks=attacks)


def test_the_dataset_s_own_attacks(poisoned):
    told = output("attack", poisoned, *FTS)
    assert "its own attacks" in told
    assert "Attack success" in told
    assert is_tame(told)
    found = document("attack", poisoned, *FTS)
    assert [(f["trust_filter"], f["n"]) for f in found["attacks"]] == [("on", 1), ("off", 1)]
    assert found["rate"] is None
    assert found["k"] == 5
    assert [f["rates"]["asr@5"]["successes"] for f in found["attacks"]] == [0, 1]


def test_planted_kinds_are_measured_and_kept(dataset, tmp_path):
    kinds = ("--kind", "crowding", "--kind", "learned-poison")
    out = tmp_path / "made"
    found = document("attack", dataset, *FTS, *kinds, "--out", str(out), "--seed", "3")
    assert [f["kind"] for f in found["attacks"]] == ["crowding"] * 2 + ["learned-poison"] * 2
    crowded = load_dataset(out / "crowding")
    assert found["kept"][str(out / "crowding")] == crowded.fingerprint
    assert not validate(out / "crowding").faults
    again = document("attack", str(out / "crowding"), *FTS)
    assert again["attacks"] == found["attacks"][:2], "what is kept is what was measured"


def test_one_kind_is_kept_in_the_folder_itself(dataset, tmp_path):
    out = tmp_path / "one"
    output("attack", dataset, *FTS, "--kind", "invisible", "--out", str(out))
    assert load_dataset(out).name == "world-invisible"


def test_all_is_every_kind(dataset):
    told = output("attack", dataset, *FTS, "--kind", "all", "--rate", "0.5")
    assert all(kind in told for kind in KINDS)
    assert is_tame(told)


def test_hostile_kinds_and_ids_do_not_reach_the_terminal(dataset):
    told = error("attack", dataset, *FTS, "--kind", HOSTILE)
    assert "there is no attack" in told
    assert is_tame(told)


def test_errors(dataset, tmp_path):
    assert "has no attacks" in error("attack", dataset, *FTS)
    assert "in (0, 1]" in error("attack", dataset, *FTS, "--kind", "crowding", "--rate", "2")
    assert "name a kind" in error("attack", dataset, *FTS, "--out", str(tmp_path / "x"))
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("here")
    told = error("attack", dataset, *FTS, "--kind", "crowding", "--out", str(full))
    assert "exists and is not empty" in told
