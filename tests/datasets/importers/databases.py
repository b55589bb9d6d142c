"""Comis databases for tests to import and to break, of every age of the schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

T0 = 1_700_000_000_000

OLD = (
    "id TEXT PRIMARY KEY, tenant_id TEXT, agent_id TEXT, user_id TEXT, content, trust_level TEXT, "
    "memory_type TEXT, source_who TEXT, source_channel TEXT, source_session_key TEXT, tags TEXT, "
    "created_at, updated_at INTEGER, expires_at INTEGER, has_embedding INTEGER"
)
NEW = OLD + (
    ", occurred_at INTEGER, proof_count INTEGER, source_ids TEXT, consolidated_at INTEGER, "
    "confidence REAL, history TEXT"
)
ENTITIES = """
CREATE TABLE memory_entities (id TEXT PRIMARY KEY, tenant_id TEXT, agent_id TEXT,
  canonical_name TEXT, canonical_key TEXT, mention_count INTEGER, first_seen INTEGER,
  last_seen INTEGER);
CREATE TABLE memory_entity_links (memory_id TEXT, entity_id TEXT,
  PRIMARY KEY (memory_id, entity_id));
"""


def row(memory_id: object, **changes: object) -> dict[str, object]:
    """Return a good row of ``memories`` with some values changed."""
    return {
        "id": memory_id,
        "tenant_id": "default",
        "agent_id": "default",
        "user_id": "u1",
        "content": f"memory {memory_id}",
        "trust_level": "learned",
        "memory_type": "semantic",
        "tags": "[]",
        "created_at": T0,
        "has_embedding": 0,
    } | changes


def database(
    path: Path, rows: list[dict[str, object]], *, columns: str = NEW, more: str = ""
) -> Path:
    """Make a database with these memories; ``more`` is SQL run after them."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE memories ({columns})")
        for values in rows:
            names = ", ".join(values)
            marks = ", ".join("?" * len(values))
            connection.execute(
                f"INSERT INTO memories ({names}) VALUES ({marks})",
                list(values.values()),
            )
        connection.executescript(more)
        connection.commit()
    return path


def with_vectors(path: Path) -> Path:
    """Add the vec_memories that sqlite-vec 0.1.9 itself made: m1, m3, m4 and ``gone``."""
    made = Path(__file__).parents[2] / "golden" / "sqlite-vec-0.1.9.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ATTACH ? AS made", [str(made)])
        tables = connection.execute(
            "SELECT name, rootpage, sql FROM made.sqlite_schema "
            "WHERE type = 'table' AND name LIKE 'vec%'"
        ).fetchall()
        for name, rootpage, sql in tables:
            if rootpage:
                connection.execute(sql)
                connection.execute(f'INSERT INTO main."{name}" SELECT * FROM made."{name}"')
        virtual = next(sql for _, rootpage, sql in tables if not rootpage)
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "INSERT INTO main.sqlite_schema VALUES ('table', 'vec_memories', 'vec_memories', 0, ?)",
            [virtual],
        )
        connection.commit()
    return path
