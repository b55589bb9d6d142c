import subprocess
import sys
from pathlib import Path

import pytest

from comis_eval.errors import ConfigError
from comis_eval.tracking import Tracker, dashboard_command
from comis_eval.tracking.place import place_of

SERVER = "https://user:secret@mlflow.example:8443/team"


def test_the_default_is_a_database_under_experiments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")
    place = place_of(None)
    assert place.uri == f"sqlite:///{tmp_path}/experiments/mlflow.db"
    assert place.artifact_root == tmp_path / "experiments" / "mlartifacts"


def test_artifacts_lie_beside_the_database_unless_said(tmp_path):
    assert place_of("sqlite:////a/b.db").artifact_root == Path("/a/mlartifacts")
    assert place_of("sqlite:////a/b.db", artifact_root=tmp_path).artifact_root == tmp_path


def test_a_server_keeps_its_own_artifacts():
    assert place_of(SERVER).artifact_root is None
    with pytest.raises(ConfigError, match=r"https://\*\*\*@mlflow.example:8443/team keeps"):
        place_of(SERVER, artifact_root=Path("a"))


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("file:./mlruns", "gave up its store of plain files"),
        ("./mlruns", "gave up its store of plain files"),
        ("", "gave up its store of plain files"),
        ("sqlite://", "names no database file"),
        ("sqlite:///:memory:", "names no database file"),
        ("sqlite:///a.db?mode=ro", "names no database file"),
        ("sqlite:///a/", "names no database file"),
        ("sqlite:////a%20b/c.db", "name a file without %"),
        ("http://", "names no server"),
        ("http://host:port", "names no server"),
        ("databricks://me", "'databricks' is no kind of store"),
        ("mysql://u:secret@h/d", "'mysql' is no kind of store"),
    ],
)
def test_an_address_that_cannot_work_is_refused_with_its_reason(uri, why):
    with pytest.raises(ConfigError, match=why) as caught:
        Tracker.open(uri)
    said = str(caught.value)
    assert "allowed are sqlite:///FILE, http://HOST:PORT" in said or "%" in uri
    assert "secret" not in said


def test_a_password_is_shown_nowhere():
    tracker = Tracker.open(SERVER)
    assert "secret" in tracker.place.uri
    assert "secret" not in repr(tracker)
    assert tracker.place.shown == "https://***@mlflow.example:8443/team"
    assert dashboard_command(SERVER) == tracker.place.shown
    assert "secret" not in dashboard_command("postgresql://u:secret@h/d")


def test_the_dashboard_is_one_command_on_loopback():
    command = dashboard_command("sqlite:////a b/mlflow.db")
    assert command == (
        "MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false "
        f"{sys.executable} -m mlflow server "
        "--backend-store-uri 'sqlite:////a b/mlflow.db' "
        "--default-artifact-root '/a b/mlartifacts' --host 127.0.0.1 --port 5000"
    )


def test_mlflow_is_not_imported_to_check_an_address():
    code = (
        "import sys; from comis_eval.tracking import Tracker, dashboard_command;"
        "Tracker.open('sqlite:////nowhere/mlflow.db'); dashboard_command(None);"
        "sys.exit('mlflow' in sys.modules or 'sqlalchemy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
