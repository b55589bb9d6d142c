"""Which entities the memories name, read as two lists and joined here.

Looking up each memory's links inside SQLite takes longer than all else that is done with a
memory; one pass over the links does not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from comis_eval.datasets.importers.comis_plan import Plan

MAX_HELD = 2_000_000
"""Links that are held in memory at once; of more only those of one block are."""

_GARBLED = b"\0"
"""Stands for the name of an entity that is not UTF-8; no JSON text is like it."""


@dataclass
class Links:
    """The entities of some memories, by the memory's id in UTF-8.

    Attributes:
        names: Their names as the inside of a JSON list.
        gone: How many links name an entity that is not there or has no usable name.
        garbled: Memories with an entity whose name is not UTF-8.
    """

    names: dict[bytes, bytes] = field(default_factory=dict)
    gone: dict[bytes, int] = field(default_factory=dict)
    garbled: set[bytes] = field(default_factory=set)

    def add(self, links: Iterable[tuple[bytes, bytes | None]], known: _Names) -> None:
        """Add links of (memory id, entity id)."""
        names = self.names
        for memory_id, entity_id in links:
            name = known.get(entity_id)
            if name is None:
                self.gone[memory_id] = self.gone.get(memory_id, 0) + 1
            elif name is _GARBLED:
                self.garbled.add(memory_id)
            elif memory_id in names:
                names[memory_id] += b"," + name
            else:
                names[memory_id] = name


_Names = dict[bytes | None, bytes]


class LinkReader:
    """Gives the links of a block: out of all of them, or read for it when they are too many."""

    def __init__(self, connection: sqlite3.Connection, plan: Plan) -> None:
        self._names: _Names = {}
        self._all: Links | None = Links()
        if plan.entities is None:
            return
        links, entities = plan.entities
        self._names = _names(connection, entities)
        # A blob comes after all else, and equals no text of the same bytes.
        pair = (
            "CAST(l.memory_id AS BLOB), "
            "CASE WHEN +l.entity_id < x'' THEN CAST(l.entity_id AS BLOB) END"
        )
        (total,) = connection.execute(f"SELECT count(*) FROM {links}").fetchone()  # noqa: S608  (a quoted name)
        if total <= MAX_HELD:
            self._all.add(
                connection.execute(
                    f"SELECT {pair} FROM {links} l WHERE +l.memory_id < x''"  # noqa: S608  (a quoted name)
                ),
                self._names,
            )
            self._names = {}
            return
        self._all = None
        self._sql = (
            f"SELECT {pair} FROM {plan.table} m NOT INDEXED CROSS JOIN {links} l "  # noqa: S608  (quoted names)
            f"ON l.memory_id = m.id WHERE m.{plan.rowid} BETWEEN ? AND ?"
        )

    def read(self, connection: sqlite3.Connection, low: int, high: int) -> Links:
        """Return the links of the memories numbered low to high, at least."""
        if self._all is not None:
            return self._all
        some = Links()
        some.add(connection.execute(self._sql, (low, high)), self._names)
        return some


def _names(connection: sqlite3.Connection, entities: str) -> _Names:
    """Read the usable names as JSON, by the entity's id."""
    known: _Names = {}
    for entity_id, name in connection.execute(
        "SELECT CAST(id AS BLOB), CAST(canonical_name AS BLOB) "  # noqa: S608  (a quoted name)
        f"FROM {entities} WHERE +id < x'' AND typeof(canonical_name) = 'text'"
    ):
        try:
            text = name.decode()
        except UnicodeDecodeError:
            known[entity_id] = _GARBLED
            continue
        if text.strip():
            known[entity_id] = json.dumps(text, ensure_ascii=False).encode()
    return known
