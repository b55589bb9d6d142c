"""Killed from outside at any time, a sweep goes on and ends as if it had not been."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from comis_eval.datasets import write_dataset
from comis_eval.tracking.place import place_of
from comis_eval.tracking.writer import ENVIRONMENT
from comis_eval.tuning.journal import read_journal
from tests.tracking.conftest import imported
from tests.tuning.worlds import stale

pytestmark = pytest.mark.slow

TRIALS, KILLS = 60, 20
ROOT = Path(__file__).parents[2]
STUDY = Path("experiments") / "studies" / "mine"
SPACE = """knobs:
  rag.scoring.recencyAlpha: {low: 0, high: 1}
  rag.scoring.proofAlpha: {low: 0, high: 1}
  rag.maxResults: {low: 1, high: 8}
"""


@pytest.fixture
def start(tmp_path):
    """Start a sweep in a folder, as a user does; resume it when it is there."""
    dataset = replace(stale(12), licence="CC0-1.0", version="1", judged_by="nobody")
    data = write_dataset(dataset, tmp_path / "data")
    (tmp_path / "space.yaml").write_text(SPACE)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "COMIS_EVAL_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    environment.pop("PYTEST_CURRENT_TEST", None)  # with it MLflow checks itself at every commit

    def started(folder, *more, trials=TRIALS):
        folder.mkdir(exist_ok=True)
        resume = ["--resume"] if (folder / STUDY / "study.jsonl").exists() else []
        words = [sys.executable, "-m", "comis_eval", "sweep", str(data), "--lanes", "fts"]
        words += ["--space", str(tmp_path / "space.yaml"), "--trials", str(trials)]
        return subprocess.Popen(
            [*words, "--study", "mine", *resume, *more],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    return started


def ended(process):
    _, said = process.communicate()
    assert process.returncode == 0, said


def finished(path):
    """The finished trials of a journal, but for the time they took."""
    if not path.exists():
        return []
    return [entry._replace(record=entry.record._replace(ms=0.0, figures={}))
            for entry in read_journal(path).entries]  # fmt: skip


def journals(folder):
    return [
        folder / STUDY / name for name in ("study.jsonl", *(f"fold-{n}.jsonl" for n in range(5)))
    ]


def lines(folder):
    return sum(path.read_bytes().count(b"\n") for path in journals(folder) if path.exists())


def killed(process, folder, after):
    """Kill a sweep once its journals have so many lines; whether it was alive."""
    while lines(folder) < after and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def test_killed_at_twenty_random_times(start, tmp_path):
    whole = tmp_path / "whole"
    ended(start(whole, "--no-track"))
    expected = [finished(path) for path in journals(whole)]
    assert [len(entries) for entries in expected] == [TRIALS] * 6

    dice = np.random.default_rng(0)
    kills, studies, cut = 0, 0, []
    while kills < KILLS:
        studies += 1
        folder = tmp_path / f"study-{studies}"
        while kills < KILLS:
            before = [finished(path) for path in journals(folder)]
            # A trial is two lines, a study seven hundred: it dies about seven times.
            after = lines(folder) + dice.integers(1, 200)
            if not killed(start(folder, "--no-track"), folder, after):
                break
            kills += 1
            found = [finished(path) for path in journals(folder)]
            for then, now, end in zip(before, found, expected, strict=True):
                assert now[: len(then)] == then  # nothing that was finished is lost
                assert now == end[: len(now)]  # and what came is what had come
            cut.append(sum(map(len, found)))
        ended(start(folder, "--no-track"))
        assert [finished(path) for path in journals(folder)] == expected
        told, known = ((place / STUDY / "result.json").read_text() for place in (folder, whole))
        assert json.loads(told) == json.loads(known)
    print(f"{kills} kills in {studies} studies, after {cut} trials")  # noqa: T201
    assert len(set(cut)) > KILLS / 2  # they fell all over the place


def test_what_was_killed_is_in_mlflow_once(start, tmp_path, monkeypatch):
    folder, trials, place = tmp_path / "s", 40, ("--tracking-uri", "sqlite:///m.db", "--no-confirm")
    dice = np.random.default_rng(1)
    for _ in range(3):
        after = lines(folder) + dice.integers(1, 30)
        assert killed(start(folder, *place, trials=trials), folder, after)
    ended(start(folder, *place, trials=trials))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    client = imported().MlflowClient(tracking_uri=place_of("sqlite:///m.db").uri)
    (experiment,) = client.search_experiments(filter_string="name = 'comis_eval'")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if run is not parent]
    assert sorted(int(run.data.tags["comis_eval.trial"]) for run in children) == list(range(trials))
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert parent.data.tags["comis_eval.logged"] == str(trials)
