"""What a sweep leaves behind, and what is read of it again."""

import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from comis_eval.config_file import load_config
from comis_eval.errors import ConfigError, StudyError
from comis_eval.report.study import read_study
from comis_eval.tuning import folder
from comis_eval.tuning.select import Decision
from comis_eval.tuning.sweep import SweepResult
from tests.tuning.worlds import FTS, SHARE, plan, space, stale, swept

KNOBS = space(
    semantics__minScoreOn={"choices": ["fused", "final"]},
    rag__scoring__recencyAlpha=SHARE,
    rag__maxResults={"low": 1, "high": 8},
    rag__lanes__vector__weight={"choices": [None, 2.5]},
    rag__scoring__proofAlpha={"low": 0, "high": 1, "when": {"semantics.minScoreOn": "final"}},
)
"""With a what-if, a value that is null, and a knob that not every trial has."""
CURRENT = FTS.evolve(**{"rag.lanes.vector.weight": 3.0})
KEEP = Decision("keep current", ("for the test",))


@pytest.fixture(scope="module")
def result() -> SweepResult:
    found = swept(stale(30), plan(KNOBS, trials=16), CURRENT)
    assert found.decision.outcome == "adopt"
    return found


@pytest.fixture
def written(result: SweepResult, tmp_path: Path) -> Path:
    folder.write(result, tmp_path / "s")
    return tmp_path / "s"


# --- names --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "starter-1", "A.b_c-9", "x" * 64, "...", "-"])
def test_names_of_studies(name):
    assert folder.checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../x", "x" * 65, "a b", "a\n", "é", "\x1b[31m", "a\x00"]
)
def test_what_is_no_name_is_refused_and_shown_harmlessly(name):
    with pytest.raises(ConfigError, match=r"--study: .* is no name; use 1 to 64 letters") as caught:
        folder.checked_name(name)
    assert "\x1b" not in str(caught.value)


def test_a_free_name_is_the_first_that_no_study_has(tmp_path):
    assert folder.free_name(tmp_path / "none", "starter") == "starter-1"
    for taken in ("starter-1", "starter-2", "starter-4"):
        (tmp_path / taken).mkdir()
    assert folder.free_name(tmp_path, "starter") == "starter-3"
    assert folder.checked_name(folder.free_name(tmp_path, "x" * 64)) == "x" * 56 + "-1"


# --- what is written ----------------------------------------------------------------------


def test_what_is_written_is_read_again(result, written):
    told = folder.read_result(written)
    assert told == json.loads(json.dumps(folder.as_json(result)))
    assert told["decision"]["outcome"] == "adopt"
    assert told["winner"]["number"] == result.choice.number
    assert told["winner"]["values"] == dict(result.winner.params)
    assert told["confirmation"]["mean"] == result.held_out.comparison.mean
    assert told["counts"]["run"] == 16
    assert told["space"][3] == {
        **KNOBS.knobs[3]._asdict(), "choices": [None, 2.5], "when": [],
    }  # fmt: skip
    assert sorted(path.name for path in written.iterdir()) == [
        "rag.yaml", "result.json", "trials.parquet",
    ]  # fmt: skip


def test_the_report_reads_what_is_written(result, written):
    study = read_study(written)
    assert study.result.study == "s"
    assert study.trials.numbers.tolist() == list(range(16))
    values = [record.values[0] for record in result.study.trials]
    assert study.trials.figures["utility"].tolist() == values
    assert "params" not in study.trials.figures


def test_no_text_of_a_memory_or_query_is_written(result, written):
    content = b"".join(path.read_bytes() for path in written.iterdir())
    content += json.dumps(pq.read_table(written / "trials.parquet").to_pydict()).encode()
    assert b"w0x1" not in content
    assert result.dataset.memories[0].content.startswith("w0x0 ")


def test_every_trial_is_in_the_table(result, written):
    rows = pq.read_table(written / "trials.parquet").to_pylist()
    for row, record in zip(rows, result.study.trials, strict=True):
        assert row["number"] == record.number
        assert json.loads(row["params"]) == dict(record.params)
        for knob in KNOBS.knobs:
            assert row[knob.path] == record.params.get(knob.path)
        assert row["utility"] == record.values[0]
        assert row["noise"] is None  # there is no unanswerable query
        assert row["constraint:silence"] == record.constraints["silence"]


def test_figures_that_are_not_finite_are_null(result):
    odd = replace(
        result,
        judged=(nan, 1.0),
        references={"fts": {"utility": inf}},
        importances={"rag.maxResults": np.float64(0.25)},
        flat={"rag.maxResults": (np.int64(3), 8)},
    )
    told = folder.as_json(odd)
    assert told["judged"] == [None, 1.0]
    assert told["references"] == {"fts": {"utility": None}}
    json.dumps(told, allow_nan=False)


def test_writing_again_replaces_each_file_whole(result, written):
    folder.write(replace(result, decision=KEEP), written)
    assert folder.read_result(written)["decision"]["outcome"] == "keep current"
    assert not [path for path in written.iterdir() if "partial" in path.name]


# --- the fragment -------------------------------------------------------------------------


def loaded(text: str, path: Path):
    path.write_text(text)
    return load_config(path)


def test_the_fragment_loads_back_to_the_recommended_settings(result, written, tmp_path):
    text = folder.exported(str(written))
    assert loaded(text, tmp_path / "rag.yaml").rag == result.recommended.rag
    assert result.recommended.rag != CURRENT.rag


def test_the_fragment_names_study_dataset_and_gain(result, written):
    found = result.held_out.comparison
    first, second, *rest = folder.exported(str(written)).splitlines()
    assert first == f"# study s, dataset stale {result.dataset.fingerprint[:12]}, seed 0"
    assert second == (
        f"# gain in utility {found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}] "
        "on 60 held-out queries"
    )
    assert yaml.safe_load("\n".join(rest))["rag"]


def test_without_a_reason_to_change_the_settings_in_use_are_exported(result, tmp_path):
    text = folder.fragment(replace(result, decision=KEEP), CURRENT)
    assert "# no change is justified: these are the settings in use\n" in text
    assert "gain" not in text
    assert loaded(text, tmp_path / "rag.yaml").rag == CURRENT.rag


def test_any_trial_can_be_exported(result, written, tmp_path):
    for record in result.study.trials:
        text = folder.exported(str(written), record.number)
        assert text.startswith(f"# study s, trial {record.number}: not confirmed\n")
        config = result.study.config(record.number)
        assert loaded(text, tmp_path / "rag.yaml").rag == config.rag
        whatif = "# not exportable, the product has no such setting: semantics.minScoreOn\n"
        assert (whatif in text) == (config.semantics.min_score_on == "final")


def test_the_fragment_says_which_what_ifs_it_cannot_hold(result):
    final = CURRENT.evolve(**{"semantics.min_score_on": "final", "semantics.fusion": "nested"})
    text = folder.fragment(result, final)
    # The fusion was not searched: it is how this user's system is, not advice.
    assert "no such setting: semantics.minScoreOn\n" in text
    assert "not exportable" not in folder.fragment(result, CURRENT)


def test_a_study_is_found_by_its_name_or_its_folder(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder.write(result, folder.STUDIES / "mine")
    assert folder.exported("mine") == folder.exported(str(folder.STUDIES / "mine"))


# --- what cannot be read ------------------------------------------------------------------


def test_a_trial_that_is_not_there(written):
    with pytest.raises(StudyError, match="there is no trial 99; there are 0 to 15"):
        folder.exported(str(written), 99)


@pytest.mark.parametrize("study", ["nothing", "../nothing", "\x1b[2J", "a\x00b", "x" * 5000])
def test_a_study_that_is_not_there(study):
    with pytest.raises(StudyError, match="there is no such study; `comis-eval sweep` makes one"):
        folder.exported(study)


def test_a_sweep_that_did_not_end(tmp_path):
    with pytest.raises(StudyError, match="the sweep did not end; go on with --resume"):
        folder.exported(str(tmp_path))


@pytest.mark.parametrize("text", ["{", '{"format": 9}', "[]", "null", '"x"', '{"format": "1"}'])
def test_a_result_that_cannot_be_used(written, text):
    (written / "result.json").write_text(text)
    with pytest.raises(StudyError, match=r"result\.json: .* sweep again with --resume"):
        folder.read_result(written)


def test_a_result_that_is_no_text(written):
    (written / "result.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match=r"result\.json: cannot be read"):
        folder.read_result(written)


def test_files_that_are_missing_are_named(written):
    (written / "trials.parquet").unlink()
    with pytest.raises(StudyError, match=r"trials\.parquet: .* sweep again with --resume"):
        folder.exported(str(written), 3)
    (written / "rag.yaml").unlink()
    with pytest.raises(StudyError, match=r"rag\.yaml: .* sweep again with --resume"):
        folder.exported(str(written))
