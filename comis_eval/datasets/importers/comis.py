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

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.contents import MEMORIES, QUERIES, USEFULNESS
from comis_eval.datasets.faults import shown
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.importers import comis_lines, foreign
from comis_eval.datasets.importers.base import (
    MAX_BAD,
    BadRecords,
    Count,
    ImportReport,
    Note,
    Tell,
    name_of,
)
from comis_eval.datasets.importers.comis_lines import Taken, write_lines
from comis_eval.datasets.importers.comis_links import LinkReader
from comis_eval.datasets.importers.comis_plan import COLUMNS, MAX_WHOLE, VECTORS, Entities, Plan
from comis_eval.datasets.importers.comis_trust import Sources, examine_sources
from comis_eval.datasets.importers.comis_usefulness import read_usefulness, write_usefulness
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.write import new_folder, write_header
from comis_eval.errors import DatasetError

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
        known, links = _know(connection, plan, options.workers)
        plan = replace(plan, **known._asdict())
        bad = BadRecords(source, options.max_bad)
        taken = _take(connection, plan, links, bad, folder / MEMORIES, options)
        counts = {"memories": Count(taken.found, taken.kept)}
        notes = list(_asides(taken, options))
        dropped = taken.dropped
        _write_usefulness(connection, tables, plan, dropped, folder, counts, notes, bad)
        if options.embeddings and foreign.kind_of(connection, VECTORS) is not None:
            # Here, because it imports NumPy, which nothing else of an import needs.
            from comis_eval.datasets.importers.comis_vectors import write_vectors

            vectors = write_vectors(connection, tables, plan, dropped, folder)
            if vectors is not None:
                counts["embeddings"] = vectors.counted
                notes += vectors.notes
    if not taken.kept:
        whose = " of the tenant and agent asked for" if options.tenant or options.agent else ""
        raise DatasetError(f"{source}: holds no memory{whose}; nothing was imported")
    return Memories(counts, [*bad.notes, *notes], dropped, min(taken.newest, MAX_WHOLE))


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
    return Plan(
        copy=copy,
        table=name,
        rowid=str(rowid),
        columns=columns,
        entities=_entities(tables),
        tenant=options.tenant,
        agent=options.agent,
        redactor=options.redactor,
    )


def _entities(tables: Mapping[str, foreign.Table]) -> Entities | None:
    links, entities = tables.get("memory_entity_links"), tables.get("memory_entities")
    if links is None or entities is None:
        return None
    if not {"memory_id", "entity_id"} <= set(links.columns):
        return None
    if not {"id", "canonical_name"} <= set(entities.columns):
        return None
    return Entities(foreign.quoted(links.name), foreign.quoted(entities.name))


def _know(connection: sqlite3.Connection, plan: Plan, workers: int) -> tuple[Sources, LinkReader]:
    """Examine the sources and read the links, at the same time where both take long."""
    (total,) = connection.execute(f"SELECT count(*) FROM {plan.table}").fetchone()  # noqa: S608  (a quoted name)
    if workers < 2 or total < comis_lines.WORKERS_FROM:
        return examine_sources(connection, plan), LinkReader(plan)
    with comis_lines.processes(1) as pool:
        examining = pool.submit(_examine, plan)
        links = LinkReader(plan)
        return examining.result(), links


def _examine(plan: Plan) -> Sources:
    with closing(foreign.connect(plan.copy)) as connection:
        return examine_sources(connection, plan)


def _take(
    connection: sqlite3.Connection,
    plan: Plan,
    links: LinkReader,
    bad: BadRecords,
    path: Path,
    options: ComisOptions,
) -> Taken:
    """Write the lines; once more when a memory turned out malformed that others derive from."""
    taken = _write(connection, plan, links, bad, path, options)
    if not taken.bad:
        return taken
    known = examine_sources(connection, plan, taken.dropped)
    if known.missing != plan.missing:
        bad.notes.clear()
        plan = replace(plan, **known._asdict())
        taken = _write(connection, plan, links, bad, path, options)
    return taken


def _write(
    connection: sqlite3.Connection,
    plan: Plan,
    links: LinkReader,
    bad: BadRecords,
    path: Path,
    options: ComisOptions,
) -> Taken:
    taken = write_lines(
        connection,
        plan,
        links,
        path,
        workers=options.workers,
        max_bad=options.max_bad,
        tell=options.tell,
    )
    for rowid, _, why in taken.bad:
        bad.add(f"{_TABLE} rowid {rowid}", why)
    bad.check(taken.selected if taken.found == taken.total else taken.total)
    return taken


def _asides(taken: Taken, options: ComisOptions) -> Iterator[Note]:
    if taken.selected < taken.found:
        whose = " and ".join(
            f"{what} {who}"
            for what, who in (("tenant", options.tenant), ("agent", options.agent))
            if who is not None
        )
        yield Note(
            _TABLE, f"{taken.found - taken.selected} rows are not of {whose}", "left out, as asked"
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
