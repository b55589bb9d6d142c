"""The rows of ``memories``: the clean ones become JSON inside SQLite, the others are examined.

Half a million rows are too many to look at one by one in Python, so one query a block of
rows tells the clean from the doubtful and writes the lines of the clean. Clean means: the
field checks of a dataset folder, put in SQL, cannot object. Whatever is doubtful - a value
of another type, a source that is gone, a text that is not UTF-8 - goes through those checks
themselves, and comes out as a line or as a reason.

The ids of a block are checked in Python, all at once; where one of them is not plain, the
block is read once more by a query that checks them row by row.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.fields import read_fields
from comis_eval.datasets.importers.comis_links import LinkReader, Links
from comis_eval.datasets.importers.comis_plan import (
    COLUMNS,
    LISTS,
    MAX_WHOLE,
    WORDS,
    Plan,
    block_sql,
    row_sql,
)
from comis_eval.datasets.importers.foreign import Garbled, connect
from comis_eval.datasets.lines import MAX_LINE_BYTES, UnreadableError, decode_json
from comis_eval.datasets.records import MEMORY

BLOCK = 1000
"""Rows a query looks at."""

_SOURCES = re.compile(rb'(?:\["[!#-\[\]-~]+"(?:, ?"[!#-\[\]-~]+")*\])?')
"""A list of plain ids as JSON; any other form of it is examined."""
_END = b"}\n"
"""How a line ends that has no entities."""
_CACHE_KIB = 16_384
"""Each page is read once, so there is little to keep."""

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
        newest: When the newest memory of those selected was written, ms; 0: none.
    """

    found: int = 0
    selected: int = 0
    kept: int = 0
    lines: bytes = b""
    bad: tuple[Bad, ...] = ()
    gone: int = 0
    orphaned: int = 0
    replaced: int = 0
    newest: int = 0


class _Block(NamedTuple):
    """What a query tells of a block; see :func:`block_sql`."""

    found: int
    selected: int
    newest: object
    words: bytes | None
    tags: bytes | None
    sources: bytes | None
    lines: bytes | None


class Reader:
    """Reads blocks of rows over one connection."""

    def __init__(self, plan: Plan, links: LinkReader) -> None:
        self.plan = plan
        self._links = links
        self._connection = connect(plan.copy, cache_kib=_CACHE_KIB)
        self._row_sql = row_sql(plan)
        self._quick_sql = block_sql(plan, (), quick=True)
        self._words_a_row = sum(plan.name_of(word) is not None for word in WORDS)
        self._tags: dict[bytes, bytes | None] = {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, low: int, high: int) -> Part:
        """Read the rows numbered low to high, both included."""
        links = self._links.read(self._connection, low, high)
        part = None
        if self.plan.redactor is None:
            part = self._read_at_once(low, high, links)
        return part or self._read_singly(low, high, links)

    def _read_at_once(self, low: int, high: int, links: Links) -> Part | None:
        """Read a block by one query; None when its rows must be looked at one by one."""
        block = self._query(low, high, quick=True)
        ids = self._ids(block) if block is not None else None
        if block is not None and not block.selected:
            return Part(block.found)
        if ids is None:
            block = self._query(low, high, quick=False)
            # A control character may stand where SQL's comparisons end.
            if block is not None and b"\\u00" in (block.lines or b""):
                return None
        if block is None:
            return None
        tags = self._read_tags(block)
        if tags is not None and None in tags:
            numbers = self._numbers(low, high)
            odd = [number for number, tag in zip(numbers, tags, strict=True) if tag is None]
            block = self._query(low, high, quick=ids is not None, also=odd)
        if block is None or tags is None or not _clean(block):
            return None
        return self._join(block, ids, [tag or b"" for tag in tags], links)

    def _query(
        self, low: int, high: int, *, quick: bool, also: Sequence[int] = ()
    ) -> _Block | None:
        """Ask for a block; None when a value, or the block, is nothing to make JSON of.

        Args:
            low: First row number.
            high: Last row number.
            quick: Whether the words are checked by the caller.
            also: Numbers of rows that need a second look, besides the plan's.
        """
        plan = self.plan
        first, last = bisect_left(plan.doubtful, low), bisect_right(plan.doubtful, high)
        doubtful = (*plan.doubtful[first:last], *also)
        sql = self._quick_sql
        if doubtful or not quick:
            sql = block_sql(plan, doubtful, quick=quick)
        try:
            row = self._connection.execute(sql, (*plan.who, low, high)).fetchone()
        except sqlite3.DataError:
            return None
        except sqlite3.OperationalError:
            if quick:  # a blob where a word should be; the other query looks before it leaps
                return None
            raise
        return _Block(*row)

    def _ids(self, block: _Block) -> list[bytes] | None:
        """Return the ids of a block's rows; None when some row has a word that is not plain."""
        words = block.words or b""
        if not words.isascii() or not words.decode().isprintable():
            return None
        listed = words.split(b" ")
        if len(listed) != block.selected * self._words_a_row or b"" in listed:
            return None
        return listed[:: self._words_a_row] if type(block.newest) is int else None

    def _read_tags(self, block: _Block) -> list[bytes | None] | None:
        """Return what each row's line says of its tags, None where they need a second look.

        Returns:
            One a row; None when some row's tags are not one line.
        """
        if self.plan.name_of("tags") is None:
            return [b""] * block.selected
        listed = (block.tags or b"").split(b"\n")
        if len(listed) != block.selected:
            return None
        known = self._tags
        for tags in {*listed}.difference(known):
            if len(known) > 100_000:
                known.clear()
                return self._read_tags(block)
            known[tags] = _tags_said(tags)
        return [known[tags] for tags in listed]

    def _numbers(self, low: int, high: int) -> list[int]:
        """Return the numbers of a block's rows that are asked for."""
        plan = self.plan
        rows = self._connection.execute(
            f"SELECT {plan.rowid} FROM {plan.table} m NOT INDEXED "  # noqa: S608  (names of a checked schema, quoted)
            f"WHERE {plan.rowid} BETWEEN ?3 AND ?4 AND {plan.selected} ORDER BY {plan.rowid}",
            (*plan.who, low, high),
        )
        return [row for (row,) in rows]

    def _join(
        self, block: _Block, ids: list[bytes] | None, tags: list[bytes], links: Links
    ) -> Part | None:
        """Put entities and examined rows into a block's lines.

        Args:
            block: The block.
            ids: Of all its rows; None: to be read from the lines.
            tags: Of all its rows, as a line says them.
            links: The entities.

        Returns:
            The part; None when a line is too long, or an entity's name not UTF-8.
        """
        text = block.lines or b""
        heads = text[:-1].split(b"}\n")
        if ids is None or len(heads) != len(ids) or not text.endswith(b"}"):
            part = self._join_some(text, tags, links)
        else:
            if not links.garbled.isdisjoint(ids):
                return None
            ends = map(links.ends.get, ids, repeat(_END))
            lines = b"".join(chain.from_iterable(zip(heads, tags, ends, strict=True)))
            gone = sum(map(links.gone.get, ids, repeat(0))) if links.gone else 0
            part = Part(kept=len(heads), lines=lines, gone=gone)
        if part is None or _too_long(part.lines):
            return None
        newest = block.newest if isinstance(block.newest, int) else 0
        return part._replace(found=block.found, selected=block.selected, newest=newest)

    def _join_some(self, text: bytes, tags: list[bytes], links: Links) -> Part | None:
        """The same where some rows are to be examined, or the ids are not known."""
        ready: list[bytes] = []
        bad: list[Bad] = []
        gone = orphaned = kept = 0
        for line, said in zip(text.split(b"\n"), tags, strict=True):
            if line[:1] == b"{":
                memory_id = json.loads(line)["id"].encode()
                if memory_id in links.garbled:
                    return None
                ready += (line[:-1], said, links.ends.get(memory_id, _END))
                kept, gone = kept + 1, gone + links.gone.get(memory_id, 0)
                continue
            row = self._examine(int(line), links)
            gone, orphaned = gone + row.gone, orphaned + row.orphaned
            if row.bad is None:
                ready.append(row.line)
                kept += 1
            else:
                bad.append(row.bad)
        return Part(kept=kept, lines=b"".join(ready), bad=tuple(bad), gone=gone, orphaned=orphaned)

    def _read_singly(self, low: int, high: int, links: Links) -> Part:
        plan = self.plan
        created = plan.name_of("created_at")
        rows = self._connection.execute(
            f"SELECT {plan.rowid}, {plan.selected}, "  # noqa: S608  (names of a checked schema, quoted)
            f"iif(typeof({created}) = 'integer', {created}, 0) FROM {plan.table} m "
            f"NOT INDEXED WHERE {plan.rowid} BETWEEN ?3 AND ?4 ORDER BY {plan.rowid}",
            (*plan.who, low, high),
        ).fetchall()
        chosen = [(rowid, created) for rowid, selected, created in rows if selected]
        kept: list[bytes] = []
        bad: list[Bad] = []
        gone = orphaned = replaced = 0
        for rowid, _ in chosen:
            row = self._examine(rowid, links)
            if row.bad is not None:
                bad.append(row.bad)
                continue
            kept.append(row.line)
            gone, orphaned = gone + row.gone, orphaned + row.orphaned
            replaced += row.replaced
        return Part(
            found=len(rows),
            selected=len(chosen),
            kept=len(kept),
            lines=b"".join(kept),
            bad=tuple(bad),
            gone=gone,
            orphaned=orphaned,
            replaced=replaced,
            newest=max((created for _, created in chosen), default=0),
        )

    def _examine(self, rowid: int, links: Links) -> _Examined:
        """Put one row through the checks of a dataset folder."""
        plan = self.plan
        try:
            values = self._connection.execute(self._row_sql, [rowid]).fetchone()
        except sqlite3.DataError as error:
            return _Examined(b"", Bad(rowid, None, f"cannot be read whole: {error}"))
        raw = {column.name: value for (column, _), value in zip(plan.columns, values, strict=True)}
        memory_id = raw["id"] if isinstance(raw["id"], str) else None
        if rowid in plan.blocked:
            return _Examined(b"", Bad(rowid, memory_id, plan.blocked[rowid]))
        memory, wrong = _memory(raw)
        key = memory_id.encode() if memory_id is not None else b""
        if key in links.garbled:
            wrong.append("its entities hold text that is not UTF-8")
        elif key in links.ends:
            memory["entities"] = links.names(key)
        wrong += read_fields(memory, MEMORY)[1] if not wrong else []
        sources = memory.pop("sourceIds", [])
        if not wrong and memory_id in sources:
            wrong.append("source_ids names the memory itself")
        if wrong:
            return _Examined(b"", Bad(rowid, memory_id, "; ".join(wrong)))
        there = [source for source in sources if source not in plan.missing]
        if there:
            memory["sourceIds"] = there
        replaced = 0
        if plan.redactor is not None:
            memory, replaced = plan.redactor.memory(memory)
        line = json.dumps(memory, ensure_ascii=False).encode() + b"\n"
        if _too_long(line):
            why = f"longer than the {MAX_LINE_BYTES} bytes that a line may have"
            return _Examined(b"", Bad(rowid, memory_id, why))
        gone = links.gone.get(key, 0)
        return _Examined(line, None, gone, len(sources) - len(there), replaced)


class _Examined(NamedTuple):
    """One row's line, or why there is none."""

    line: bytes
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


def _tags_said(tags: bytes) -> bytes | None:
    """Return what a line says of tags; None when they are not plain."""
    try:
        value = decode_json(tags.decode()) if tags else []
    except (UnicodeDecodeError, UnreadableError):
        return None
    if not isinstance(value, list) or not all(isinstance(t, str) and t.strip() for t in value):
        return None
    return b',"tags":' + json.dumps(value, ensure_ascii=False).encode() if value else b""


def _clean(block: _Block) -> bool:
    """Whether texts are UTF-8 and sources plain."""
    lines = block.lines or b""
    if not lines.isascii():
        try:
            lines.decode()
        except UnicodeDecodeError:
            return False
    return not block.sources or all(map(_SOURCES.fullmatch, block.sources.split(b"\n")))


def _too_long(lines: bytes) -> bool:
    """Whether one of the lines is longer than a line may be."""
    if len(lines) <= MAX_LINE_BYTES:
        return False
    return max(map(len, lines.split(b"\n"))) >= MAX_LINE_BYTES
