"""One process at a time, by a lock on a file that ends with its holder, killed or not."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comis_eval.errors import TrackingError

_PAUSE_SECONDS = 0.05


@contextmanager
def locked(path: Path, *, wait_seconds: float) -> Iterator[None]:
    """Hold a lock while the block runs.

    Args:
        path: The lock file; made for the block and removed after it.
        wait_seconds: How long another holder is waited for, >= 0.

    Raises:
        TrackingError: If it is still held then; names the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wait_seconds
    while (descriptor := _taken(path)) is None:
        if time.monotonic() >= until:
            raise TrackingError(
                f"{path}: process {_holder(path)} has been logging the same for "
                f"{wait_seconds:g} s; wait for it to end"
            )
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _taken(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # the last holder may have removed the file between our open and our lock
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _holder(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip() or "(unknown)"
    except (OSError, ValueError):
        return "(unknown)"
