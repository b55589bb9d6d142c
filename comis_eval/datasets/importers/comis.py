"""A Comis ``memory.db`` of any age, streamed into an unlabelled dataset folder.

Decisions where the source is silent:

- rows keep the order of their row numbers, which settles ties;
- ``user_id``, ``has_embedding``, ``consolidated_at`` and ``history`` have no place in a
  dataset and are left out;
- a blank ``source_*`` is unknown; no other value is turned into another;
- the entities of ``memory_entity_links`` become names; a link to an entity that is gone is
  left out and counted;
- a derived memory that claims more trust than its sources have, at whatever remove, is
  malformed; sources that are gone, or not among the memories asked for, are left out of
  ``sourceIds`` and counted;
- nobody judged anything, so the dataset says ``labelled: false``; ``now`` is the moment of
  the newest memory.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from comis_eval.datasets.contents import MEMORIES, QUERIES, USEFULNESS
from comis_eval.datasets.faults import shown
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.importers import foreign
from comis_eval.datasets.importers.base import (
    MAX_BAD,
    BadRecords,
    Count,
    ImportReport,
    Note,
    Tell,
    name_of,
)
from comis_eval.datasets.importers.comis_plan import COLUMNS, Entities, Plan
from comis_eval.datasets.importers.comis_rows import BLOCK, Part, Reader
from comis_eval.datasets.importers.comis_trust import examine_sources
from comis_eval.datasets.importers.comis_usefulness import read_usefulness, write_usefulness
from comis_eval.datasets.importers.comis_vectors import write_vectors
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.write import new_folder, write_header
from comis_eval.errors import DatasetError

WORKERS_FROM = 50_000
"""Rows from which on several processes are worth their start."""

_AHEAD = 4
_TABLE = "memories"


@dataclass(frozen=True, kw_only=True)
class ComisOptions:
    """What is taken from a database, and how.

    Attributes:
        tenant, agent: Whose memories; None: everybody's.
        embeddings: Whether the vectors come along.
        redactor: What replaces secrets; None: nothing is replaced.
        max_bad: Share of malformed rows that stops the import.
        workers: Processes that read rows of a large database.
        tell: Told of progress.
    """

    tenant: str | None = None
    agent: str | None = None
    embeddings: bool = True
    redactor: Redactor | None = None
    max_bad: float = MAX_BAD
    workers: int = 1
    tell: Tell | None = None


class Memories(NamedTuple):
    """What was made of a database's memories.

    Attributes:
        counts: By kind of record.
        notes: What was left out and why.
        dropped: Ids of memories that are not in the folder because they are malformed.
        newest: When the newest memory was written, ms.
    """

    counts: dict[str, Count]
    notes: list[Note]
    dropped: frozenset[str]
    newest: int


def import_comis(source: Path, folder: Path, options: ComisOptions | None = None) -> ImportReport:
    """Turn a Comis ``memory.db`` into a dataset folder.

    Args:
        source: The database; it is only read.
        folder: Where to; it must not exist, or be empty.
        options: What is taken.

    Raises:
        DatasetError: If the source is no such database, is damaged, or too many of its rows
            are malformed; then nothing is written.
    """
    options = options or ComisOptions()
    with new_folder(folder) as part:
        found = write_memories(source, part, options)
        (part / QUERIES).touch()
        write_header(header(folder, source, found.newest), part / HEADER)
    return ImportReport(found.counts, tuple(found.notes), name=folder.name)


def header(folder: Path, source: Path, now: int) -> dict[str, object]:
    """What dataset.yaml says of an import that nobody judged."""
    return {
        "name": name_of(folder, "comis"),
        "description": f"imported from {source.name}",
        "licence": "private: memories of a running system",
        "judgedBy": "nobody",
        "now": now,
        "labelled": False,
    }


def write_memories(source: Path, folder: Path, options: ComisOptions) -> Memories:
    """Write memories.jsonl, and what the database has of usefulness and embeddings."""
    with ExitStack() as stack:
        copy = stack.enter_context(foreign.private_copy(source, folder))
        stack.enter_context(foreign.told(source))
        tables = _prepare(copy, source)
        connection = stack.enter_context(closing(foreign.connect(copy)))
        plan = _plan(connection, tables, copy, source, options)
        total, newest = _size(connection, plan)
        bad = BadRecords(source, options.max_bad)
        taken = _take(connection, plan, total, bad, folder / MEMORIES, options)
        counts = {"memories": Count(total, taken.kept)}
        notes = list(_asides(taken, options, total))
        dropped = frozenset(taken.dropped)
        _write_usefulness(connection, tables, plan, dropped, folder, counts, notes, bad)
        if options.embeddings:
            vectors = write_vectors(connection, tables, plan, dropped, folder)
            if vectors is not None:
                counts["embeddings"] = vectors.counted
                notes += vectors.notes
    if not taken.kept:
        whose = " of the tenant and agent asked for" if options.tenant or options.agent else ""
        raise DatasetError(f"{source}: holds no memory{whose}; nothing was imported")
    return Memories(counts, [*bad.notes, *notes], dropped, newest)


def _prepare(copy: Path, source: Path) -> dict[str, foreign.Table]:
    """List the tables, and give the copy the indices that a foreign author left out."""
    with closing(foreign.connect(copy, writable=True)) as connection:
        tables = foreign.tables(connection, source)
        if _TABLE not in tables:
            other = foreign.kind_of(connection, _TABLE)
            what = f"{_TABLE} is a {other}, which is never read" if other else f"no table {_TABLE}"
            raise DatasetError(f"{source} is no Comis memory.db: {what}")
        wanted = {"memory_entity_links": "memory_id", "memory_entities": "id", _TABLE: "id"}
        for name, column in wanted.items():
            table = tables.get(name)
            if table is not None and column in table.columns:
                _index(connection, table, table.columns[column])
    return tables


def _index(connection: sqlite3.Connection, table: foreign.Table, column: str) -> None:
    name = foreign.quoted(table.name)
    for _, index, _, _, partial in connection.execute(f"PRAGMA main.index_list({name})"):
        first = connection.execute(
            "SELECT name, coll FROM pragma_index_xinfo(?) WHERE seqno = 0", [index]
        ).fetchone()
        if not partial and first == (column, "BINARY"):
            return
    connection.execute(
        f"CREATE INDEX {foreign.quoted('comis_eval ' + table.name)} "
        f"ON {name} ({foreign.quoted(column)} COLLATE BINARY)"
    )


def _plan(
    connection: sqlite3.Connection,
    tables: Mapping[str, foreign.Table],
    copy: Path,
    source: Path,
    options: ComisOptions,
) -> Plan:
    table = tables[_TABLE]
    lacking = [c.name for c in COLUMNS if c.required and c.name not in table.columns]
    if lacking:
        raise DatasetError(
            f"{source}: table {_TABLE} has no column {', '.join(lacking)}; it has "
            f"{', '.join(map(shown, table.columns.values()))}"
        )
    rowid = next((n for n in ("rowid", "_rowid_", "oid") if n not in table.columns), None)
    name = foreign.quoted(table.name)
    try:
        connection.execute(f"SELECT {rowid} FROM {name} LIMIT 0")  # noqa: S608  (a quoted name)
    except sqlite3.OperationalError as error:
        raise DatasetError(
            f"{source}: table {_TABLE} has no row numbers (WITHOUT ROWID); that is no memory.db"
        ) from error
    columns = tuple(
        (column, "m." + foreign.quoted(table.columns[column.name]))
        for column in COLUMNS
        if column.name in table.columns
    )
    plan = Plan(
        copy=copy,
        table=name,
        rowid=str(rowid),
        columns=columns,
        entities=_entities(connection, tables),
        tenant=options.tenant,
        agent=options.agent,
        redactor=options.redactor,
    )
    return replace(plan, **examine_sources(connection, plan)._asdict())


def _entities(
    connection: sqlite3.Connection, tables: Mapping[str, foreign.Table]
) -> Entities | None:
    links, entities = tables.get("memory_entity_links"), tables.get("memory_entities")
    if links is None or entities is None:
        return None
    if not {"memory_id", "entity_id"} <= set(links.columns):
        return None
    if not {"id", "canonical_name"} <= set(entities.columns):
        return None
    name = foreign.quoted(entities.name)
    sound = all(
        isinstance(found, str) and found.strip()
        for (found,) in connection.execute(f"SELECT canonical_name FROM {name}")  # noqa: S608  (a quoted name)
    )
    return Entities(foreign.quoted(links.name), name, sound)


def _size(connection: sqlite3.Connection, plan: Plan) -> tuple[int, int]:
    created = plan.name_of("created_at")
    total, newest = connection.execute(
        f"SELECT count(*), max(iif(typeof({created}) = 'integer', {created}, NULL)) "  # noqa: S608  (names of a checked schema, quoted)
        f"FROM {plan.table} m WHERE {plan.selected}",
        plan.who,
    ).fetchone()
    everything = connection.execute(f"SELECT count(*) FROM {plan.table}").fetchone()[0]  # noqa: S608
    return everything or total, max(0, min(newest or 0, 2**53 - 1))


class _Taken(NamedTuple):
    """The sum of all parts."""

    found: int
    selected: int
    kept: int
    gone: int
    orphaned: int
    replaced: int
    dropped: set[str]


def _take(
    connection: sqlite3.Connection,
    plan: Plan,
    total: int,
    bad: BadRecords,
    path: Path,
    options: ComisOptions,
) -> _Taken:
    """Write the lines; once more when a memory turned out malformed that others derive from."""
    taken = _write_lines(connection, plan, total, bad, path, options)
    if not taken.dropped:
        return taken
    known = examine_sources(connection, plan, frozenset(taken.dropped))
    if known.missing != plan.missing:
        bad.notes.clear()
        plan = replace(plan, **known._asdict())
        taken = _write_lines(connection, plan, total, bad, path, options)
    return taken


def _write_lines(
    connection: sqlite3.Connection,
    plan: Plan,
    total: int,
    bad: BadRecords,
    path: Path,
    options: ComisOptions,
) -> _Taken:
    sums: Counter[str] = Counter()
    dropped: set[str] = set()
    with path.open("wb") as file:
        for part in _parts(_blocks(connection, plan), plan, total, options):
            file.write(part.lines)
            for rowid, memory_id, why in part.bad:
                bad.add(f"{_TABLE} rowid {rowid}", why)
                if memory_id is not None:
                    dropped.add(memory_id)
            for name in ("found", "selected", "kept", "gone", "orphaned", "replaced"):
                sums[name] += getattr(part, name)
            if part.bad:
                bad.check(max(total, len(bad.notes)))
            if options.tell is not None:
                options.tell("memories", sums["found"], total)
    bad.check(sums["selected"])
    return _Taken(**{name: sums[name] for name in _Taken._fields[:-1]}, dropped=dropped)


def _parts(
    blocks: Iterator[tuple[int, int]], plan: Plan, total: int, options: ComisOptions
) -> Iterator[Part]:
    """Read the blocks in order, over several processes when there are many rows."""
    if options.workers < 2 or total < WORKERS_FROM:
        with closing(Reader(plan)) as reader:
            for low, high in blocks:
                yield reader.read(low, high)
        return
    pool = ProcessPoolExecutor(
        options.workers, get_context("spawn"), initializer=_start, initargs=(plan,)
    )
    with pool:
        yield from _ordered(pool, blocks, ahead=_AHEAD * options.workers)


def _ordered(pool: Executor, blocks: Iterable[tuple[int, int]], *, ahead: int) -> Iterator[Part]:
    """Keep a few blocks in work, so that results never pile up."""
    waiting: deque[Future[Part]] = deque()
    blocks = iter(blocks)
    try:
        for block in islice(blocks, ahead):
            waiting.append(pool.submit(_read, *block))
        while waiting:
            part = waiting.popleft().result()
            for block in islice(blocks, 1):
                waiting.append(pool.submit(_read, *block))
            yield part
    finally:
        for future in waiting:
            future.cancel()


_worker: list[Reader] = []


def _start(plan: Plan) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    _worker.append(Reader(plan))


def _end_with_parent() -> None:
    """End this process when the one that started it was killed; else it would wait for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _read(low: int, high: int) -> Part:
    return _worker[0].read(low, high)


def _blocks(connection: sqlite3.Connection, plan: Plan) -> Iterator[tuple[int, int]]:
    """Cut the row numbers, which may have gaps of any width, into blocks of BLOCK rows."""
    step = (
        f"SELECT {plan.rowid} FROM {plan.table} WHERE {plan.rowid} >= ? "  # noqa: S608  (names of a checked schema, quoted)
        f"ORDER BY {plan.rowid} LIMIT 1 OFFSET ?"
    )
    first = connection.execute(step, (-(2**63), 0)).fetchone()
    while first is not None:
        after = connection.execute(step, (first[0], BLOCK)).fetchone()
        yield first[0], after[0] - 1 if after else 2**63 - 1
        first = after


def _asides(taken: _Taken, options: ComisOptions, total: int) -> Iterator[Note]:
    if taken.selected < total:
        whose = " and ".join(
            f"{what} {who}"
            for what, who in (("tenant", options.tenant), ("agent", options.agent))
            if who is not None
        )
        yield Note(
            _TABLE, f"{total - taken.selected} rows are not of {whose}", "left out, as asked"
        )
    if taken.gone:
        what = f"{taken.gone} links name an entity that is gone or has no usable name"
        yield Note("memory_entity_links", what, "links left out")
    if taken.orphaned:
        what = f"source_ids name a memory that is not in the dataset {taken.orphaned} times"
        yield Note(_TABLE, what, "left out of sourceIds")
    if options.redactor is not None:
        yield Note(_TABLE, f"{taken.replaced} secrets found by pattern", "replaced by placeholders")


def _write_usefulness(
    connection: sqlite3.Connection,
    tables: Mapping[str, foreign.Table],
    plan: Plan,
    dropped: frozenset[str],
    folder: Path,
    counts: dict[str, Count],
    notes: list[Note],
    bad: BadRecords,
) -> None:
    given = read_usefulness(connection, tables, plan, dropped, bad)
    if given is None:
        return
    counts["usefulness"] = given.counted
    notes += given.notes
    if given.signals:
        write_usefulness(folder / USEFULNESS, given.signals, plan.redactor)
