"""A study that was interrupted ends as if it had not been."""

import os
import signal
import stat
import subprocess
import sys
import time
from math import nan
from pkgutil import resolve_name

import numpy as np
import optuna
import pytest

from comis_eval.config import Config
from comis_eval.errors import StudyError
from comis_eval.tuning.journal import read_journal
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.storage import RECORD, StoredStudy, opened
from comis_eval.tuning.study import run_study
from tests.tuning.fake import COARSE, SPACE, TWO, UTILITY, Measure, space_of
from tests.tuning.test_study import plain

BASE = Config()


class Killed(BaseException):
    """What no handler catches, like the death of the process."""


class Dying(Measure):
    """Dies in its n-th measurement of this process."""

    def __init__(self, n, **how):
        super().__init__(**how)
        self._left = n

    def __call__(self, config):
        self._left -= 1
        if self._left < 0:
            raise Killed
        return super().__call__(config)


def go(place, measure=None, *, space=SPACE, trials=30, objectives=UTILITY, seed=0, **how):
    measure = measure or Measure(objectives)
    where = {} if place is None else place
    return run_study(
        measure, space, BASE, objectives=objectives, trials=trials, seed=seed, **where, **how
    )


@pytest.fixture(params=["journal", "file", pytest.param("sqlite", marks=pytest.mark.slow)])
def place(request, tmp_path):
    return {
        "journal": {"journal": tmp_path / "s.jsonl"},
        "file": {"storage": f"journal:{tmp_path / 's.log'}"},
        "sqlite": {"storage": f"sqlite:///{tmp_path / 's.db'}"},
    }[request.param]


@pytest.fixture
def journal(tmp_path):
    return {"journal": tmp_path / "s.jsonl"}


SEARCHES = {
    "tpe": {"sampler": "tpe"},
    "random": {"sampler": "random"},
    "nsga2": {"sampler": "nsga2", "objectives": TWO, "trials": 130},
    "duplicates": {"space": COARSE},
    "two": {"sampler": "tpe", "objectives": TWO},
}


def test_every_place_gives_the_same_trials(place):
    assert plain(go(place, trials=13)) == plain(go(None, trials=13))


def test_a_study_in_two_parts_is_the_whole(place):
    go(place, trials=11)
    resumed = go(place, trials=14, resume=True)
    assert plain(resumed) == plain(go(None, trials=14))


@pytest.mark.parametrize("name", SEARCHES)
def test_parts_are_the_whole(journal, name):
    how = {"trials": 30, **SEARCHES[name]}
    whole = go(None, **how)
    for part in (1, how["trials"] // 2, how["trials"] - 3):
        go(journal, **{**how, "trials": part}, resume=part > 1)
    resumed = go(journal, **how, resume=True)
    assert plain(resumed) == plain(whole)
    assert resumed.best._replace(ms=0, figures={}) == whole.best._replace(ms=0, figures={})


@pytest.mark.parametrize("name", SEARCHES)
def test_death_in_any_trial_changes_nothing(journal, name):
    how = {"trials": 24, **SEARCHES[name]}
    objectives = how.get("objectives", UTILITY)
    whole = go(None, **how)
    dice = np.random.default_rng(len(name))
    deaths = 0
    for _ in range(40):
        measure = Dying(dice.integers(1, how["trials"] // 3), objectives=objectives)
        try:
            resumed = go(journal, measure, **how, resume=deaths > 0)
        except Killed:
            deaths += 1
        else:
            break
    assert deaths > 0
    assert plain(resumed) == plain(whole)


def test_death_in_a_storage_changes_nothing(place):
    whole = go(None, trials=13)
    for deaths, after in enumerate((3, 1, 4)):
        with pytest.raises(Killed):
            go(place, Dying(after), trials=13, resume=deaths > 0)
    assert plain(go(place, trials=13, resume=True)) == plain(whole)


@pytest.mark.parametrize(
    "step",
    ["optuna.Study.ask", "optuna.Trial.suggest_float", "optuna.Trial.set_constraint",
     "comis_eval.tuning.storage.StoredStudy.tell"],
)  # fmt: skip
@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_death_after_any_step_changes_nothing(place, step, sampler, monkeypatch):
    whole = go(None, trials=13, sampler=sampler)
    owner, name = step.rsplit(".", 1)
    owner = resolve_name(owner)
    real, left = getattr(owner, name), [12]

    def dying(*given, **how):
        done = real(*given, **how)
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return done

    monkeypatch.setattr(owner, name, dying)
    with pytest.raises(Killed):
        go(place, trials=13, sampler=sampler)
    resumed = go(place, trials=13, sampler=sampler, resume=True)
    assert plain(resumed) == plain(whole)


def test_a_journal_cut_at_any_byte_resumes_to_the_same_end(journal):
    path = journal["journal"]
    whole = plain(go(journal, trials=12))
    data = path.read_bytes()
    for length in np.random.default_rng(0).integers(1, len(data), 15):
        path.write_bytes(data[:length])
        assert plain(go(journal, trials=12, resume=True)) == whole


def test_failed_and_infeasible_trials_survive(journal):
    def scores():
        return Measure(
            constraint=lambda c: c.rag.max_results - 6.0,
            broken=lambda c, utility: nan if c.rag.min_score > 0.6 else utility,
        )

    whole = go(None, scores(), required=1)
    assert whole.counts.failed > 0
    assert whole.counts.infeasible > 0
    go(journal, scores(), trials=15, required=1)
    assert plain(go(journal, scores(), resume=True, required=1)) == plain(whole)


def test_a_current_configuration_outside_of_the_space_survives(place):
    space = space_of(
        rag__minScore={"low": 0.2, "high": 0.9}, rag__maxResults={"low": 1, "high": 20}
    )
    whole = go(None, space=space, trials=8)
    go(place, space=space, trials=4)
    resumed = go(place, space=space, trials=8, resume=True)
    assert plain(resumed) == plain(whole)
    assert resumed.current.params["rag.minScore"] == 0.1
    assert any("outside of the space" in note for note in resumed.notes)


def test_nothing_is_measured_again(place):
    go(place, trials=4)
    measure = Measure()
    go(place, measure, trials=4, resume=True)
    assert measure.calls == []


def test_zero_trials_only_read(place):
    first = go(place, trials=4)
    measure = Measure()
    again = go(place, measure, trials=0, resume=True)
    assert measure.calls == []
    assert plain(again) == plain(first)
    assert again.counts == first.counts


def test_zero_trials_leave_a_dead_one_alone(place):
    with pytest.raises(Killed):
        go(place, Dying(3), trials=12)
    measure = Measure()
    assert len(go(place, measure, trials=0, resume=True).trials) == 3
    assert measure.calls == []


def test_a_study_without_its_first_trial_has_no_result(place):
    with pytest.raises(Killed):
        go(place, Dying(0), trials=12)
    with pytest.raises(StudyError, match="current configuration has not been measured yet"):
        go(place, trials=0, resume=True)


def test_values_by_query_of_earlier_trials_are_measured_when_asked_for(place):
    whole = go(None, trials=6)
    go(place, trials=4)
    measure = Measure()
    resumed = go(place, measure, trials=6, resume=True)
    assert len(measure.calls) == 2
    for number in (2, 2, 5):
        assert resumed.per_query(number)[0] == whole.per_query(number)[0]
    assert len(measure.calls) == 3


def test_a_bound_that_was_edited_is_refused(journal):
    go(journal, trials=6)
    resumed = go(journal, trials=0, resume=True)
    edited = [
        record._replace(constraints={"made_up": -1.0}) if record.number == 3 else record
        for record in resumed.trials
    ]
    assert resumed.per_query(2) is not None
    with pytest.raises(StudyError, match=r"trial 3 scored .*made_up -1.* and now scores"):
        StudyResult(resumed.task, edited, 6).per_query(3)


def test_values_by_query_that_no_longer_fit_are_refused(journal):
    go(journal, trials=6)
    resumed = go(journal, Measure(broken=lambda c, u: u + 1), trials=0, resume=True)
    with pytest.raises(
        StudyError, match=r"trial 3 scored .* and now scores .* begin another study"
    ):
        resumed.per_query(3)


def test_a_current_configuration_that_failed_stays_failed(place):
    for resume in (False, True):
        with pytest.raises(StudyError, match="current configuration cannot be scored"):
            go(place, Measure(broken=lambda c, u: nan), resume=resume)


# --- refusals -----------------------------------------------------------------------------


def test_a_study_that_is_there_must_be_resumed(place):
    go(place, trials=2)
    with pytest.raises(StudyError, match=r"exists.*--resume"):
        go(place, trials=2)


def test_a_study_that_is_not_there_cannot_be_resumed(place):
    with pytest.raises(StudyError, match=r"no study .*to resume"):
        go(place, trials=2, resume=True)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 1}, "seed was 0, is 1"),
        ({"sampler": "random"}, 'sampler was "tpe", is "random"'),
        (
            {"objectives": (*UTILITY, *TWO[1:])},
            r'objectives was \["maximize utility"\], is \["maximize utility", "minimize',
        ),
        (
            {"space": space_of(rag__minScore={"low": 0, "high": 0.5})},
            r"space\.rag\.scoring\.recencyAlpha was .*, is absent; space\.rag\.minScore was "
            r'"a number in \[0, 1\].*", is "a number in \[0, 0\.5\]',
        ),
        ({"fingerprint": {"dataset": "d2"}}, 'dataset was "d1", is "d2"'),
    ],
)
def test_another_study_is_refused_naming_what_differs(place, other, message):
    go(place, trials=2, fingerprint={"dataset": "d1"})
    how = {"fingerprint": {"dataset": "d1"}, **other}
    with pytest.raises(StudyError, match=f"another.*{message}"):
        go(place, trials=2, resume=True, **how)


def test_another_current_configuration_is_another_study(journal):
    go(journal, trials=2)
    base = BASE.evolve(**{"rag.scoring.proof_alpha": 0.5})
    with pytest.raises(StudyError, match=r"current\.rag\.scoring\.proofAlpha was 0\.1, is 0\.5"):
        run_study(
            Measure(), SPACE, base, objectives=UTILITY, trials=2, seed=0, resume=True, **journal
        )


def test_a_study_of_somebody_else_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    with opened(url) as storage:
        optuna.create_study(storage=storage, study_name="study").optimize(lambda t: 0.0, 1)
    with pytest.raises(StudyError, match="was not made by comis-eval"):
        go({"storage": url}, resume=True)


def test_a_trial_of_somebody_else_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    go({"storage": url}, trials=2)
    with opened(url) as storage:
        study = optuna.load_study(storage=storage, study_name="study")
        study.tell(study.ask(), 99.0)
    with pytest.raises(StudyError, match="trial 2 was not run by comis-eval"):
        go({"storage": url}, trials=4, resume=True)


def test_a_study_whose_making_was_interrupted_is_made_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("comis_eval.tuning.storage._CREATION", 0.1)
    url = f"journal:{tmp_path / 's.log'}"
    with opened(url) as storage:
        optuna.create_study(storage=storage, study_name="study", direction="maximize")
    assert plain(go({"storage": url}, trials=6, resume=True)) == plain(go(None, trials=6))


# --- storages -----------------------------------------------------------------------------


def test_storages_are_private_and_hold_the_records(tmp_path):
    path = tmp_path / "deep" / "s.db"
    go({"storage": f"sqlite:///{path}"}, trials=2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with opened(f"sqlite:///{path}") as storage:
        study = optuna.load_study(storage=storage, study_name="study")
        trial = study.trials[1]
        assert trial.user_attrs[RECORD]["params"].keys() == trial.params.keys()
        assert study.metric_names == ["utility"]
        assert trial.constraints == {"violation": 0.0}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgresql://me:hunter2@127.0.0.1:1/db",
            r"postgresql://\*\*\*@127\.0\.0\.1:1/db: cannot",
        ),
        ("nosuchdb://me:hunter2@h/db", r"nosuchdb://\*\*\*@h/db: cannot be opened"),
        ("hunter2", "cannot be opened"),
        ("mssql+pyodbc://me:hunter2@h/db", r"mssql\+pyodbc://\*\*\*@h/db: there is no driver"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_named_without_its_password(url, message, monkeypatch):
    monkeypatch.setattr("comis_eval.tuning.storage._ATTEMPTS", 1)
    with pytest.raises(StudyError, match=message) as caught:
        go({"storage": url})
    if url != "hunter2":
        assert "hunter2" not in str(caught.value)


def test_a_damaged_file_of_optunas_is_refused(tmp_path):
    place = {"storage": f"journal:{tmp_path / 's.log'}"}
    go(place, trials=2)
    path = tmp_path / "s.log"
    path.write_bytes(path.read_bytes().replace(b"{", b"[", 3))
    with pytest.raises(StudyError, match=r"s\.log: cannot be opened"):
        go(place, resume=True)


def test_an_abandoned_trial_waits_again_with_its_number_and_point(tmp_path):
    with opened(f"journal:{tmp_path / 's.log'}") as storage:
        study = optuna.create_study(storage=storage, study_name="study")
        trial = study.ask()
        asked = trial.suggest_float("x", 0, 1)
        stored = StoredStudy(study, storage)
        assert stored.put_back_abandoned(stored.trials(), alone=True)
        again = study.ask()
        assert (again.number, again.params) == (trial.number, {"x": asked})
        study.tell(again, 1.0)
        stored.put_back(0)  # too late: it is finished, and stays so
        assert stored.trials()[0].state.name == "COMPLETE"


@pytest.mark.parametrize(
    ("worker", "gone"),
    [
        ({}, False),
        ({"pid": 4_000_000}, True),
        ({"birth": "1"}, True),
        ({"birth": None}, False),
        ({"host": "elsewhere"}, False),
        ({"host": "elsewhere", "at": 0}, True),
        ({"at": 0}, True),
        ({"at": "now"}, True),
        ({"pid": os.getpid()}, True),
    ],
)
def test_a_trial_is_abandoned_when_its_process_is_gone(worker, gone):
    from comis_eval.tuning import storage as storages

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        study = optuna.create_study()
        trial = study.ask()
        storages.tag(trial)
        tag = trial.user_attrs[storages.WORKER]
        lives = {"pid": other.pid, "birth": storages._birth(other.pid)}
        trial.set_user_attr(storages.WORKER, {**tag, **lives, **worker})
        found = study.get_trials(deepcopy=False)[0]
        assert storages._gone(found, alone=True) == gone
        other.stdin.write(b"\n")


# --- a real SIGKILL -----------------------------------------------------------------------

SWEEP = """
import sys
from pathlib import Path
from tests.tuning.test_resume import go
from tests.tuning.fake import Measure
go({"journal": Path(sys.argv[1])}, Measure(sleep=0.004), trials=60, resume=sys.argv[2] == "resume")
"""


@pytest.mark.slow
def test_kill_9_at_random_times_loses_nothing(journal):
    path = journal["journal"]
    whole = go(None, trials=60)
    dice = np.random.default_rng(0)
    finished = 0
    for _ in range(20):
        begun = path.exists()
        command = [sys.executable, "-c", SWEEP, str(path), "resume" if begun else "begin"]
        process = subprocess.Popen(command)
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(dice.random() * (1.0 if begun else 0.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        entries = read_journal(path).entries
        assert len(entries) >= finished
        finished = len(entries)
        for entry, record in zip(entries, whole.trials, strict=False):
            assert entry.record.params == record.params
    assert finished > 0
    resumed = go(journal, trials=60, resume=finished > 0 or path.exists())
    assert plain(resumed) == plain(whole)
    assert resumed.best.number == whole.best.number
