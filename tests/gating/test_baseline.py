"""Baselines: whole, exact, reviewable, and nothing that was changed afterwards is believed."""

import json
from dataclasses import replace

import numpy as np
import pytest

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import write_evaluation
from comis_eval.gating import gate, load, read_baseline, write_baseline
from comis_eval.gating.baseline import faults, names
from tests.evaluation.world import measured, settings, world
from tests.gating.build import evaluation

LEVELS = ["system", "learned", "external"]


@pytest.fixture
def found():
    return measured(world())


def test_it_reads_back_to_the_bit_but_for_counts_that_must_be_0(tmp_path, found):
    path = write_baseline(found, "main", folder=tmp_path / "new" / "baselines")
    read = read_baseline(path)
    assert read.query_ids == tuple(sorted(found.query_ids))
    assert "laundered" not in read.values
    assert "unwanted_after_search" not in read.values
    for name, column in read.values.items():
        assert column.tobytes() == found.values[name].tobytes()
        assert str(read.means["all"][name]) == str(found.means["all"][name])
    for part in ("dataset", "config", "config_hash", "versions", "settings", "lanes", "counts"):
        assert getattr(read, part) == getattr(found, part)
    assert gate(read, found).outcome == "pass"


def test_a_query_is_a_line_and_an_undefined_value_is_not_there(tmp_path, found):
    text = write_baseline(found, "main", folder=tmp_path).read_text()
    (line,) = [line for line in text.splitlines() if line.startswith('  "q3"')]
    assert '"category": "z"' in line
    assert '"noise": ' in line
    assert "ndcg@10" not in line, "an unanswerable query has no nDCG"
    assert text.index('"q1": {') < text.index('"q2": {') < text.index('"q3": {')


def test_it_does_not_depend_on_the_order_of_the_queries(tmp_path):
    one = evaluation({"hit@5": [1, 0]}, query_ids=["a", "b"])
    two = evaluation({"hit@5": [0, 1]}, query_ids=["b", "a"])
    paths = [write_baseline(e, "main", folder=tmp_path / n) for n, e in (("1", one), ("2", two))]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_hostile_ids_cannot_hide_in_a_review(tmp_path):
    made = evaluation({"hit@5": [1]}, query_ids=["a\u202eb\x1b[2J\n"], categories=["\u2066"])
    path = write_baseline(made, "main", folder=tmp_path)
    assert path.read_bytes().isascii()
    assert "\x1b" not in path.read_text()
    assert read_baseline(path).query_ids == made.query_ids


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a b", "x" * 65, "ä", "a\n"])
def test_a_name_that_is_none_is_refused(tmp_path, found, name):
    with pytest.raises(EvaluationError, match="is no name of a baseline"):
        write_baseline(found, name, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_with_faults_is_refused_unless_said(tmp_path):
    leaky = measured(world(), settings({"includeTrustLevels": LEVELS}))
    with pytest.raises(EvaluationError, match=r"3 leaks that the pipeline promises.*--accept-fau"):
        write_baseline(leaky, "main", folder=tmp_path)
    read = read_baseline(write_baseline(leaky, "main", folder=tmp_path, accept_faults=True))
    assert read.leaks == leaky.leaks


def test_every_fault_is_named():
    made = evaluation({"hit@5": [1, 0], "laundered": [2, 0], "resurrected": [0, 1]})
    made = replace(made, counts={**made.counts, "failed": 3}, lanes={"fts": 2, "vector": 0})
    assert faults(made) == [
        "2 memories laundered", "1 memories resurrected", "3 failed queries", "1 dead lanes",
    ]  # fmt: skip
    leak = {"query_id": "q000", "memory_id": "m", "stage": "trust", "why": "trust"}
    assert faults(replace(evaluation({"hit@5": [1]}), enforces=(), leaks=(leak,))) == []


def edited(path, change):
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree))
    return path


EDITS = {
    "a value": lambda tree: tree["queries"]["q1"].update({"map": 1.0}),
    "a query gone": lambda tree: tree["queries"].pop("q1"),
    "a promise": lambda tree: tree.update(enforces=[]),
    "a figure": lambda tree: tree["means"]["all"]["map"].update(value=0.9),
    "a fingerprint": lambda tree: tree["dataset"].update(fingerprint="0"),
}


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_an_edit_by_hand_is_refused(tmp_path, found, change):
    path = edited(write_baseline(found, "main", folder=tmp_path), change)
    with pytest.raises(EvaluationError, match=r"main\.json: was edited by hand, or merged"):
        read_baseline(path)


BROKEN = {
    "no digest": (lambda tree: tree.pop("sha256"), "not a whole baseline .KeyError: 'sha256'"),
    "a later format": (lambda tree: tree["baseline"].update(format=2), "baseline format is 2"),
    "no head": (lambda tree: tree.update(baseline=None), "not a whole baseline"),
    "no queries": (lambda tree: tree.pop("queries"), "edited by hand"),
}


@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_one_is_refused(tmp_path, found, change, said):
    path = edited(write_baseline(found, "main", folder=tmp_path), change)
    with pytest.raises(EvaluationError, match=said):
        read_baseline(path)


def test_an_evaluation_is_no_baseline_and_a_list_is_neither(tmp_path, found):
    write_evaluation(found, tmp_path / "e.json")
    with pytest.raises(EvaluationError, match=r"e\.json: not a whole baseline"):
        read_baseline(tmp_path / "e.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(EvaluationError, match="not a whole baseline"):
        read_baseline(tmp_path / "list.json")


def test_a_name_a_baselines_file_and_an_evaluations_file_are_found(tmp_path, found):
    path = write_baseline(found, "main", folder=tmp_path)
    write_evaluation(found, tmp_path / "e.txt")
    assert load("main", folder=tmp_path)[1] == path
    assert load(str(path), folder=tmp_path / "elsewhere")[1] == path
    by_file, _ = load(str(tmp_path / "e.txt"), folder=tmp_path)
    assert np.array_equal(by_file.values["laundered"], found.values["laundered"])
    assert names(tmp_path) == ("main",)
    for name in ("other", "../main", "a\x1b"):
        with pytest.raises(
            EvaluationError, match=r"neither a file nor a baseline .*there are main"
        ):
            load(name, folder=tmp_path)
