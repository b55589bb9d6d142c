"""The rows of ``memories``: the clean ones become JSON inside SQLite, the others are examined.

Half a million rows are too many to look at one by one in Python, so one query a block of
rows tells the clean from the doubtful and writes the lines of the clean. Clean means: the
field checks of a dataset folder, put in SQL, cannot object. Whatever is doubtful - a value
of another type, a derived memory, a text that is not UTF-8 - goes through those checks
themselves, and comes out as a line or as a reason.

Source of the columns: specification of MemoryRecall, section 15.
"""

from __future__ import annotations

import json
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.fields import read_fields
from comis_eval.datasets.importers.foreign import Garbled, connect
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.lines import MAX_LINE_BYTES, UnreadableError, decode_json
from comis_eval.datasets.records import MEMORY

BLOCK = 1000
"""Rows a query looks at."""

_MAX = 2**53 - 1
_SOURCES = re.compile(r'(?:\["[!#-\[\]-~]+"(?:, ?"[!#-\[\]-~]+")*\])?')
"""A list of plain ids as JSON; any other form of it is examined."""
_LONG = MAX_LINE_BYTES // 4
"""Characters that may take more bytes than a line may have."""
_GONE = "\0"
"""Stands for an entity that a link names but the database does not hold."""

_BINARY = "{0} COLLATE BINARY"
"""How a column is compared: its author may have declared that case does not matter."""
_TEXT = (
    f"typeof({{0}}) = 'text' AND (({_BINARY} >= '!' AND {_BINARY} < '~')"
    " OR unicode({0}) BETWEEN 161 AND 5759 OR unicode({0}) > 12288)"
)
"""Its first character is no white space, so the text is not blank."""
_WORD = f"typeof({{0}}) = 'text' AND {_BINARY} >= '!' AND {{0}} NOT GLOB '*[^!-~]*'"
_NAME = "({0} IS NULL OR (" + _TEXT + f") OR {_BINARY} = '')"
_WHOLE_SQL = f"({{0}} IS NULL OR (typeof({{0}}) = 'integer' AND {{0}} BETWEEN 0 AND {_MAX}))"


class Column(NamedTuple):
    """A column of ``memories`` that becomes a key of a memory's line.

    Attributes:
        name: In the database.
        key: In the dataset folder; of a dotted one the second part stands inside the first.
        clean: SQL that is true when the value needs no second look.
        required: Whether a database without the column cannot be imported.
    """

    name: str
    key: str
    clean: str
    required: bool = False


COLUMNS = (
    Column("id", "id", _WORD, required=True),
    Column("content", "content", _TEXT, required=True),
    Column("tenant_id", "tenantId", _WORD),
    Column("agent_id", "agentId", _WORD),
    Column(
        "trust_level",
        "trustLevel",
        f"{_BINARY} IN ('system', 'learned', 'external')",
        required=True,
    ),
    Column(
        "memory_type",
        "memoryType",
        f"{_BINARY} IN ('semantic', 'episodic', 'procedural', 'working')",
    ),
    Column("source_who", "source.who", _NAME),
    Column("source_channel", "source.channel", _NAME),
    Column("source_session_key", "source.sessionKey", _NAME),
    Column("created_at", "createdAt", f"{{0}} IS NOT NULL AND {_WHOLE_SQL}", required=True),
    Column("updated_at", "updatedAt", _WHOLE_SQL),
    Column("occurred_at", "occurredAt", _WHOLE_SQL),
    Column("expires_at", "expiresAt", _WHOLE_SQL),
    Column("proof_count", "proofCount", _WHOLE_SQL),
    Column(
        "confidence",
        "confidence",
        "({0} IS NULL OR (typeof({0}) IN ('real', 'integer') AND {0} BETWEEN 0 AND 1"
        " AND CAST(CAST({0} AS TEXT) AS REAL) = {0}))",
    ),
    Column(
        "tags", "tags", "({0} IS NULL OR {0} = '' OR (typeof({0}) = 'text' AND json_valid({0})))"
    ),
    Column(
        "source_ids",
        "sourceIds",
        "({0} IS NULL OR {0} = '' OR (typeof({0}) = 'text' AND json_valid({0})"
        " AND instr({0}, m.id) = 0))",
    ),
)
_LISTS = {"tags", "source_ids"}
_WHOLE = {"created_at", "updated_at", "occurred_at", "expires_at", "proof_count"}
_OPTIONAL_TEXTS = {"source_who", "source_channel", "source_session_key", "memory_type"}


class Entities(NamedTuple):
    """The two tables that tell a memory's entities.

    Attributes:
        links, entities: Their SQL names.
        sound: Whether every entity has a usable name.
    """

    links: str
    entities: str
    sound: bool

    @property
    def names(self) -> str:
        """SQL of the JSON list of a memory's entities; ``m`` is the memory."""
        known = _TEXT.format("e.canonical_name")
        name = "e.canonical_name" if self.sound else f"iif({known}, e.canonical_name, NULL)"
        return (
            f"(SELECT json_group_array(coalesce({name}, char(0))) "  # noqa: S608  (both names are quoted)
            f"FROM {self.links} l LEFT JOIN {self.entities} e "
            "ON e.id = l.entity_id WHERE l.memory_id = m.id)"
        )


@dataclass(frozen=True)
class Plan:
    """How the rows of one database are read; plain values, so that it goes to workers.

    Attributes:
        copy: The private copy.
        table: ``memories`` as an SQL name.
        rowid: A name of its row number.
        columns: Those of COLUMNS that are there, with their SQL names.
        entities: Where entities stand; None: nowhere.
        tenant, agent: Whose memories are taken; None: everybody's.
        blocked: Rows that must not be taken, and why: duplicates, laundered trust.
        missing: Ids that are named as sources but will not be in the dataset.
        doubtful: Numbers of the rows that are blocked or name a missing source, sorted.
        redactor: What replaces secrets; None: nothing is replaced.
    """

    copy: Path
    table: str
    rowid: str
    columns: tuple[tuple[Column, str], ...]
    entities: Entities | None = None
    tenant: str | None = None
    agent: str | None = None
    blocked: Mapping[int, str] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    doubtful: tuple[int, ...] = ()
    redactor: Redactor | None = None

    def name_of(self, column: str) -> str | None:
        """The SQL name of a column; None when the database is older than it."""
        return next((sql for known, sql in self.columns if known.name == column), None)

    @property
    def selected(self) -> str:
        """SQL that is 1 for the memories asked for; takes (tenant, agent) as ?1 and ?2."""
        tenant = self.name_of("tenant_id") or "'default'"
        agent = self.name_of("agent_id") or "'default'"
        return (
            f"((?1 IS NULL OR {_BINARY.format(tenant)} IS ?1)"
            f" AND (?2 IS NULL OR {_BINARY.format(agent)} IS ?2))"
        )

    @property
    def who(self) -> tuple[str | None, str | None]:
        """The values of ``selected``'s parameters."""
        return self.tenant, self.agent


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
        self._block_sql = _block_sql(plan, ())
        self._row_sql = _row_sql(plan)
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
        sql = _block_sql(plan, doubtful) if doubtful else self._block_sql
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


def _block_sql(plan: Plan, doubtful: Sequence[int]) -> str:
    clean = " AND ".join(column.clean.format(sql) for column, sql in plan.columns)
    if doubtful:
        clean += f" AND m.{plan.rowid} NOT IN ({', '.join(map(str, doubtful))})"
    tags, sources = plan.name_of("tags"), plan.name_of("source_ids")
    told = f"group_concat(nullif({sources}, '[]'), char(10))" if sources else "NULL"
    return (
        f"SELECT count(*), coalesce(sum({plan.selected}), 0), "  # noqa: S608  (names of a checked schema, quoted)
        f"{f'group_concat({tags}, char(10))' if tags else 'NULL'}, {told}, "
        f"group_concat(CASE WHEN NOT {plan.selected} THEN NULL WHEN {clean} "
        f"THEN {_line_sql(plan)} ELSE {plan.rowid} END, char(10)) "
        f"FROM {plan.table} m NOT INDEXED WHERE {plan.rowid} BETWEEN ?3 AND ?4"
    )


def _line_sql(plan: Plan) -> str:
    """SQL of a clean row's JSON object; an unknown value is null, which means absent."""
    pairs: list[str] = []
    source: list[str] = []
    for column, sql in plan.columns:
        outer, _, inner = column.key.partition(".")
        if inner:
            source.append(f"'{inner}', nullif({sql}, '')")
        elif column.name in _LISTS:
            pairs.append(f"'{outer}', CASE WHEN {sql} NOT IN ('', '[]') THEN json({sql}) END")
        else:
            pairs.append(f"'{outer}', {sql}")
    if source:
        pairs.append(f"'source', json_object({', '.join(source)})")
    if plan.entities is not None:
        pairs.append(f"'entities', json({plan.entities.names})")
    return f"json_object({', '.join(pairs)})"


def _row_sql(plan: Plan) -> str:
    columns = ", ".join(sql for _, sql in plan.columns)
    names = plan.entities.names if plan.entities is not None else "NULL"
    return (
        f"SELECT {columns}, {names} FROM {plan.table} m "  # noqa: S608  (names of a checked schema, quoted)
        f"WHERE m.{plan.rowid} = ?"
    )


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
        if column.name in _LISTS:
            value = _listed(column.name, value, wrong)
        elif column.name in _OPTIONAL_TEXTS and isinstance(value, str) and not value.strip():
            value = None
        elif column.name in _WHOLE and isinstance(value, int) and not 0 <= value <= _MAX:
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
