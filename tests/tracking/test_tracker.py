import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from comis_eval.errors import ConfigError, TrackingError
from comis_eval.tracking import Tracker
from comis_eval.tracking.records import as_json
from tests.tracking.make import run, sweep

SECONDS = 60

KILLED_SEARCH = """
import os, signal, sys, time
from comis_eval.tracking import Tracker
from tests.tracking.make import run, sweep
log = Tracker.open(sys.argv[1]).sweep(sweep())
for number in range(20):
    log.add(run(number))
while not log.outcome.run_id:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""

WATCHED_WRITER = """
import sys
def report(event, args):
    if event == "socket.connect" or event == "socket.getaddrinfo":
        print("network:", event, args, file=sys.stderr, flush=True)
sys.addaudithook(report)
from comis_eval.tracking.process import main
main()
from mlflow.telemetry.client import get_telemetry_client
print("telemetry:", get_telemetry_client(), file=sys.stderr)
"""


def until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_sweep_is_logged_beside_the_search(tracker, children, tmp_path, monkeypatch):
    old = tmp_path / "mlruns" / "0"  # what makes MLflow's own default raise
    old.mkdir(parents=True)
    (old / "meta.yaml").write_text("experiment_id: '0'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:./mlruns")
    with tracker.sweep(sweep(metrics={})) as log:
        for number in range(12):
            log.add(run(number))
            log.add(run(number))
        logged = log.finish(sweep(), planned=12)
    assert logged[1:] == (12, 12, 0, 0)
    found = children(logged.run_id)
    assert [c.data.tags["comis_eval.trial"] for c in found] == [str(n) for n in range(12)]
    assert not list(tmp_path.rglob("*.lock"))


def test_only_the_best_are_logged_when_asked(tracker, children):
    runs = [run(n, always=n == 0) for n in range(5)]
    logged = tracker.log_sweep(sweep(), runs, which="top:2")
    assert (logged.planned, logged.logged) == (3, 3)
    assert [c.data.tags["comis_eval.trial"] for c in children(logged.run_id)] == ["0", "3", "4"]


def test_an_evaluation_is_one_run(tracker, client):
    run_id = tracker.log_single(sweep(key=None, metrics={"recall@5": 0.5}))
    assert client.get_run(run_id).data.metrics == {"recall_at_5": 0.5}


def test_a_killed_writer_is_told_and_the_rest_logged_later(tracker, children):
    runs = [run(n) for n in range(200)]
    log = tracker.sweep(sweep())
    (writer,) = [p for p in psutil.Process().children() if "tracking.process" in str(p.cmdline())]
    assert os.getsid(writer.pid) == writer.pid  # the terminal's Ctrl-C does not reach it
    for one in runs:
        log.add(one)
    until(lambda: log.outcome.logged >= 20)
    os.kill(writer.pid, signal.SIGKILL)
    with pytest.raises(TrackingError) as caught:
        log.finish(sweep())
    said = str(caught.value)
    assert "of 200 runs are not in MLflow at sqlite:///" in said
    assert "killed by signal 9" in said
    assert said.endswith("with: comis-eval sweep datasets/starter --resume --trials 0")

    logged = tracker.log_sweep(sweep(), runs)
    assert (logged.planned, logged.logged) == (200, 200)
    assert 20 <= logged.already < 200
    found = children(logged.run_id)
    assert sorted(int(c.data.tags["comis_eval.trial"]) for c in found) == list(range(200))
    assert {c.info.status for c in found} == {"FINISHED"}
    assert {len(c.data.metrics) for c in found} == {2}


def test_a_killed_search_leaves_what_it_told_logged(tracker, client, children):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_SEARCH, tracker.place.uri],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, b"")
    # waits for the writer, which still holds the sweep, to end
    logged = tracker.log_sweep(sweep(), [run(n) for n in range(25)])
    assert (logged.logged, logged.already) == (25, 20)
    assert len(children(logged.run_id)) == 25
    assert client.get_run(logged.run_id).info.status == "FINISHED"


def test_a_search_that_fails_leaves_the_sweep_to_go_on_with(tracker, client):
    def search():
        with tracker.sweep(sweep()) as log:
            log.add(run(0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        search()
    (parent,) = client.search_runs(["1"], "tags.`comis_eval.kind` = 'sweep'")
    assert parent.info.status == "KILLED"
    assert parent.data.tags["comis_eval.logged"] == "1"


def test_a_sweep_is_finished_as_it_was_planned(tracker):
    with tracker.sweep(sweep()) as log:
        log.add(run(0))
        with pytest.raises(ValueError, match="key differ"):
            log.finish(sweep(key="study-2"))
        with pytest.raises(TrackingError, match="2 trials were planned and 1 told") as caught:
            log.finish(sweep(), planned=2)
    assert "something is not in MLflow" in str(caught.value)


def test_a_server_that_is_not_there_costs_the_log_and_no_password(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    tracker = Tracker(Tracker.open("http://user:secret@127.0.0.1:9").place, backoff=(0.0,))
    with pytest.raises(TrackingError) as caught:
        tracker.log_sweep(sweep(), [run(0), run(1)])
    said = str(caught.value)
    assert "2 of 2 runs are not in MLflow at http://***@127.0.0.1:9: no success in 2" in said
    assert "secret" not in said


def test_a_mistaken_choice_is_refused_before_anything_starts(tracker):
    with pytest.raises(ConfigError, match="top:N"):
        tracker.sweep(sweep(), which="best")


def test_nothing_leaves_the_machine(tracker, monkeypatch):
    for name in ("CI", "GITHUB_ACTIONS", "PYTEST_CURRENT_TEST", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)  # these would turn telemetry off by themselves
    from comis_eval.tracking.writer import environment

    place = tracker.place
    opening = {
        "uri": place.uri,
        "artifact_root": str(place.artifact_root),
        "database": str(place.database),
        "parent": as_json(sweep()),
        "backoff": [],
    }
    told = [{"open": opening}, {"run": as_json(run(0))}, {"finish": as_json(sweep())}]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED_WRITER],
        input="".join(f"{json.dumps(message)}\n" for message in told),
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1])["outcome"][1:3] == [1, 1]
    assert "network:" not in done.stderr
    assert "telemetry: None" in done.stderr
