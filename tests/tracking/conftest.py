"""One MLflow import and one database creation for all of these tests."""

import shutil
import warnings

import pytest

from comis_eval.tracking import Tracker, database
from comis_eval.tracking.place import place_of
from comis_eval.tracking.recorder import Recorder
from comis_eval.tracking.writer import ENVIRONMENT

NO_PAUSE = (0.0, 0.0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def mlflow():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield imported()


def imported():
    """MLflow, with all of it that warns when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow
        import mlflow.store.tracking.sqlalchemy_store
    return mlflow


@pytest.fixture(scope="session")
def template(mlflow, tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "mlflow.db"
    database.create(path, path.parent / "mlartifacts")
    return path


@pytest.fixture
def tracker(template, tmp_path):
    folder = tmp_path / "a b [1]"  # nothing to trip over
    folder.mkdir()
    shutil.copy(template, folder / "mlflow.db")
    return Tracker(place_of(f"sqlite:///{folder}/mlflow.db"), backoff=NO_PAUSE)


@pytest.fixture
def record(tracker):
    """Record a sweep in this process."""

    def recorded(parent, runs=(), *, final=True):
        with Recorder(tracker.place, parent, backoff=NO_PAUSE) as recorder:
            for run in runs:
                recorder.add(run)
            return recorder.close(parent if final else None)

    return recorded


@pytest.fixture
def client(mlflow, tracker):
    return mlflow.MlflowClient(tracking_uri=tracker.place.uri)


@pytest.fixture
def children(client):
    """The child runs of a parent, oldest first."""

    def listed(run_id):
        experiment = client.get_run(run_id).info.experiment_id
        return client.search_runs(
            [experiment],
            f"tags.`mlflow.parentRunId` = '{run_id}'",
            order_by=["attributes.start_time ASC"],
        )

    return listed
