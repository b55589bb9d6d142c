"""A study as Optuna's own tools read it."""

import json
from math import nan

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from comis_eval.config import Config
from comis_eval.tuning.dashboard import copied, write_journal
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.study import run_study
from tests.tuning.fake import SPACE, TWO, UTILITY, Measure, space_of


def found(objectives=UTILITY, *, space=SPACE, base=None, measure=None, trials=25):
    measure = measure or Measure(objectives)
    return run_study(
        measure, space, base or Config(), objectives=objectives, trials=trials, seed=0, required=1
    )


def opened(path, name="mine"):
    storage = JournalStorage(JournalFileBackend(str(path)))
    return optuna.load_study(study_name=name, storage=storage)


@pytest.mark.parametrize("objectives", [UTILITY, TWO], ids=["one", "two"])
def test_optuna_reads_the_same_trials(tmp_path, objectives):
    study = found(objectives)
    write_journal(study, tmp_path / "optuna.journal", "mine")
    read = opened(tmp_path / "optuna.journal")
    assert [d.name.lower() for d in read.directions] == [o.direction for o in objectives]
    assert len(read.trials) == len(study.trials)
    for theirs, ours in zip(read.trials, study.trials, strict=True):
        assert theirs.state == TrialState.COMPLETE
        assert theirs.values == list(ours.values)
        assert theirs.params == dict(ours.params)
        assert theirs.user_attrs == {"trial": ours.number, "feasible": ours.feasible}
    if objectives == UTILITY:
        assert read.best_trial.number == study.best.number


def test_the_file_is_of_lines_as_optuna_appends_them(tmp_path):
    path = tmp_path / "optuna.journal"
    write_journal(found(trials=3), path, "mine")
    text = path.read_text()
    assert text.endswith("\n")
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines())
    write_journal(found(trials=4), path, "mine")  # replaced, not appended to
    assert len(opened(path).trials) == 4
    assert [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name] == []


def test_optuna_can_go_on_with_the_file(tmp_path):
    write_journal(found(trials=3), tmp_path / "optuna.journal", "mine")
    study = opened(tmp_path / "optuna.journal")
    trial = study.ask()
    study.tell(trial, 0.5)
    assert len(opened(tmp_path / "optuna.journal").trials) == 4


def test_failed_trials_are_left_out_and_numbers_are_told():
    measure = Measure(broken=lambda c, u: nan if c.rag.min_score > 0.6 else u)
    study = found(measure=measure)
    complete = [record.number for record in study.trials if record.state == "complete"]
    assert len(complete) < len(study.trials)
    assert [t.user_attrs["trial"] for t in copied(study, study.trials).trials] == complete


def test_infeasible_trials_are_marked():
    study = found(measure=Measure(constraint=lambda c: c.rag.max_results - 6.0))
    feasible = [trial.user_attrs["feasible"] for trial in copied(study, study.trials).trials]
    assert feasible == [record.feasible for record in study.trials]
    assert False in feasible


def test_what_the_current_configuration_has_outside_of_the_space_is_left_out(tmp_path):
    space = space_of(
        rag__minScore={"low": 0.2, "high": 0.9}, rag__maxResults={"low": 1, "high": 20}
    )
    study = found(space=space, trials=5)
    assert isinstance(study, StudyResult)
    write_journal(study, tmp_path / "optuna.journal", "mine")
    first, *others = opened(tmp_path / "optuna.journal").trials
    assert first.params == {"rag.maxResults": 5}
    assert all(set(trial.params) == {"rag.minScore", "rag.maxResults"} for trial in others)


def test_some_knobs_alone_can_be_copied():
    study = found()
    copy = copied(study, study.trials[3:6], knobs=["rag.maxResults"])
    assert [trial.params for trial in copy.trials] == [
        {"rag.maxResults": record.params["rag.maxResults"]} for record in study.trials[3:6]
    ]
