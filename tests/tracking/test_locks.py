import fcntl
import os
import subprocess
import sys

import pytest

from comis_eval.errors import TrackingError
from comis_eval.tracking.locks import locked

HOLDER = """
import sys, time
from pathlib import Path
from comis_eval.tracking.locks import locked
with locked(Path(sys.argv[1]), wait_seconds=0):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_removed_after_use(tmp_path):
    with locked(tmp_path / "a" / "lock", wait_seconds=0):
        assert (tmp_path / "a" / "lock").read_text() == str(os.getpid())
    assert list((tmp_path / "a").iterdir()) == []


def test_a_lock_on_a_file_that_was_just_removed_does_not_count(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    real, calls = fcntl.flock, []

    def beaten(descriptor, operation):
        real(descriptor, operation)
        calls.append(operation)
        if len(calls) == 1:
            path.rename(tmp_path / "gone")  # the holder before us ends here
            path.touch()  # and another one comes

    monkeypatch.setattr(fcntl, "flock", beaten)
    with locked(path, wait_seconds=5):
        assert path.read_text() == str(os.getpid())
    assert len(calls) == 2


def test_a_held_lock_names_its_holder_and_ends_with_it(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(TrackingError, match=f"process {holder.pid} has been logging"),
            locked(path, wait_seconds=0.1),
        ):
            pass
        holder.kill()
        holder.wait()
        with locked(path, wait_seconds=5):
            assert path.read_text() == str(os.getpid())
    assert not path.exists()
