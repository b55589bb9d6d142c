"""Bytes on disk under a hash: one SQLite file, shared by any number of processes.

The rollback journal, not WAL: readers wait out a writer's short commit, nothing but the
one file stays behind, and it works on network file systems.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from comis_eval.errors import ModelError

_WAIT_SECONDS = 60
_KEYS_A_LOOKUP = 500
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS blobs (key BLOB PRIMARY KEY, value BLOB NOT NULL)",
)


class BlobFile:
    """A map from hashes to bytes in one file.

    Attributes:
        path: The file; made at first use, readable by its owner alone.
        name: Whose bytes these are, kept in the file for people to read.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self.path = path
        self.name = name

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up values; keys that are not there are left out.

        Raises:
            ModelError: If the file is damaged or cannot be opened.
        """
        found: dict[bytes, bytes] = {}
        with self._open() as connection:
            for start in range(0, len(keys), _KEYS_A_LOOKUP):
                some = keys[start : start + _KEYS_A_LOOKUP]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, value FROM blobs WHERE key IN ({marks})"  # noqa: S608
                found.update(connection.execute(query, some))
        return found

    def write(self, items: Mapping[bytes, bytes]) -> None:
        """Store values in one transaction, in place of any that stand under the same keys.

        Raises:
            ModelError: If the file is damaged, or cannot be opened or written.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT OR IGNORE INTO about VALUES (?)", (self.name,))
            connection.executemany("INSERT OR REPLACE INTO blobs VALUES (?, ?)", items.items())
            connection.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            _create(self.path)
            with closing(connect(self.path)) as connection:
                for statement in _SCHEMA:
                    connection.execute(statement)
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise ModelError(
                f"{self.path}: the cache cannot be used ({error}); remove it with "
                "`comis-eval cache clear`, or set COMIS_EVAL_CACHE to a folder you can write"
            ) from error


def connect(path: Path) -> sqlite3.Connection:
    """Open an SQLite file; every statement is its own transaction unless one is begun."""
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Only when it is new: closing a file SQLite has open would drop SQLite's locks.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
