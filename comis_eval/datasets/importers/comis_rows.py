"""The rows of ``memories``: the clean ones become JSON inside SQLite, the others are examined.

Half a million rows are too many to look at one by one in Python, so one query a block of
rows tells the clean from the doubtful and writes the lines of the clean. Clean means: the
field checks of a dataset folder, put in SQL, cannot object. Whatever is doubtful - a value
of another type, a source that is gone, a text that is not UTF-8 - goes through those checks
themselves, and comes out as a line or as a reason.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.fields import read_fields
from comis_eval.datasets.importers.comis_plan import (
    COLUMNS,
    LISTS,
    MAX_WHOLE,
    Plan,
    block_sql,
    row_sql,
)
from comis_eval.datasets.importers.foreign import Garbled, connect
from comis_eval.datasets.lines import MAX_LINE_BYTES, UnreadableError, decode_json
from comis_eval.datasets.records import MEMORY

BLOCK = 1000
"""Rows a query looks at."""

_SOURCES = re.compile(r'(?:\["[!#-\[\]-~]+"(?:, ?"[!#-\[\]-~]+")*\])?')
"""A list of plain ids as JSON; any other form of it is examined."""
_LONG = MAX_LINE_BYTES // 4
"""Characters that may take more bytes than a line may have."""
_GONE = "\0"
"""Stands for an entity that a link names but the database does not hold."""

_WHOLE = {"created_at", "updated_at", "occurred_at", "expires_at", "proof_count"}
_OPTIONAL_TEXTS = {"source_who", "source_channel", "source_session_key"}


class Bad(NamedTuple):
    """A row that cannot be taken, and why."""

    rowid: int
    memory_id: str | None
    why: str


class Part(NamedTuple):
    """What one block of rows gives.

    Attributes:
        found: Rows in the block.
        selected: Rows of the tenant and agent asked for.
        kept: Lines written.
        lines: The lines, UTF-8.
        bad: Rows left out.
        gone: Entities that a link names and the database does not hold.
        orphaned: Sources left out of ``sourceIds``.
        replaced: Secrets replaced.
    """

    found: int
    selected: int
    kept: int
    lines: bytes
    bad: tuple[Bad, ...] = ()
    gone: int = 0
    orphaned: int = 0
    replaced: int = 0


class Reader:
    """Reads blocks of rows over one connection."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._connection = connect(plan.copy)
        self._block_sql = block_sql(plan, ())
        self._row_sql = row_sql(plan)
        self._known_tags: dict[str, bool] = {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, low: int, high: int) -> Part:
        """Read the rows numbered low to high, both included."""
        plan = self.plan
        doubtful = plan.doubtful[
            bisect_left(plan.doubtful, low) : bisect_right(plan.doubtful, high)
        ]
        sql = block_sql(plan, doubtful) if doubtful else self._block_sql
        if plan.redactor is not None:
            return self._read_singly(low, high)
        try:
            found, selected, tags, sources, text = self._connection.execute(
                sql, (*plan.who, low, high)
            ).fetchone()
        except sqlite3.DataError:  # a value, or the block, is too long
            return self._read_singly(low, high)
        if text is None and not selected:
            return Part(found, 0, 0, b"")
        if not isinstance(text, str) or not self._clean(text, tags, sources):
            return self._read_singly(low, high)
        return self._join(found, selected, text)

    def _clean(self, text: str, tags: object, sources: object) -> bool:
        """Whether what SQL took for clean is."""
        if "\\u00" in text:  # a control character: no id may hold one, and it marks entities
            return False
        if len(text) > _LONG and max(map(len, text.split("\n"))) > _LONG:
            return False
        if isinstance(tags, Garbled) or isinstance(sources, Garbled):
            return False
        if sources is not None and not all(map(_SOURCES.fullmatch, str(sources).split("\n"))):
            return False
        return tags is None or all(map(self._clean_tags, set(str(tags).split("\n"))))

    def _clean_tags(self, tags: str) -> bool:
        known = self._known_tags.get(tags)
        if known is None:
            if len(self._known_tags) > 100_000:
                self._known_tags.clear()
            known = self._known_tags[tags] = _tags_read(tags)
        return known

    def _join(self, found: int, selected: int, text: str) -> Part:
        """Put the examined rows where the block has their numbers."""
        if "\n" not in text:
            lines = [text]
        elif text[0] == "{" and text.count("\n{") == text.count("\n"):
            return Part(found, selected, text.count("\n") + 1, text.encode() + b"\n")
        else:
            lines = text.split("\n")
        kept: list[str] = []
        bad: list[Bad] = []
        gone = orphaned = 0
        for line in lines:
            if line[0] == "{":
                kept.append(line)
                continue
            row = self._examine(int(line))
            gone, orphaned = gone + row.gone, orphaned + row.orphaned
            if row.bad is None:
                kept.append(row.line)
            else:
                bad.append(row.bad)
        lines_ = "".join(line + "\n" for line in kept).encode()
        return Part(found, selected, len(kept), lines_, tuple(bad), gone, orphaned)

    def _read_singly(self, low: int, high: int) -> Part:
        plan = self.plan
        rows = self._connection.execute(
            f"SELECT {plan.rowid}, {plan.selected} FROM {plan.table} m "  # noqa: S608  (names of a checked schema, quoted)
            f"NOT INDEXED WHERE {plan.rowid} BETWEEN ?3 AND ?4 ORDER BY {plan.rowid}",
            (*plan.who, low, high),
        ).fetchall()
        kept: list[str] = []
        bad: list[Bad] = []
        gone = orphaned = replaced = 0
        for rowid, selected in rows:
            if not selected:
                continue
            row = self._examine(rowid)
            if row.bad is not None:
                bad.append(row.bad)
                continue
            kept.append(row.line + "\n")
            gone, orphaned = gone + row.gone, orphaned + row.orphaned
            replaced += row.replaced
        lines = "".join(kept).encode()
        chosen = sum(selected for _, selected in rows)
        return Part(len(rows), chosen, len(kept), lines, tuple(bad), gone, orphaned, replaced)

    def _examine(self, rowid: int) -> _Examined:
        """Put one row through the checks of a dataset folder."""
        plan = self.plan
        try:
            row = self._connection.execute(self._row_sql, [rowid]).fetchone()
        except sqlite3.DataError as error:
            return _Examined("", Bad(rowid, None, f"cannot be read whole: {error}"))
        *values, names = row
        raw = {column.name: value for (column, _), value in zip(plan.columns, values, strict=True)}
        memory_id = raw["id"] if isinstance(raw["id"], str) else None
        if rowid in plan.blocked:
            return _Examined("", Bad(rowid, memory_id, plan.blocked[rowid]))
        memory, wrong = _memory(raw)
        entities = _entities(names)
        if entities is None:
            wrong.append("its entities hold text that is not UTF-8")
        elif entities:
            memory["entities"] = [name for name in entities if name != _GONE]
        wrong += read_fields(memory, MEMORY)[1] if not wrong else []
        sources = memory.pop("sourceIds", [])
        if not wrong and memory_id in sources:
            wrong.append("source_ids names the memory itself")
        if wrong:
            return _Examined("", Bad(rowid, memory_id, "; ".join(wrong)))
        there = [source for source in sources if source not in plan.missing]
        if there:
            memory["sourceIds"] = there
        replaced = 0
        if plan.redactor is not None:
            memory, replaced = plan.redactor.memory(memory)
        line = json.dumps(memory, ensure_ascii=False)
        if len(line) > _LONG and len(line.encode()) >= MAX_LINE_BYTES:
            why = f"longer than the {MAX_LINE_BYTES} bytes that a line may have"
            return _Examined("", Bad(rowid, memory_id, why))
        gone = (entities or []).count(_GONE)
        return _Examined(line, None, gone, len(sources) - len(there), replaced)


class _Examined(NamedTuple):
    """One row's line, or why there is none."""

    line: str
    bad: Bad | None
    gone: int = 0
    orphaned: int = 0
    replaced: int = 0


def _memory(raw: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """Turn a row into the object of a line, unchecked but for what JSON cannot hold."""
    memory: dict[str, Any] = {}
    wrong: list[str] = []
    for column in COLUMNS:
        value = raw.get(column.name)
        if isinstance(value, Garbled):
            wrong.append(f"{column.name} is {value!r}")
            continue
        if isinstance(value, bytes):
            wrong.append(f"{column.name} is a blob of {len(value)} bytes; it must not be one")
            continue
        if column.name in LISTS:
            value = _listed(column.name, value, wrong)
        elif column.name in _OPTIONAL_TEXTS and isinstance(value, str) and not value.strip():
            value = None
        elif column.name in _WHOLE and isinstance(value, int) and not 0 <= value <= MAX_WHOLE:
            wrong.append(f"{column.name} is {value}; it must lie in 0..2^53 - 1")
            continue
        if value is None:
            continue
        outer, _, inner = column.key.partition(".")
        if inner:
            memory.setdefault(outer, {})[inner] = value
        else:
            memory[outer] = value
    return memory, wrong


def _listed(name: str, value: object, wrong: list[str]) -> object:
    """Read a JSON list; absent and empty are the same."""
    if value is None or value == "":
        return []
    if not isinstance(value, str):
        wrong.append(f"{name} is {shown(value)}; it must be a JSON list")
        return []
    try:
        return decode_json(value)
    except UnreadableError as error:
        wrong.append(f"{name} is {shown(value)}: {error}")
        return []


def _entities(names: object) -> list[str] | None:
    if names is None:
        return []
    if not isinstance(names, str):
        return None
    return list(json.loads(names))


def _tags_read(tags: str) -> bool:
    if not tags:
        return True
    try:
        value = decode_json(tags)
    except UnreadableError:
        return False
    return isinstance(value, list) and all(isinstance(tag, str) and tag.strip() for tag in value)
