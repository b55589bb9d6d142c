"""Used / ignored counts of a database: how often a memory helped after it was injected.

The tables of section 15 have no place for them, so they are known by their columns: any base
table with ``used_count`` and ``ignored_count`` (underscores and case aside) beside
``memory_id``, or ``memories`` itself with the two.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.contents import USEFULNESS_COLUMNS
from comis_eval.datasets.faults import shown
from comis_eval.datasets.importers.base import BadRecords, Count, Note
from comis_eval.datasets.importers.comis_plan import Plan
from comis_eval.datasets.importers.foreign import Table, quoted
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.labels import Usefulness

_MOST = 10**18 - 1


class Signals(NamedTuple):
    """What a database says of its memories' use.

    Attributes:
        signals: By memory id; memories that were neither used nor ignored are left out.
        counted: Rows found and kept.
        notes: What was left out.
    """

    signals: dict[str, Usefulness]
    counted: Count
    notes: list[Note]


def read_usefulness(
    connection: sqlite3.Connection,
    tables: Mapping[str, Table],
    plan: Plan,
    dropped: frozenset[str],
    bad: BadRecords,
) -> Signals | None:
    """Read the signals of the memories that were kept; None when the database has none."""
    place = _place(tables)
    if place is None:
        return None
    table, memory_id, used, ignored = place
    known = plan.name_of("id")
    rows = connection.execute(
        f"SELECT u.rowid, u.{memory_id}, u.{used}, u.{ignored}, m.{plan.rowid} IS NOT NULL "  # noqa: S608  (names of a checked schema, quoted)
        f"FROM {quoted(table.name)} u LEFT JOIN {plan.table} m ON {known} = u.{memory_id} "
        f"AND {plan.selected} WHERE coalesce(u.{used}, 0) <> 0 OR coalesce(u.{ignored}, 0) <> 0",
        plan.who,
    )
    signals: dict[str, Usefulness] = {}
    found = strangers = 0
    for rowid, memory, use, ignore, there in rows:
        found += 1
        counts = [0 if value is None else value for value in (use, ignore)]
        if not isinstance(memory, str) or not there or memory in dropped:
            strangers += 1
        elif not all(type(value) is int and 0 <= value <= _MOST for value in counts):
            why = f"used {shown(use)}, ignored {shown(ignore)}; both must be whole numbers >= 0"
            bad.add(f"{table.name} rowid {rowid}", why)
        elif memory in signals:
            bad.add(f"{table.name} rowid {rowid}", f"memory {shown(memory)} stands there twice")
        else:
            signals[memory] = Usefulness(*counts)
    notes = []
    if strangers:
        what = f"{strangers} rows are of memories that are not in the dataset"
        notes.append(Note(table.name, what, "left out"))
    return Signals(signals, Count(found, len(signals)), notes)


def _place(tables: Mapping[str, Table]) -> tuple[Table, str, str, str] | None:
    for name, table in sorted(tables.items(), key=lambda item: item[0] != "memories"):
        plain = {column.replace("_", ""): declared for column, declared in table.columns.items()}
        memory_id = plain.get("id" if name == "memories" else "memoryid")
        if memory_id and "usedcount" in plain and "ignoredcount" in plain:
            return (
                table,
                quoted(memory_id),
                quoted(plain["usedcount"]),
                quoted(plain["ignoredcount"]),
            )
    return None


def write_usefulness(
    path: Path, signals: Mapping[str, Usefulness], redactor: Redactor | None = None
) -> None:
    """Write usefulness.csv, the ids as they stand in memories.jsonl."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(USEFULNESS_COLUMNS)
        for memory_id, value in signals.items():
            shown_id = redactor.identifier(memory_id)[0] if redactor else memory_id
            writer.writerow((shown_id, *value))
