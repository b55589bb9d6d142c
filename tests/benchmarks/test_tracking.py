"""Our writer against the plain ways to log the same runs, on SQLite files on the same disk."""

import time

import pytest

from comis_eval.tracking import Parent, Run, TrackedDataset, Tracker
from comis_eval.tracking.writer import ENVIRONMENT
from tests.tracking.conftest import imported

FEW, MANY = 20, 320
OF_CLIENT, OF_FLUENT, OF_BOTH = 1.1, 1.0, 1.0
SEARCH_SECONDS = 0.02
PARENT = Parent(
    "benchmark", "sweep", TrackedDataset("benchmark", "0" * 64, "1"), 1, 2, key="benchmark"
)


def run(number):
    """As field-notes 5.2 measures them: 20 params, 30 metrics."""
    return Run(
        str(number),
        f"trial {number}",
        {f"rag.scoring.p{i}": 0.1 * i for i in range(20)},
        {f"metric{i}@5": 0.1 * i + number for i in range(30)},
        {},
        "FINISHED",
        1000 + number,
        2000 + number,
    )


def timed(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@pytest.fixture
def mlflow(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # with it MLflow checks itself at every commit
    return imported()


def ours(folder, count, pause=0.0):
    """Seconds for a sweep, start of the process and creation of the database included."""
    tracker = Tracker.open(f"sqlite:///{folder}/mlflow.db")

    def swept():
        with tracker.sweep(PARENT) as log:
            for number in range(count):
                until = time.perf_counter() + pause
                while time.perf_counter() < until:
                    pass
                log.add(run(number))
            assert log.finish(PARENT, planned=count).logged == count

    return timed(swept)


def by_client(mlflow, folder):
    """Seconds a run: create_run, one log_batch, set_terminated."""
    from mlflow.entities import Metric, Param

    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder}/client.db")
    experiment = client.create_experiment("plain", artifact_location=str(folder))

    def one(number):
        given = run(number)
        tags = {"mlflow.parentRunId": "0" * 32, "comis_eval.trial": given.key}
        run_id = client.create_run(experiment, tags=tags, run_name=given.name).info.run_id
        metrics = [Metric(n.replace("@", "_"), v, 1, 0) for n, v in given.metrics.items()]
        params = [Param(n, str(v)) for n, v in given.params.items()]
        client.log_batch(run_id, metrics=metrics, params=params)
        client.set_terminated(run_id)

    one(-1)
    return timed(lambda: [one(number) for number in range(FEW * 3)]) / (FEW * 3)


def by_fluent(mlflow, folder):
    """Seconds a run: start_run, log_params, log_metrics."""
    mlflow.set_tracking_uri(f"sqlite:///{folder}/fluent.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment("plain", artifact_location=str(folder))
    )

    def one(number):
        given = run(number)
        with mlflow.start_run(run_name=given.name):
            mlflow.log_params(dict(given.params))
            mlflow.log_metrics({n.replace("@", "_"): v for n, v in given.metrics.items()})

    one(-1)
    return timed(lambda: [one(number) for number in range(FEW)]) / FEW


def test_a_run_costs_no_more_than_by_the_plain_ways(benchmark, mlflow, tmp_path):
    before = by_client(mlflow, tmp_path / "before")
    few = ours(tmp_path / "few", FEW)
    many = benchmark.pedantic(ours, args=(tmp_path / "many", MANY), rounds=1)
    fluent = by_fluent(mlflow, tmp_path / "fluent")
    client = (before + by_client(mlflow, tmp_path / "after")) / 2
    a_run = (many - few) / (MANY - FEW)
    told = {"ours": a_run, "client": client, "fluent": fluent, "start": few - FEW * a_run}
    benchmark.extra_info.update({f"{name} ms": round(1000 * s, 1) for name, s in told.items()})
    assert a_run <= OF_CLIENT * client, told
    assert a_run <= OF_FLUENT * fluent, told


def test_logging_beside_a_search_costs_less_than_after_it(benchmark, mlflow, tmp_path):
    """A search that keeps a core busy for 20 ms a trial, as 1,000 trials of TPE do."""
    before = by_client(mlflow, tmp_path / "before")
    beside = benchmark.pedantic(ours, args=(tmp_path, MANY, SEARCH_SECONDS), rounds=1)
    client = (before + by_client(mlflow, tmp_path / "after")) / 2
    after = MANY * (SEARCH_SECONDS + client)
    benchmark.extra_info.update({"beside s": round(beside, 2), "after s": round(after, 2)})
    assert beside <= OF_BOTH * after, (beside, after)
