"""SQLite files that others wrote, read through a private copy with all that could run off.

The copy is made over a read-only connection, by the backup API or, while the connection's
lock keeps the file as it is, byte by byte: it is one moment of the source, whoever writes to
that meanwhile, and the source is never changed. Nothing of the
copy's own SQL runs: the schema is not trusted, views and virtual tables are refused where a
table is expected, and no extension is ever loaded. (Of a source in WAL mode SQLite itself
may leave an empty ``-wal`` and a ``-shm`` beside it, as any reader does.)
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.errors import DatasetError

MAX_VALUE_BYTES = 32 * 2**20
"""Longest text or blob that is ever read from a foreign file."""

_MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 20
_VERSIONS = slice(18, 20)
"""Where the header says whether the file is in WAL mode: write and read version."""
_NO_WAL = b"\1\1"
_CHUNK = 2**20
"""How long a lock of another process is waited for."""


class Garbled(NamedTuple):
    """A text of the database that is not UTF-8."""

    raw: bytes

    def __repr__(self) -> str:
        return f"text that is not UTF-8 ({self.raw[:20]!r})"


class Table(NamedTuple):
    """A base table.

    Attributes:
        name: As declared.
        columns: Declared names by lower-case name.
        declaration: The SQL that made it.
    """

    name: str
    columns: dict[str, str]
    declaration: str


@contextmanager
def private_copy(source: Path, folder: Path) -> Iterator[Path]:
    """Copy a database into a folder of ours for as long as the block runs.

    Raises:
        DatasetError: If the source is no SQLite database, is damaged, or stays locked.
    """
    _check_is_database(source)
    copy = folder / ".copy.db"
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with told(source):
            _back_up(source, copy)
        yield copy
    finally:
        for left in (copy, *(copy.with_name(copy.name + end) for end in ("-journal", "-wal"))):
            left.unlink(missing_ok=True)


@contextmanager
def told(source: Path) -> Iterator[None]:
    """Turn what SQLite says of a file into an expected error that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        what = str(error)
        if "locked" in what:
            remedy = f"another process held it for {BUSY_SECONDS} s; try again"
        elif "readonly" in what:
            remedy = "a write was cut off; let its owner open it once, which recovers it"
        else:
            remedy = (
                "restore it from a backup, or save what is readable with `sqlite3 ... .recover`"
            )
        raise DatasetError(f"{source}: SQLite cannot read it ({what}): {remedy}") from error


def connect(copy: Path, *, writable: bool = False, cache_kib: int = 65_536) -> sqlite3.Connection:
    """Open a private copy; texts that are not UTF-8 come as :class:`Garbled`."""
    mode = "rw" if writable else "ro&immutable=1"
    connection = sqlite3.connect(f"{copy.resolve().as_uri()}?mode={mode}", uri=True)
    connection.isolation_level = None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", f"cache_size=-{cache_kib}"):
        connection.execute(f"PRAGMA {pragma}")
    if not writable:
        connection.execute("PRAGMA query_only=ON")
    connection.text_factory = _text
    return connection


def tables(connection: sqlite3.Connection, source: Path) -> dict[str, Table]:
    """List the base tables by lower-case name; views and virtual tables are not among them."""
    found: dict[str, Table] = {}
    for name, sql in connection.execute(
        "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0"
    ):
        if not isinstance(name, str) or not isinstance(sql, str) or is_virtual(sql):
            continue
        columns: dict[str, str] = {}
        for _, column, *_, hidden in connection.execute(f"PRAGMA main.table_xinfo({quoted(name)})"):
            if not isinstance(column, str):
                raise DatasetError(f"{source}: table {shown(name)} has a column named {column!r}")
            if not hidden:  # a computed column would run what the file's author wrote
                columns[column.lower()] = column
        found[name.lower()] = Table(name, columns, sql)
    return found


def kind_of(connection: sqlite3.Connection, name: str) -> str | None:
    """Say what else stands under a table's name: a view, a virtual table; None: nothing."""
    row = connection.execute(
        "SELECT type, sql FROM main.sqlite_schema WHERE lower(name) = ? AND type <> 'index'",
        [name],
    ).fetchone()
    if row is None:
        return None
    return "virtual table" if isinstance(row[1], str) and is_virtual(row[1]) else str(row[0])


# Who edits sqlite_schema may part the words by comments, as SQLite's own parser allows.
_APART = r"(?:[\s\x00]|--[^\n]*+(?:\n|\Z)|/\*.*?(?:\*/|\Z))"
_VIRTUAL = re.compile(rf"{_APART}*+CREATE{_APART}++VIRTUAL\b", re.IGNORECASE | re.DOTALL)


def is_virtual(declaration: str) -> bool:
    """Tell the SQL of a virtual table from that of a base table."""
    return _VIRTUAL.match(declaration) is not None


def quoted(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _text(raw: bytes) -> str | Garbled:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Garbled(raw)


def _check_is_database(source: Path) -> None:
    try:
        if not stat.S_ISREG(source.stat().st_mode):
            raise DatasetError(f"{source} is no regular file; name a SQLite database")
        with source.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        what = "is empty" if not magic else f"begins with {shown(magic)}"
        raise DatasetError(f"{source} is no SQLite database: it {what}")


def _back_up(source: Path, copy: Path) -> None:
    resolved = source.resolve()
    waiting = resolved.with_name(resolved.name + "-wal")
    # Where nobody can write, SQLite cannot make the files that reading a WAL database needs.
    still = not waiting.exists() and not os.access(resolved.parent, os.W_OK)
    uri = f"{resolved.as_uri()}?mode=ro{'&immutable=1' * still}"
    with (
        resolved.open("rb") as raw,
        closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS)) as original,
    ):
        original.isolation_level = None
        original.execute("PRAGMA trusted_schema=OFF")
        original.execute("PRAGMA query_only=ON")
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        # Outside WAL mode the read lock now held keeps every writer from the file, so its bytes
        # are one moment. (To close the file would drop the lock: POSIX locks are like that.)
        if raw.read(_VERSIONS.stop)[_VERSIONS] == _NO_WAL:
            raw.seek(0)
            with copy.open("wb") as target:
                shutil.copyfileobj(raw, target, _CHUNK)
            return
        original.execute("COMMIT")
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            original.backup(connection)
