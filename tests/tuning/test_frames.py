"""Trials as a table, and a sweep read back from MLflow and from Optuna's journal."""

import pandas as pd
import pytest

from comis_eval.errors import ConfigError, TrackingError
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tracking import runs_frame
from comis_eval.tuning.dashboard import write_journal
from comis_eval.tuning.sweep import SweepPlan, sweep
from comis_eval.tuning.tracked import track
from tests.tracking.conftest import imported
from tests.tuning.worlds import FTS, SHARE, space, stale

SPACE = space(rag__scoring__recencyAlpha=SHARE, rag__maxResults={"low": 1, "high": 8})
PLAN = SweepPlan(name="told", trials=6, space=SPACE, sampler="random")


@pytest.fixture(scope="module")
def result():
    return sweep(stale(8), FTS, PLAN, retriever=Retriever(stale(8), cache=None))


def test_a_row_a_trial(result):
    frame = result.trials()
    assert frame["number"].tolist() == list(range(6))
    assert frame["state"].tolist() == ["complete"] * 6
    assert frame.loc[0, "rag.scoring.recencyAlpha"] == 0.2, "the current configuration"
    assert frame.loc[0, "rag.maxResults"] == 5
    for record, utility in zip(result.study.trials, frame["utility"], strict=True):
        assert utility == record.values[0]
    assert frame["duplicate_of"].isna().all()


def test_knobs_below_a_switch_that_is_off_have_no_value():
    switched = space(
        rag__entityLane__enabled=None, rag__entityLane__seedCount={"low": 1, "high": 9}
    )
    plan = SweepPlan(name="s", trials=4, space=switched, sampler="random", confirm=False)
    frame = sweep(stale(4), FTS, plan, retriever=Retriever(stale(4), cache=None)).trials()
    off = frame["rag.entityLane.enabled"] == False  # noqa: E712
    assert off.any()
    assert frame.loc[off, "rag.entityLane.seedCount"].isna().all()
    assert frame.loc[~off, "rag.entityLane.seedCount"].notna().all()


def test_mlflow_and_optuna_tell_the_same_trials(result, tmp_path, monkeypatch):
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(tmp_path / "cache"))
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    logged = track(result, PLAN, uri=uri)
    assert logged.logged == 6
    imported()
    runs = runs_frame(uri)
    sweeps, trials = runs[runs["parent_id"].isna()], runs[runs["parent_id"].notna()]
    assert sweeps["name"].tolist() == ["told"]
    assert sweeps["run_id"].tolist() == [logged.run_id]
    assert set(trials["parent_id"]) == {logged.run_id}
    assert runs["status"].unique().tolist() == ["FINISHED"]
    told = trials.sort_values("name", ignore_index=True)
    frame = result.trials()
    assert told["metrics.utility"].tolist() == frame["utility"].tolist()
    knob = "rag.scoring.recencyAlpha"
    assert told[f"params.{knob}"].astype(float).tolist() == frame[knob].tolist()
    assert isinstance(runs["started"].dtype, pd.DatetimeTZDtype)

    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    write_journal(result.study, tmp_path / "optuna.journal", "told")
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "optuna.journal")))
    kept = optuna.load_study(study_name="told", storage=storage).trials_dataframe()
    assert kept["value"].tolist() == frame["utility"].tolist()

    with pytest.raises(TrackingError, match=r"holds no experiment 'other'; track a sweep"):
        runs_frame(uri, experiment="other")


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(TrackingError, match="there is no such file; track a sweep there first"):
        runs_frame(f"sqlite:///{tmp_path}/mlflow.db")
    assert not list(tmp_path.iterdir())


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="allowed are sqlite"):
        runs_frame("file:///tmp/x")
