"""The vectors of ``vec_memories``, read from the tables that sqlite-vec keeps them in.

A vec0 table stores its rows in four tables of its own: ``_info``, ``_chunks`` (a bitmap of
the places in use), ``_rowids`` (id -> chunk and place) and ``_vector_chunks00`` (the vectors,
float32, one after another). They are base tables, so they are read as such: no extension is
loaded into a process that has a foreign file open, and neither the sqlite-vec package nor a
Python that can load extensions is needed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets.contents import EMBEDDINGS
from comis_eval.datasets.importers.base import Count, Note
from comis_eval.datasets.importers.comis_plan import VECTORS as TABLE
from comis_eval.datasets.importers.comis_plan import Plan
from comis_eval.datasets.importers.foreign import Table, quoted

MODEL = "unknown: vec_memories of a Comis memory.db"

_COLUMN = re.compile(r"\b(\w+)\s+(float|f32|int8|i8|bit)\s*\[\s*(\d+)\s*\]", re.IGNORECASE)
_VEC0 = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\b.{1,200}?\bUSING\s+vec0\b", re.I | re.S)
_HEADER_BYTES = 128
_MAX_DIM = 8192
_NEEDED = {"_chunks": "validity", "_rowids": "id", "_vector_chunks00": "vectors"}
"""The tables that are read, and the column that each is needed for."""


class Vectors(NamedTuple):
    """What was made of the vectors."""

    counted: Count
    notes: list[Note]


def write_vectors(
    connection: sqlite3.Connection,
    tables: Mapping[str, Table],
    plan: Plan,
    dropped: frozenset[str],
    folder: Path,
) -> Vectors | None:
    """Write embeddings.npy, .ids and .yaml for the memories that were kept.

    Returns:
        What was found and kept; None when the database has no vectors.
    """
    row = connection.execute(
        "SELECT sql FROM main.sqlite_schema WHERE name = ? AND type = 'table'", [TABLE]
    ).fetchone()
    if row is None:
        return None
    total, problem, dim = 0, _unreadable(row[0], tables), 0
    if not problem:
        dim = int(_COLUMN.findall(row[0])[0][2])
        ids = quoted(tables[TABLE + "_rowids"].name)
        total = connection.execute(f"SELECT count(*) FROM {ids}").fetchone()[0]  # noqa: S608  (a quoted name)
    if problem:
        return Vectors(
            Count(total, 0),
            [Note(TABLE, problem, "embeddings left out; they are computed when they are needed")],
        )
    writer = _Writer(folder, plan, dim)
    with closing(writer):
        for memory_id, vector in _stored(connection, tables, plan, dim):
            if memory_id in dropped:
                writer.strangers += 1
            else:
                writer.add(memory_id, vector)
        writer.finish()
    unknown = total - writer.written - writer.unusable
    notes = []
    if unknown:
        notes.append(
            Note(TABLE, f"{unknown} vectors are of memories not in the dataset", "left out")
        )
    if writer.unusable:
        what = f"{writer.unusable} vectors are damaged: too short, or not finite"
        notes.append(Note(TABLE, what, "left out"))
    if writer.written:
        what = (
            "the model that made the vectors is not recorded, so queries cannot be embedded alike"
        )
        done = (
            "kept as given vectors; recall with --lanes fts, add query vectors of the same model, "
            "or import with --no-embeddings to embed here"
        )
        notes.append(Note(TABLE, what, done))
    return Vectors(Count(total, writer.written), notes)


def _unreadable(declaration: object, tables: Mapping[str, Table]) -> str | None:
    """Why the vectors cannot be read; None when they can."""
    if not isinstance(declaration, str) or not _VEC0.match(declaration):
        return "is no sqlite-vec table (vec0)"
    columns = _COLUMN.findall(declaration)
    if len(columns) != 1 or columns[0][1].lower() not in ("float", "f32"):
        return "does not have exactly one column of float vectors"
    if not 1 <= int(columns[0][2]) <= _MAX_DIM:
        return f"claims vectors of {columns[0][2][:20]} numbers"
    for end, column in _NEEDED.items():
        if TABLE + end not in tables or column not in tables[TABLE + end].columns:
            return f"is kept in tables of an unknown layout: no {TABLE}{end}.{column}"
    return None


def _stored(
    connection: sqlite3.Connection, tables: Mapping[str, Table], plan: Plan, dim: int
) -> Iterator[tuple[str, NDArray[np.float32] | None]]:
    """Yield id and vector of each memory asked for; None where the vector is not there."""
    chunks, ids, vectors = (quoted(tables[TABLE + end].name) for end in _NEEDED)
    places = connection.execute(
        f"SELECT r.id, r.chunk_id, r.chunk_offset FROM {ids} r JOIN {plan.table} m "  # noqa: S608  (names of a checked schema, quoted)
        f"ON {plan.name_of('id')} = r.id WHERE {plan.selected} "
        "ORDER BY r.chunk_id, r.chunk_offset",
        plan.who,
    )
    held: object = object()
    matrix: NDArray[np.float32] = np.zeros((0, dim), dtype=np.float32)
    used: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
    for memory_id, chunk, offset in places:
        if chunk != held:
            held = chunk
            row = _chunk(connection, chunks, vectors, chunk)
            whole = len(row[0]) // (4 * dim)
            matrix = np.frombuffer(row[0], dtype="<f4", count=whole * dim).reshape(whole, dim)
            used = np.unpackbits(np.frombuffer(row[1], dtype=np.uint8), bitorder="little")
        if not isinstance(memory_id, str):
            continue
        there = isinstance(offset, int) and 0 <= offset < min(len(matrix), len(used))
        yield memory_id, matrix[offset] if there and used[offset] else None


def _chunk(
    connection: sqlite3.Connection, chunks: str, vectors: str, number: object
) -> tuple[bytes, bytes]:
    row = connection.execute(
        f"SELECT v.vectors, c.validity FROM {vectors} v JOIN {chunks} c ON c.rowid = v.rowid "  # noqa: S608  (quoted names)
        "WHERE v.rowid = ?",
        [number],
    ).fetchone()
    if row is None or not all(isinstance(blob, bytes) for blob in row):
        return b"", b""
    return row[0], row[1]


class _Writer:
    """Writes the three files row by row; the header of the .npy last, when the size is known."""

    def __init__(self, folder: Path, plan: Plan, dim: int) -> None:
        self._paths = [folder / name for name in EMBEDDINGS]
        self._redactor = plan.redactor
        self._dim = dim
        self._matrix = self._paths[0].open("wb")
        self._ids = self._paths[1].open("w", encoding="utf-8", newline="\n")
        self._matrix.write(bytes(_HEADER_BYTES))
        self._seen: set[str] = set()
        self.written = 0
        self.unusable = 0
        self.strangers = 0

    def add(self, memory_id: str, vector: NDArray[np.float32] | None) -> None:
        """Write one vector, unless it is damaged or the memory has one already."""
        if vector is None or memory_id in self._seen or not np.isfinite(vector.sum()):
            self.unusable += 1
            return
        self._seen.add(memory_id)
        if self._redactor is not None:
            memory_id = self._redactor.identifier(memory_id)[0]
        self._matrix.write(vector.tobytes())
        self._ids.write(memory_id + "\n")
        self.written += 1

    def finish(self) -> None:
        """Write the header and embeddings.yaml; without a vector leave no file."""
        self.close()
        if not self.written:
            for path in self._paths[:2]:
                path.unlink()
            return
        shape = f"({self.written}, {self._dim})"
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        text = text.ljust(_HEADER_BYTES - 11) + "\n"
        head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
        with self._paths[0].open("r+b") as file:
            file.write(head)
        self._paths[2].write_text(f'model: "{MODEL}"\ndim: {self._dim}\n', encoding="utf-8")

    def close(self) -> None:
        """Close the files."""
        self._matrix.close()
        self._ids.close()
