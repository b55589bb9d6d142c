"""Writing memories.jsonl from the blocks of a database, over several processes when it is large.

Each process writes a run of rows into a file of its own; the runs are then put together in
order, so that no line passes through a pipe.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import IO, Any, NamedTuple

from comis_eval.datasets.importers.base import Tell
from comis_eval.datasets.importers.comis_links import LinkReader
from comis_eval.datasets.importers.comis_plan import Plan
from comis_eval.datasets.importers.comis_rows import BLOCK, Bad, Reader
from comis_eval.errors import DatasetError

WORKERS_FROM = 50_000
"""Rows from which on several processes are worth their start."""

_CHUNK = 2**20

Block = tuple[int, int]
"""First and last row number."""


class Taken(NamedTuple):
    """The sum of all parts; see :class:`.comis_rows.Part`.

    Attributes:
        total: Rows of the table; more than were found when too many of them are malformed,
            which ends the reading.
    """

    total: int
    found: int = 0
    selected: int = 0
    kept: int = 0
    gone: int = 0
    orphaned: int = 0
    replaced: int = 0
    newest: int = 0
    bad: tuple[Bad, ...] = ()

    @property
    def dropped(self) -> frozenset[str]:
        """Ids of the malformed memories that have one."""
        return frozenset(bad.memory_id for bad in self.bad if bad.memory_id is not None)


def write_lines(
    connection: sqlite3.Connection,
    plan: Plan,
    links: LinkReader,
    path: Path,
    *,
    workers: int = 1,
    max_bad: float = 1,
    tell: Tell | None = None,
) -> Taken:
    """Write the lines of all memories asked for.

    Args:
        connection: To the private copy.
        plan: How rows are read.
        links: The entities of memories.
        path: The file to write.
        workers: Processes that read, this one among them.
        max_bad: Share of malformed rows beyond which nothing more is read.
        tell: Told of progress.

    Raises:
        DatasetError: If a process was ended from outside.
    """
    (total,) = connection.execute(f"SELECT count(*) FROM {plan.table}").fetchone()  # noqa: S608  (a quoted name)
    blocks = list(_blocks(connection, plan, total))
    job = _Job(plan, links, total, max_bad)
    runs = _runs(blocks, workers if total >= WORKERS_FROM else 1)
    with ExitStack() as stack:
        file = stack.enter_context(path.open("wb", buffering=0))
        others = [path.with_name(f".{path.name}.{number}") for number in range(1, len(runs))]
        futures = []
        if others:
            pool = stack.enter_context(processes(len(others), job))
            futures = [pool.submit(_work, *work) for work in zip(runs[1:], others, strict=True)]
        taken = _run(job, runs[0], file, tell)
        for future, other in zip(futures, others, strict=True):
            taken = _sum(taken, future.result())
            with other.open("rb", buffering=0) as lines:
                shutil.copyfileobj(lines, file, _CHUNK)
            other.unlink()
            if tell is not None:
                tell("memories", taken.found, total)
    return taken


class _Job(NamedTuple):
    """What a process must know."""

    plan: Plan
    links: LinkReader
    total: int
    max_bad: float


def _run(job: _Job, blocks: Sequence[Block], file: IO[bytes], tell: Tell | None = None) -> Taken:
    """Read blocks and write their lines, until too many rows are malformed."""
    found = selected = kept = gone = orphaned = replaced = newest = 0
    bad: list[Bad] = []
    with closing(Reader(job.plan, job.links)) as reader:
        for low, high in blocks:
            part = reader.read(low, high)
            file.write(part.lines)
            found, selected, kept = (
                found + part.found, selected + part.selected, kept + part.kept
            )  # fmt: skip
            gone, orphaned = gone + part.gone, orphaned + part.orphaned
            replaced += part.replaced
            newest = max(newest, part.newest)
            bad += part.bad
            if len(bad) > job.max_bad * job.total:
                break
            if tell is not None:
                tell("memories", found, job.total)
    return Taken(
        job.total, found, selected, kept, gone, orphaned, replaced, newest, tuple(bad)
    )  # fmt: skip


def _sum(one: Taken, two: Taken) -> Taken:
    added = {
        name: getattr(one, name) + getattr(two, name)
        for name in ("found", "selected", "kept", "gone", "orphaned", "replaced", "bad")
    }
    return one._replace(**added, newest=max(one.newest, two.newest))


@contextmanager
def processes(workers: int, *given: object) -> Iterator[Executor]:
    """Start processes, which find what is given in ``GIVEN``.

    A fork of this process has all it needs at once, but other threads forbid it.

    Raises:
        DatasetError: If one of them was ended from outside.
    """
    alone = sys.platform == "linux" and threading.active_count() == 1
    context = get_context("fork" if alone else "spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_receive, initargs=given)
    try:
        with pool:
            try:
                yield pool
            except (KeyboardInterrupt, SystemExit):
                # Leaving the pool waits for what is being read, which may take minutes.
                for child in active_children():
                    child.kill()
                raise
    except BrokenProcessPool as error:
        raise DatasetError(
            "a process that read rows was ended from outside; was memory short?"
        ) from error


GIVEN: list[Any] = []
"""In a process started by :func:`processes`: what it was given."""


def _receive(*given: object) -> None:
    GIVEN.extend(given)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it was killed; else it would wait for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(blocks: Sequence[Block], path: Path) -> Taken:
    with path.open("wb", buffering=0) as file:
        return _run(GIVEN[0], blocks, file)


def _runs(blocks: Sequence[Block], workers: int) -> list[Sequence[Block]]:
    """Cut the blocks into a run a process."""
    size = -(-len(blocks) // max(1, workers)) or 1
    return [blocks[start : start + size] for start in range(0, len(blocks), size)] or [()]


def _blocks(connection: sqlite3.Connection, plan: Plan, total: int) -> Iterator[Block]:
    """Cut the row numbers, which may have gaps of any width, into blocks of some BLOCK rows."""
    first, last = connection.execute(
        f"SELECT min({plan.rowid}), (SELECT max({plan.rowid}) FROM {plan.table}) "  # noqa: S608  (names of a checked schema, quoted)
        f"FROM {plan.table}"
    ).fetchone()
    if total and last - first < 2 * total:
        for low in range(first, last + 1, BLOCK):
            yield low, min(low + BLOCK - 1, last)
        return
    step = (
        f"SELECT {plan.rowid} FROM {plan.table} WHERE {plan.rowid} >= ? "  # noqa: S608  (names of a checked schema, quoted)
        f"ORDER BY {plan.rowid} LIMIT 1 OFFSET ?"
    )
    start = connection.execute(step, (-(2**63), 0)).fetchone()
    while start is not None:
        after = connection.execute(step, (start[0], BLOCK)).fetchone()
        yield start[0], after[0] - 1 if after else 2**63 - 1
        start = after
