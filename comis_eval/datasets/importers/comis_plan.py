"""How ``memories`` is read: which columns become which keys, and the SQL that reads them.

Source of the columns: specification of MemoryRecall, section 15.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.importers.redact import Redactor

MAX_WHOLE = 2**53 - 1
"""Largest whole number that JSON holds everywhere."""

_BINARY = "{0} COLLATE BINARY"
"""How a column is compared: its author may have declared that case does not matter."""
_TEXT = (
    f"typeof({{0}}) = 'text' AND (({_BINARY} >= '!' AND {_BINARY} < '~')"
    " OR unicode({0}) BETWEEN 161 AND 5759 OR unicode({0}) > 12288)"
)
"""Its first character is no white space, so the text is not blank."""
_WORD = f"typeof({{0}}) = 'text' AND {_BINARY} >= '!' AND {{0}} NOT GLOB '*[^!-~]*'"
_NAME = "({0} IS NULL OR (" + _TEXT + f") OR {_BINARY} = '')"
_WHOLE_SQL = f"({{0}} IS NULL OR (typeof({{0}}) = 'integer' AND {{0}} BETWEEN 0 AND {MAX_WHOLE}))"


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
LISTS = {"tags", "source_ids"}
"""Columns that hold a JSON list."""


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


def block_sql(plan: Plan, doubtful: Sequence[int]) -> str:
    """SQL that tells a block: rows, rows selected, their tags, their sources, their lines.

    The line of a row that needs a second look is its number.
    """
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
        elif column.name in LISTS:
            pairs.append(f"'{outer}', CASE WHEN {sql} NOT IN ('', '[]') THEN json({sql}) END")
        else:
            pairs.append(f"'{outer}', {sql}")
    if source:
        pairs.append(f"'source', json_object({', '.join(source)})")
    if plan.entities is not None:
        pairs.append(f"'entities', json({plan.entities.names})")
    return f"json_object({', '.join(pairs)})"


def row_sql(plan: Plan) -> str:
    """SQL of one row's values in the order of the plan's columns, and its entities."""
    columns = ", ".join(sql for _, sql in plan.columns)
    names = plan.entities.names if plan.entities is not None else "NULL"
    return (
        f"SELECT {columns}, {names} FROM {plan.table} m "  # noqa: S608  (names of a checked schema, quoted)
        f"WHERE m.{plan.rowid} = ?"
    )
