import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from comis_eval.errors import ConfigError
from comis_eval.tracking import Tracker, database

CREATE = """
import sys
from pathlib import Path
from comis_eval.tracking import database
database.create(Path(sys.argv[1]), Path(sys.argv[1]).parent / "mlartifacts")
print(Path(sys.argv[1]).stat().st_ino)
"""


def creator(path):
    return subprocess.Popen(
        [sys.executable, "-c", CREATE, str(path)], stdout=subprocess.PIPE, text=True
    )


def test_processes_that_start_together_make_one_database(tmp_path, mlflow):
    path = tmp_path / "experiments" / "mlflow.db"
    started = [creator(path) for _ in range(4)]
    told = {process.communicate()[0] for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert told == {f"{path.stat().st_ino}\n"}
    assert sorted(p.name for p in path.parent.iterdir()) == ["mlartifacts", "mlflow.db"]
    assert path.stat().st_mode & 0o777 == 0o600
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}")
    default = client.get_experiment("0")
    assert default.artifact_location == f"{(path.parent / 'mlartifacts').as_uri()}/0"


def test_a_creator_that_is_killed_leaves_nothing_in_the_way(tmp_path):
    path = tmp_path / "mlflow.db"
    with creator(path) as killed:
        while not list(tmp_path.glob(".mlflow.db.partial*")):
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)
    assert not path.exists()
    database.create(path, tmp_path / "mlartifacts")
    database.check(path)
    assert not list(tmp_path.glob(".mlflow.db.partial*"))


def test_a_database_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "memories.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE memories (id TEXT)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"memories.db: an SQLite database, but not MLflow's"):
        Tracker.open(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database, only text that is long enough to be looked at " * 20)
    with pytest.raises(ConfigError, match=r"notes.db: cannot be read as an SQLite database"):
        Tracker.open(f"sqlite:///{path}")


def test_connections_write_ahead(template):
    from sqlalchemy import create_engine, text

    database.tune()
    database.tune()
    engine = create_engine(f"sqlite:///{template}")
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 1
    engine.dispose()
