"""Rows that must not be taken for what they claim: duplicates, and laundered trust."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from typing import NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.importers.comis_plan import Plan

_RANK = "CASE {0} WHEN 'system' THEN 2 WHEN 'learned' THEN 1 ELSE 0 END"
"""A level that is none of the three vouches for nothing."""
_LEVELS = ("external", "learned", "system")


class Sources(NamedTuple):
    """What the memories' origins say.

    Attributes:
        blocked: Why a row is not taken, by row number.
        missing: Ids named as sources that will not be in the dataset.
        doubtful: Numbers of the rows that are blocked or name a missing source, sorted.
    """

    blocked: dict[int, str]
    missing: frozenset[str]
    doubtful: tuple[int, ...]


def examine_sources(
    connection: sqlite3.Connection, plan: Plan, dropped: frozenset[str] = frozenset()
) -> Sources:
    """Find the rows that repeat an id or launder trust, and the sources that are not there.

    A row may be trusted at most as its sources may, theirs included: a chain of derived
    memories cannot wash out its origin.

    Args:
        connection: To the private copy.
        plan: How its rows are read.
        dropped: Memories known to be malformed.
    """
    blocked = _duplicates(connection, plan)
    sources = plan.name_of("source_ids")
    if sources is None:
        return Sources(blocked, frozenset(), tuple(sorted(blocked)))
    memory_id, trust = plan.name_of("id"), plan.name_of("trust_level")
    other = [str(sql).replace("m.", "s.", 1) for sql in (memory_id, trust)]
    selected = plan.selected.replace("m.", "s.")
    derived = (
        f"FROM {plan.table} m JOIN json_each(CASE WHEN typeof({sources}) = 'text' AND "
        f"json_valid({sources}) THEN {sources} ELSE '[]' END) j "
        f"LEFT JOIN {plan.table} s ON {other[0]} = j.value "
        f"WHERE {sources} IS NOT NULL AND {sources} NOT IN ('', '[]')"
    )
    mine, theirs = _RANK.format(trust), _RANK.format(other[1])
    gone = (
        f"(s.{plan.rowid} IS NULL OR NOT {selected} "  # noqa: S608  (names of a checked schema, quoted)
        "OR j.value IN (SELECT value FROM json_each(?3)))"
    )
    launders = f"(s.{plan.rowid} IS NOT NULL AND {theirs} < {mine})"
    odd = connection.execute(
        f"SELECT m.{plan.rowid}, j.value, {gone}, {launders} {derived} AND ({gone} OR {launders})",
        (*plan.who, json.dumps(sorted(dropped))),
    ).fetchall()
    orphans = {row for row, _, is_gone, _ in odd if is_gone}
    missing = frozenset(
        source for _, source, is_gone, _ in odd if is_gone and isinstance(source, str)
    )
    if any(laundered for *_, laundered in odd):
        edges = connection.execute(
            f"SELECT m.{plan.rowid}, {mine}, s.{plan.rowid}, {theirs}, {other[0]} {derived} "
            f"AND s.{plan.rowid} IS NOT NULL"
        )
        blocked |= _laundered(edges)
    return Sources(blocked, missing, tuple(sorted({*blocked, *orphans})))


def _duplicates(connection: sqlite3.Connection, plan: Plan) -> dict[int, str]:
    name = plan.name_of("id")
    if _is_unique(connection, plan, str(name)):
        return {}
    rows = connection.execute(
        f"SELECT row, first FROM (SELECT {plan.rowid} AS row, min({plan.rowid}) OVER "  # noqa: S608  (names of a checked schema, quoted)
        f"(PARTITION BY {name}) AS first FROM {plan.table} m WHERE {name} IS NOT NULL) "
        "WHERE row > first"
    )
    return {row: f"id already stands in rowid {first}" for row, first in rows}


def _is_unique(connection: sqlite3.Connection, plan: Plan, name: str) -> bool:
    """Whether an index of the copy itself lets no id stand twice."""
    column = name.removeprefix("m.").strip('"')
    for _, index, unique, _, partial in connection.execute(f"PRAGMA main.index_list({plan.table})"):
        keyed = connection.execute(
            "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1", [index]
        ).fetchall()
        if unique and not partial and keyed == [(column, "BINARY")]:
            return True
    return False


def _laundered(edges: sqlite3.Cursor) -> dict[int, str]:
    claimed: dict[int, int] = {}
    ceiling: dict[int, int] = {}
    derived: defaultdict[int, list[int]] = defaultdict(list)
    named: dict[int, object] = {}
    for row, rank, source, source_rank, source_id in edges:
        claimed[row] = rank
        ceiling.setdefault(row, rank)
        ceiling.setdefault(source, source_rank)
        derived[source].append(row)
        named[source] = source_id
    why: dict[int, int] = {}
    changed = list(derived)
    while changed:
        source = changed.pop()
        for row in derived[source]:
            if ceiling[source] < ceiling[row]:
                ceiling[row] = ceiling[source]
                why[row] = source
                changed.append(row)
    return {
        row: f"launders trust: {_LEVELS[claimed[row]]} but derived from {shown(named[source])}, "
        f"which is good for {_LEVELS[ceiling[source]]} at most"
        for row, source in sorted(why.items())
        if ceiling[row] < claimed[row]
    }
