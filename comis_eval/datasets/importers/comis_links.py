"""Which entities the memories name, read as two lists and joined here.

Looking up each memory's links inside SQLite takes longer than all else that is done with a
memory; one pass over the links does not.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from comis_eval.datasets.importers.comis_plan import Plan
from comis_eval.datasets.importers.foreign import connect

MAX_HELD = 2_000_000
"""Links that are held in memory at once; of more only those of one block are."""

_OPEN, _CLOSE = b',"entities":[', b"]}\n"
_GARBLED = b""
"""Stands for the end of a line with an entity whose name is not UTF-8."""
_PAIR = "l.memory_id, CASE WHEN +l.entity_id < x'' THEN l.entity_id END"
"""A blob comes after all else; it would equal a text of the same bytes."""


@dataclass
class Links:
    """The entities of some memories, by the memory's id in UTF-8.

    Attributes:
        ends: How the memory's line ends: its entities, and what closes the object.
        gone: How many links name an entity that is not there or has no usable name.
        garbled: Memories with an entity whose name is not UTF-8.
    """

    ends: dict[bytes, bytes] = field(default_factory=dict)
    gone: dict[bytes, int] = field(default_factory=dict)
    garbled: set[bytes] = field(default_factory=set)

    def add(self, links: Iterable[tuple[bytes, object]], known: Mapping[object, bytes]) -> None:
        """Add links of (memory id, entity id)."""
        ends = self.ends
        for memory_id, entity_id in links:
            end = known.get(entity_id)
            if end:
                if memory_id in ends:
                    end = ends[memory_id][: -len(_CLOSE)] + b"," + end[len(_OPEN) :]
                ends[memory_id] = end
            elif end is None:
                self.gone[memory_id] = self.gone.get(memory_id, 0) + 1
            else:
                self.garbled.add(memory_id)

    def names(self, memory_id: bytes) -> list[str]:
        """Return the entities of a memory."""
        end = self.ends.get(memory_id)
        if end is None:
            return []
        return list(json.loads(end[len(_OPEN) - 1 : -len(_CLOSE) + 1]))


class LinkReader:
    """Gives the links of a block: out of all of them, or read for it when they are too many."""

    def __init__(self, plan: Plan) -> None:
        self._all: Links | None = Links()
        self._known: Mapping[object, bytes] = {}
        self._sql = ""
        if plan.entities is None:
            return
        links, entities = plan.entities
        with closing(connect(plan.copy)) as connection:
            connection.text_factory = bytes
            self._known = _known(connection, entities)
            (total,) = connection.execute(f"SELECT count(*) FROM {links}").fetchone()  # noqa: S608  (a quoted name)
            if total <= MAX_HELD:
                every = (
                    f"SELECT {_PAIR} FROM {links} l WHERE +l.memory_id < x'' "  # noqa: S608  (a quoted name)
                    "ORDER BY l.memory_id, l.entity_id"
                )
                self._all.add(connection.execute(every), self._known)
                self._known = {}
                return
        self._all = None
        self._sql = (
            f"SELECT {_PAIR} FROM {plan.table} m NOT INDEXED CROSS JOIN {links} l "  # noqa: S608  (quoted names)
            f"ON l.memory_id = m.id WHERE m.{plan.rowid} BETWEEN ? AND ? "
            f"ORDER BY m.{plan.rowid}, l.entity_id"
        )

    def read(self, connection: sqlite3.Connection, low: int, high: int) -> Links:
        """Return the links of the memories numbered low to high, at least."""
        if self._all is not None:
            return self._all
        some = Links()
        factory, connection.text_factory = connection.text_factory, bytes
        some.add(connection.execute(self._sql, (low, high)), self._known)
        connection.text_factory = factory
        return some


def _known(connection: sqlite3.Connection, entities: str) -> dict[object, bytes]:
    """Read how a line ends that has this entity alone, by the entity's id."""
    known: dict[object, bytes] = {}
    for entity_id, name in connection.execute(
        f"SELECT id, canonical_name FROM {entities} "  # noqa: S608  (a quoted name)
        "WHERE +id < x'' AND typeof(canonical_name) = 'text'"
    ):
        try:
            text = name.decode()
        except UnicodeDecodeError:
            known[entity_id] = _GARBLED
            continue
        if text.strip():
            known[entity_id] = _OPEN + json.dumps(text, ensure_ascii=False).encode() + _CLOSE
    return known
