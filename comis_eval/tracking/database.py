"""MLflow's SQLite file: made once and whole, guarded against mix-ups, tuned for one writer."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from comis_eval.errors import ConfigError
from comis_eval.tracking.locks import locked

_TABLES = frozenset(("experiments", "runs", "metrics", "params", "tags", "alembic_version"))
_CREATION_SECONDS = 120.0
_BUSY_MS = 20_000
_PAGES_AHEAD = 10_000  # 40 MB, some three hundred runs, before the file itself is flushed


def check(path: Path) -> None:
    """Refuse a file that MLflow would damage or could not use.

    MLflow adds its tables to whatever database it is pointed at.

    Raises:
        ConfigError: If the file is there and is neither empty nor MLflow's.
    """
    try:
        if not path.exists() or path.stat().st_size == 0:
            return
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name for (name,) in rows}
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot be read as an SQLite database: {error}") from error
    if tables and not tables >= _TABLES:
        raise ConfigError(
            f"{path}: an SQLite database, but not MLflow's: it lacks the tables "
            f"{', '.join(sorted(_TABLES - tables))}; name a file of its own for tracking"
        )


def create(path: Path, artifact_root: Path) -> None:
    """Make the database unless it is there; several processes may ask at once.

    MLflow builds the tables in some sixty migrations, each for itself: processes that start
    together on a fresh file crash each other, and one that is killed leaves a file no other
    can finish. So one process builds it aside, and it appears whole.

    Args:
        path: The file.
        artifact_root: Where MLflow's ``Default`` experiment keeps artifacts; without it,
            below the current folder.

    Raises:
        TrackingError: If another process is still at it after two minutes.
    """
    with locked(path.with_name(f"{path.name}.lock"), wait_seconds=_CREATION_SECONDS):
        if path.exists() and path.stat().st_size > 0:
            return
        stem = f".{path.name}.partial"
        for left in path.parent.iterdir():
            if left.name.startswith(stem):
                left.unlink()
        artifact_root.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_name(f"{stem}-{os.getpid()}")
        _build(partial, artifact_root)
        partial.replace(path)


def _build(path: Path, artifact_root: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import Engine, event

    path.touch(mode=0o600)
    event.listen(Engine, "connect", _hasty)
    try:
        with _quiet("mlflow", "alembic"):
            made: Any = SqlAlchemyStore  # typed only in part
            store = made(f"sqlite:///{path}", artifact_root.as_uri())
        store.engine.dispose()
    finally:
        event.remove(Engine, "connect", _hasty)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _hasty(connection: Any, record: Any) -> None:  # noqa: ARG001
    # nobody sees the file before it is whole and flushed
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def tune() -> None:
    """Let SQLite connections of this process write ahead and flush at checkpoints only.

    A run is six small transactions, and each would wait for the disk. With the write-ahead
    log a crash of the process loses nothing, a power cut at most the last runs, which the
    next call finds missing; readers are not held up. Where the log cannot be had (a network
    drive), nothing changes.
    """
    from sqlalchemy import Engine, event

    if not event.contains(Engine, "connect", _write_ahead):
        event.listen(Engine, "connect", _write_ahead)


def _write_ahead(connection: Any, record: Any) -> None:  # noqa: ARG001
    if not isinstance(connection, sqlite3.Connection):
        return
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError:  # another connection is at work in the old mode
        return
    if mode == "wal":
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_AHEAD}")


def settle(path: Path) -> None:
    """Move what was written ahead into the file itself, unless others are at work on it."""
    with (
        suppress(sqlite3.Error),  # it is safe where it is, only in two files
        closing(sqlite3.connect(path, timeout=1.0)) as database,
    ):
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
