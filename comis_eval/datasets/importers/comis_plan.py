"""How ``memories`` is read: which columns become which keys, and the SQL that reads them.

Source of the columns: specification of MemoryRecall, section 15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.importers.redact import Redactor

VECTORS = "vec_memories"
"""The table of the memories' vectors."""
MAX_WHOLE = 2**53 - 1
"""Largest whole number that JSON holds everywhere."""

_PLAIN = "+{0} COLLATE BINARY"
"""How a column is compared: its author may have declared that case does not matter, or a type
by which SQLite takes a number for text."""
_BEGINS = f"{_PLAIN} >= '!'"
"""A text, or a blob, of which no JSON can be made; numbers come before all text."""
_TEXT = (
    f"(({_BEGINS} AND {_PLAIN} < '~') OR (typeof({{0}}) = 'text'"
    " AND (unicode({0}) BETWEEN 161 AND 5759 OR unicode({0}) > 12288)))"
)
"""A text whose first character is no white space, so that it is not blank."""
_WORD = f"({_BEGINS} AND {_PLAIN} < '~' AND {{0}} NOT GLOB '*[^!-~]*')"
_NAME = f"({{0}} IS NULL OR {_TEXT} OR {_PLAIN} = '')"
_WHOLE = f"(typeof({{0}}) = 'integer' AND {{0}} BETWEEN 0 AND {MAX_WHOLE})"
_WHOLE_OR_NONE = f"({{0}} IS NULL OR {_WHOLE})"
_NO_LIST = "({0} IS NULL OR {0} IN ('[]', ''))"
_LIST = f"{_PLAIN} >= '[' AND {_PLAIN} < '\\' AND json_valid({{0}})"


def _among(*words: str) -> str:
    return "(" + " OR ".join(f"{_PLAIN} = '{word}'" for word in words) + ")"


class Column(NamedTuple):
    """A column of ``memories`` that becomes a key of a memory's line.

    Attributes:
        name: In the database.
        key: In the dataset folder; of a dotted one the second part stands inside the first.
        clean: SQL that is true when the value needs no second look.
        required: Whether a database without the column cannot be imported.
        sparse: Whether most memories have nothing in it; empty: SQL that says so.
    """

    name: str
    key: str
    clean: str
    required: bool = False
    sparse: bool = False
    empty: str = "{0} IS NULL"


COLUMNS = (
    Column("id", "id", _WORD, required=True),
    Column("content", "content", _TEXT, required=True),
    Column("tenant_id", "tenantId", _WORD),
    Column("agent_id", "agentId", _WORD),
    Column("trust_level", "trustLevel", _among("system", "learned", "external"), required=True),
    Column("memory_type", "memoryType", _among("semantic", "episodic", "procedural", "working")),
    Column("source_who", "source.who", _NAME),
    Column("source_channel", "source.channel", _NAME, sparse=True),
    Column("source_session_key", "source.sessionKey", _NAME, sparse=True),
    Column("created_at", "createdAt", _WHOLE, required=True),
    Column("updated_at", "updatedAt", _WHOLE_OR_NONE, sparse=True),
    Column("occurred_at", "occurredAt", _WHOLE_OR_NONE, sparse=True),
    Column("expires_at", "expiresAt", _WHOLE_OR_NONE, sparse=True),
    Column("proof_count", "proofCount", _WHOLE_OR_NONE, sparse=True),
    Column(
        "confidence",
        "confidence",
        "({0} IS NULL OR (typeof({0}) IN ('real', 'integer') AND {0} BETWEEN 0 AND 1"
        " AND CAST(CAST({0} AS TEXT) AS REAL) = {0}))",
        sparse=True,
    ),
    Column("tags", "tags", "({0} IS NULL OR +{0} < x'')"),
    Column(
        "source_ids",
        "sourceIds",
        f"({_NO_LIST} OR ({_LIST} AND instr({{0}}, m.id) = 0))",
        sparse=True,
        empty=_NO_LIST,
    ),
)
WORDS = ("id", "tenant_id", "agent_id")
"""Columns of ids: no white space, no control characters."""
LISTS = {"tags", "source_ids"}
"""Columns that hold a JSON list."""


class Entities(NamedTuple):
    """The two tables that tell a memory's entities, as SQL names."""

    links: str
    entities: str


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
            f"((?1 IS NULL OR {_PLAIN.format(tenant)} IS ?1)"
            f" AND (?2 IS NULL OR {_PLAIN.format(agent)} IS ?2))"
        )

    @property
    def everybody(self) -> bool:
        """Whether all memories are asked for."""
        return self.tenant is None and self.agent is None

    def asked(self, sql: str) -> str:
        """SQL of the value for the memories asked for, else NULL."""
        return sql if self.everybody else f"CASE WHEN {self.selected} THEN {sql} END"

    @property
    def who(self) -> tuple[str | None, str | None]:
        """The values of ``selected``'s parameters."""
        return self.tenant, self.agent


def block_sql(plan: Plan, doubtful: Sequence[int], *, quick: bool) -> str:
    """SQL that tells a block of rows (?3 to ?4).

    It tells how many there are, and of those asked for: how many, the newest ``created_at``,
    their words, tags and sources, and their lines, one a line. The line of a row that needs a
    second look is its number; tags are told apart from the lines, for whoever reads them to
    check and to add. The quick form leaves the words to be checked too, and its newest may be no
    whole number.
    """
    created = str(plan.name_of("created_at"))
    newest = created if quick else f"iif(typeof({created}) = 'integer', {created}, NULL)"
    words = " || ' ' || ".join(filter(None, map(plan.name_of, WORDS)))
    tags, sources = plan.name_of("tags"), plan.name_of("source_ids")
    told = [
        "count(*)" if plan.everybody else f"coalesce(sum({plan.selected}), 0)",
        f"max({plan.asked(newest)})",
        _joined(plan.asked(words), "' '"),
        _joined(plan.asked(f"coalesce({tags}, '')")) if tags else "NULL",
        _joined(plan.asked(f"iif({sources} <> '[]', {sources}, NULL)")) if sources else "NULL",
        _joined(plan.asked(_line_sql(plan, doubtful, quick=quick))),
    ]
    return (
        f"SELECT count(*), {', '.join(told)} "  # noqa: S608  (names of a checked schema, quoted)
        f"FROM {plan.table} m NOT INDEXED WHERE {plan.rowid} BETWEEN ?3 AND ?4"
    )


def _joined(sql: str, separator: str = "char(10)") -> str:
    """SQL of all values as one run of bytes, which Python need not decode."""
    return f"CAST(group_concat({sql}, {separator}) AS BLOB)"


def _line_sql(plan: Plan, doubtful: Sequence[int], *, quick: bool) -> str:
    """SQL of a clean row's JSON object, without what is sparse where there is none of it."""
    common = [c for c in plan.columns if not c[0].sparse]
    sparse = [c for c in plan.columns if c[0].sparse]
    clean = [
        (_BEGINS if quick and column.name in WORDS else column.clean).format(sql)
        for column, sql in common
    ]
    if doubtful:
        clean.insert(0, f"m.{plan.rowid} NOT IN ({', '.join(map(str, doubtful))})")
    line = _object_sql(common)
    if sparse:
        empty = " AND ".join(column.empty.format(sql) for column, sql in sparse)
        sound = " AND ".join(column.clean.format(sql) for column, sql in sparse)
        line = (
            f"CASE WHEN {empty} THEN {line} WHEN {sound} THEN {_object_sql(plan.columns)} "
            f"ELSE m.{plan.rowid} END"
        )
    return f"CASE WHEN {' AND '.join(clean)} THEN {line} ELSE m.{plan.rowid} END"


def _object_sql(columns: Sequence[tuple[Column, str]]) -> str:
    """SQL of a JSON object; an unknown value is null, which means absent."""
    pairs: list[str] = []
    source: list[str] = []
    for column, sql in columns:
        outer, _, inner = column.key.partition(".")
        if inner:
            source.append(f"'{inner}', CASE WHEN {sql} <> '' THEN {sql} END")
        elif column.name == "source_ids":
            pairs.append(f"'{outer}', CASE WHEN {sql} NOT IN ('[]', '') THEN json({sql}) END")
        elif column.name != "tags":
            pairs.append(f"'{outer}', {sql}")
    if source:
        pairs.append(f"'source', json_object({', '.join(source)})")
    return f"json_object({', '.join(pairs)})"


def row_sql(plan: Plan) -> str:
    """SQL of one row's values in the order of the plan's columns."""
    columns = ", ".join(sql for _, sql in plan.columns)
    return (
        f"SELECT {columns} FROM {plan.table} m "  # noqa: S608  (names of a checked schema, quoted)
        f"WHERE m.{plan.rowid} = ?"
    )
