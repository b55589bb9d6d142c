"""What a write of ``remember`` looks up and leaves behind in the database.

Functions over the store's connection, inside its transaction. Source: specification of the
recall tool, sections 1 and 2.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from comis_eval.errors import StoreError
from comis_eval.stages.recall_tool import twins
from comis_eval.stages.recall_tool.writing import Writing
from comis_eval.store import loading, records
from comis_eval.store.schema import INDEX, UNINDEX
from comis_eval.text import printable, simhash
from comis_eval.types import Memory, Tenancy, TrustLevel

_PROJECT_TAG = "project:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, from which connection, and when.

    Attributes:
        tenancy: Whose connection it is; names its agent.
        now: The moment, ms.
        by_agent: Whether an agent's tenancy is a workspace of its own; else a tenant is one.
        projects: Project ids by the slugs that ``project:`` tags name, aliases among them;
            the id of a project that has a memory is a slug of its own.
    """

    tenancy: Tenancy
    now: int
    by_agent: bool = False
    projects: Mapping[str, str] = field(default_factory=dict)


class Remembered(NamedTuple):
    """What a write did.

    Attributes:
        memory: As it stands now.
        outcome: Whether the key was new or had a memory.
        near_dup_key: Key of another memory that says nearly the same; None: there is none.
    """

    memory: Memory
    outcome: Literal["created", "updated"]
    near_dup_key: str | None


class Standing(NamedTuple):
    """A memory that a key has already, and its row in the database."""

    row: int
    memory: Memory


def stands(connection: sqlite3.Connection, writing: Writing, writer: Writer) -> Standing | None:
    """Return the memory that a write replaces; None: it makes a new one.

    One current memory has a key in its scope and with its owner. Rows that were written by
    other hands may be several: then the last one written counts, as it does in loading, and
    what ``remember`` would not have written does not.
    """
    mine, values = _workspace(writer)
    found = connection.execute(
        f"SELECT row, {', '.join(records.COLUMNS)} FROM memories WHERE {mine} "  # noqa: S608
        "AND (key = ? OR coalesce(key, '') = '') "
        "AND coalesce(archived, 0) = 0 "
        "AND coalesce(nullif(status, ''), 'active') NOT IN ('superseded', 'archived') "
        "ORDER BY created_at DESC, row DESC",
        (*values, writing.key),
    )
    wanted = loading.identity(_new("", writing, writer))
    for row, *columns in found:
        raw = records.from_row(tuple(columns))
        if (raw.key or loading.key_of(raw.id)) != writing.key:
            continue
        memory = loading.filled(raw, default_expiry=False)
        if loading.identity(memory) == wanted and loading.refusal(memory) is None:
            return Standing(row, memory)
    return None


def check_version(writing: Writing, standing: Standing | None) -> None:
    """Refuse a write that expects another version than there is.

    Raises:
        StoreError: If it does.
    """
    if writing.expected_version is None:
        return
    if standing is None:
        raise StoreError(
            f"conflict: expected_version is {writing.expected_version}, but no memory has key "
            f"{writing.key!r} there; leave it out to make one"
        )
    if standing.memory.version != writing.expected_version:
        raise StoreError(
            f"conflict: expected_version is {writing.expected_version}, memory {writing.key!r} "
            f"has version {standing.memory.version}; read it again with get_memory"
        )


def created(memory_id: str, writing: Writing, writer: Writer) -> Memory:
    """Return the memory that a write to a new key makes."""
    return loading.filled(_new(memory_id, writing, writer))


def updated(standing: Standing, writing: Writing, writer: Writer) -> Memory:
    """Return the memory that a write makes of the one its key has.

    It keeps id, place in time, author, tenancy and type. Everything that was told of the old
    text (sources, entities, proof, confidence) goes with it.

    Raises:
        StoreError: If the old one is a configured fact, which no agent writes over.
    """
    before = standing.memory
    if before.trust_level is TrustLevel.SYSTEM:
        raise StoreError(
            f"memory {writing.key!r} is a configured fact (trust system), which is not written "
            "over; take another key"
        )
    whole = loading.filled(_new(before.id, writing, writer))
    return replace(
        loading.updated(whole, before, writing.importance),
        tenancy=before.tenancy,
        memory_type=before.memory_type,
        version=(before.version or 1) + 1,
    )


def resolved(connection: sqlite3.Connection, writing: Writing, writer: Writer) -> Writing:
    """Return a write with the project that its tags name, when it names none itself.

    Exactly one known project must be named, by one slug or by several of its own.
    """
    if writing.scope != "project" or writing.project_id is not None:
        return writing
    slugs = [tag.removeprefix(_PROJECT_TAG) for tag in writing.tags if tag.startswith(_PROJECT_TAG)]
    if not slugs:
        return writing
    mine, values = _workspace(writer)
    ids = connection.execute(
        f"SELECT DISTINCT project_id FROM memories WHERE {mine} AND project_id IS NOT NULL "  # noqa: S608
        "AND coalesce(nullif(scope, ''), 'project') = 'project'",
        values,
    )
    known = {**{project: project for (project,) in ids}, **writer.projects}
    named = {known[slug] for slug in slugs if slug in known}
    return replace(writing, project_id=named.pop()) if len(named) == 1 else writing


def near_key(connection: sqlite3.Connection, memory: Memory, writer: Writer) -> str | None:
    """Return the key of the first other memory of the workspace that says nearly the same.

    Rows of agent scope count for their author alone: a key tells what they are about.
    """
    mine, values = _workspace(writer)
    connection.executemany(
        "UPDATE memories SET simhash = ? WHERE row = ?",
        [*_unhashed(connection, mine, values)],
    )
    others = connection.execute(
        f"SELECT id, key, simhash FROM memories WHERE {mine} AND id <> ? "  # noqa: S608
        "AND (coalesce(scope, '') <> 'agent' OR coalesce(nullif(created_by, ''), agent_id) = ?) "
        "ORDER BY row",
        (*values, memory.id, writer.tenancy.agent_id),
    ).fetchall()
    hashes = np.array([value for _, _, value in others], dtype=np.int64)
    place = twins.first_near(memory.simhash, hashes)
    if place is None:
        return None
    memory_id, key, _ = others[place]
    return key or loading.key_of(memory_id)


def revise(
    connection: sqlite3.Connection,
    row: int,
    memory: Memory,
    *,
    by: str | None,
    reason: str | None,
) -> None:
    """Append a memory's state to its revisions; one that is there already stays."""
    connection.execute(
        "INSERT OR IGNORE INTO revisions (memory, version, written_at, written_by, reason, "
        "content, tags, relevance, importance, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row,
            memory.version,
            memory.updated_at,
            by,
            reason,
            memory.content,
            json.dumps(memory.tags),
            memory.relevance,
            memory.importance,
            memory.expires_at,
        ),
    )


def replace_row(connection: sqlite3.Connection, row: int, memory: Memory) -> None:
    """Put another memory in a row's place; what was made from the old text goes."""
    connection.execute(UNINDEX, (row,))
    settings = ", ".join(f"{column} = ?" for column in records.COLUMNS)
    connection.execute(
        f"UPDATE memories SET {settings}, simhash = NULL WHERE row = ?",  # noqa: S608
        (*records.to_row(memory), row),
    )
    connection.execute(INDEX + "WHERE row = ?", (row,))
    connection.execute("DELETE FROM embeddings WHERE memory = ?", (row,))
    connection.execute("DELETE FROM entity_links WHERE memory = ?", (row,))


def check(memory: Memory) -> None:
    """Refuse what may not be written.

    Raises:
        StoreError: If key, tags or content are refused.
    """
    fault = loading.refusal(memory)
    if fault is not None:
        raise StoreError(printable(fault))


def _new(memory_id: str, writing: Writing, writer: Writer) -> Memory:
    """A write as a memory. What an agent says is learned, whatever it says of itself."""
    return Memory(
        id=memory_id,
        content=writing.content,
        trust_level=TrustLevel.LEARNED,
        created_at=writer.now,
        updated_at=writer.now,
        tenancy=writer.tenancy,
        tags=writing.tags,
        key=writing.key,
        scope=writing.scope,
        project_id=writing.project_id,
        created_by=writer.tenancy.agent_id,
        author_type="agent",
        relevance=writing.relevance,
        importance=writing.importance,
        expires_at=writing.expires_at,
        archived=False,
        status="active",
        version=1,
    )


def _workspace(writer: Writer) -> tuple[str, tuple[str, ...]]:
    tenant, agent = writer.tenancy.named
    if writer.by_agent:
        return "tenant_id = ? AND agent_id = ?", (tenant, agent or "")
    return "tenant_id = ?", (tenant,)


def _unhashed(
    connection: sqlite3.Connection, mine: str, values: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    for row, content in connection.execute(
        f"SELECT row, content FROM memories WHERE {mine} AND simhash IS NULL",  # noqa: S608
        values,
    ).fetchall():
        yield simhash(content), row
