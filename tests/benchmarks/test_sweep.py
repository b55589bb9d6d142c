"""A whole search with every trial an MLflow run, against what cannot be done without.

The floor is what TPE takes to propose as many trials of as many parameters for a trivial
objective, plus what MLflow takes for as many runs of the same size, one ``log_batch`` each.
Beside it stands the ordinary way, on fewer trials, scaled.
"""

import os
from functools import partial
from time import perf_counter

import optuna
import pytest

from comis_eval.config import Config
from comis_eval.evaluation.inputs import Judge
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tracking import Parent, TrackedDataset, Tracker
from comis_eval.tracking.prepared import prepared
from comis_eval.tracking.writer import ENVIRONMENT
from comis_eval.tuning.replay import Replay, objectives_of
from comis_eval.tuning.space import Space
from comis_eval.tuning.storage import quiet
from comis_eval.tuning.study import run_study
from comis_eval.tuning.tracked import run_of
from tests.benchmarks import wide
from tests.builders import memory, query
from tests.tracking.conftest import imported
from tests.tuning.worlds import FTS, made

TRIALS, QUERIES, WIDTH = 1_000, 500, 80
RUNS = 150  # by the plain client, twice, scaled
ORDINARY = 4  # trials the ordinary way, scaled
SHARE = 1.5

OBJECTIVES = objectives_of(["utility"])
SPACE = Space.default(
    has_usefulness=False, freeze_trust=False, rerank=False, entities=False, vector=True
)
PARENT = Parent("benchmark", "sweep", TrackedDataset("wide", "0" * 64, "1"), 1, 2, key="benchmark")


def seconds(work):
    started = perf_counter()
    work()
    return perf_counter() - started


@pytest.fixture
def mlflow(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # with it MLflow checks itself at every commit
    return imported()


@pytest.fixture(scope="module")
def replay():
    data, config = wide.dataset(QUERIES, 5_000), Config()
    return Replay(Judge(data), wide.table(data, config, width=WIDTH), config)


def ours(replay, folder):
    """Search and log; what stands in MLflow at the end is counted."""
    folder.mkdir()
    tracker = Tracker.open(f"sqlite:///{folder}/ours.db")
    with tracker.sweep(PARENT) as log:
        study = run_study(
            replay,
            SPACE,
            replay.current,
            objectives=OBJECTIVES,
            trials=TRIALS,
            seed=0,
            journal=folder / "study.jsonl",
            progress=lambda record, best: log.add(run_of(record, OBJECTIVES, at_ms=1)),
        )
        assert log.finish(PARENT, planned=TRIALS).logged == study.counts.run == TRIALS


def proposed(sampler):
    """As many trials of as many parameters, for an objective that costs nothing."""
    study = optuna.create_study(sampler=sampler, direction="maximize")
    for _ in range(TRIALS):
        trial = study.ask(dict(SPACE.distributions))
        study.tell(trial, trial.params["rag.scoring.recencyAlpha"])


def by_client(mlflow, folder, record):
    """Seconds a run of the same size: create_run, one log_batch, set_terminated."""
    from mlflow.entities import Metric, Param, RunTag

    run = run_of(record, OBJECTIVES, at_ms=1)
    told = prepared(run.params, run.metrics, run.tags)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{folder}/client.db")
    experiment = client.create_experiment("plain", artifact_location=str(folder))
    metrics = [Metric(name, value, 1, 0) for name, value in told.metrics.items()]
    params = [Param(name, text) for name, text in told.params.items()]
    tags = [RunTag(name, text) for name, text in told.tags.items()]

    def one(number):
        parent = {"mlflow.parentRunId": "0" * 32}
        run_id = client.create_run(experiment, tags=parent, run_name=f"{number}").info.run_id
        client.log_batch(run_id, metrics=metrics, params=params, tags=tags)
        client.set_terminated(run_id)

    one(-1)
    return seconds(lambda: [one(number) for number in range(RUNS)]) / RUNS


def ordinary(mlflow, folder):
    """Seconds a trial: Optuna on SQLite, recall query by query, fluent MLflow."""
    topics = QUERIES // 10
    memories = [
        memory(f"m{t}x{n}", f"topic{t} note{n} {'word ' * 20}") for t in range(topics)
        for n in range(WIDTH)
    ]  # fmt: skip
    asked = [query(f"topic{i % topics}", f"q{i}", group=f"g{i}") for i in range(QUERIES)]
    judged = [(i, WIDTH * (i % topics) + n, n % 3) for i in range(QUERIES) for n in range(9)]
    data = made("ordinary", memories, asked, judged)
    retriever = Retriever(data, cache=None)
    MemoryRecall(retriever, FTS).recall(asked[0])  # indexes are built once
    grades = {(asked[q].id, memories[row].id): grade for q, row, grade in judged}
    mlflow.set_tracking_uri(f"sqlite:///{folder}/fluent.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment("plain", artifact_location=str(folder))
    )

    def objective(trial):
        params = SPACE.suggest(trial)
        recall = MemoryRecall(retriever, SPACE.apply(FTS, params))
        with mlflow.start_run(nested=True):
            total = 0.0
            for one in asked:
                found = recall.recall(one).memories
                total += sum(grades.get((one.id, hit.id), 0) for hit in found)
            mlflow.log_params(params)
            mlflow.log_metrics({f"metric_{n}": total + n for n in range(20)})
        return total

    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", direction="maximize")
    with mlflow.start_run():
        return seconds(lambda: study.optimize(objective, n_trials=ORDINARY)) / ORDINARY


def test_a_search_with_every_trial_in_mlflow(benchmark, mlflow, replay, tmp_path):
    load = os.getloadavg()[0]
    one = run_study(replay, SPACE, replay.current, objectives=OBJECTIVES, trials=1, seed=0).current
    with quiet():
        tpe = seconds(partial(proposed, optuna.samplers.TPESampler(seed=0)))
        before = by_client(mlflow, tmp_path / "before", one)
        benchmark.pedantic(ours, args=(replay, tmp_path / "ours"), rounds=1)
        after = by_client(mlflow, tmp_path / "after", one)
        joint = seconds(partial(proposed, optuna.samplers.TPESampler(seed=0, multivariate=True)))
        plain = TRIALS * ordinary(mlflow, tmp_path)
    if benchmark.stats is None:
        return
    took, client = benchmark.stats.stats.min, TRIALS * (before + after) / 2
    told = {
        "load": load,
        "ours s": took,
        "TPE s": tpe,
        "multivariate TPE s": joint,
        "client s": client,
        "times the floor": took / (min(tpe, joint) + client),
        "ordinary s": plain,
        "ordinary times ours": plain / took,
    }
    told = {name: round(value, 2) for name, value in told.items()}
    benchmark.extra_info.update(told)
    print(told)  # noqa: T201  what `-s` is for
    assert told["times the floor"] <= SHARE, told
