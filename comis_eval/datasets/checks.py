"""What must hold between the files of a dataset, and what is allowed but probably not meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from comis_eval.datasets.contents import (
    ATTACKS,
    BESIDE,
    EDGES,
    FILES,
    LINKS,
    MEMORIES,
    QRELS,
    QUERIES,
    USEFULNESS,
    Contents,
    Rows,
)
from comis_eval.datasets.faults import Complaints, did_you_mean, shown
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.labels import Edge, Link
from comis_eval.types import Memory

_RECORD_SUFFIXES = {".jsonl", ".tsv", ".csv", ".npy", ".ids", ".yaml", ".yml"}


def check_contents(contents: Contents, complaints: Complaints, *, labelled: bool = True) -> None:
    """Note every fault and warning that takes more than one record to see.

    Args:
        contents: What was read.
        complaints: Takes them.
        labelled: Whether every query's judgments must say what ``answerable`` says.
    """
    _check_not_empty(contents, complaints)
    _check_memories(contents, complaints)
    _check_queries(contents, complaints)
    _check_judgments(contents, complaints)
    if labelled:
        _check_answerable(contents, complaints)
    _check_attacks(contents, complaints)
    _check_pairs(LINKS, contents.links, contents, complaints)
    _check_pairs(EDGES, contents.edges, contents, complaints)
    for line, (memory_id, _) in contents.usefulness.items():
        _check_known((USEFULNESS, line), "memory", [memory_id], contents, complaints)
    _check_splits(contents, complaints)
    _warn_of_times(contents, complaints)
    _warn_of_unreachable(contents, complaints)
    _warn_of_categories(contents, complaints)


def check_folder(folder: Path, complaints: Complaints) -> None:
    """Warn of files that look like part of the dataset but are not read."""
    for name in sorted(path.name for path in folder.iterdir()):
        if name not in (*FILES, *BESIDE) and Path(name).suffix in _RECORD_SUFFIXES:
            near = get_close_matches(name, FILES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            complaints.warn(name, None, f"is not read{hint}")


def _check_known(
    place: tuple[str, int],
    what: str,
    ids: Iterable[str],
    contents: Contents,
    complaints: Complaints,
) -> None:
    for memory_id in ids:
        if memory_id not in contents.memories.line_of:
            complaints.fault(*place, f"{what} names {shown(memory_id)}, no id in {MEMORIES}")


def _check_not_empty(contents: Contents, complaints: Complaints) -> None:
    labelled = contents.header is None or contents.header.labelled
    for file, rows in ((MEMORIES, contents.memories), (QUERIES, contents.queries)):
        if file == QUERIES and not labelled:
            continue
        told = any(fault.file == file for fault in complaints.faults)
        if not rows.line_of and not told:
            complaints.fault(file, None, "is empty; a dataset needs at least one record in it")


def _check_memories(contents: Contents, complaints: Complaints) -> None:
    by_id = {memory.id: memory for memory in contents.memories.records}
    for line, memory in contents.memories.items():
        _check_known((MEMORIES, line), "sourceIds", memory.source_ids, contents, complaints)
        if memory.duplicate_of is not None:
            named = [memory.duplicate_of]
            _check_known((MEMORIES, line), "duplicateOf", named, contents, complaints)
        if memory.id in memory.source_ids or memory.id == memory.duplicate_of:
            complaints.fault(MEMORIES, line, f"{shown(memory.id)} names itself as its origin")
        sources = [by_id[source] for source in memory.source_ids if source in by_id]
        _check_laundering(line, memory, sources, complaints)


def _check_laundering(
    line: int, memory: Memory, sources: list[Memory], complaints: Complaints
) -> None:
    lowest = min(sources, key=lambda source: source.trust_level.rank, default=memory)
    if memory.trust_level.rank > lowest.trust_level.rank:
        complaints.fault(
            MEMORIES,
            line,
            f"launders trust: {memory.trust_level} but derived from {shown(lowest.id)}, which "
            f"is {lowest.trust_level}; a derived memory is trusted at most as its sources are",
        )


def _check_queries(contents: Contents, complaints: Complaints) -> None:
    declared = contents.header.categories if contents.header else {}
    for line, query in contents.queries.items():
        if query.superseded is not None:
            named = [query.superseded]
            _check_known((QUERIES, line), "superseded", named, contents, complaints)
        if query.category == "all":
            complaints.fault(QUERIES, line, "category 'all' is taken: it names the headline mean")
        elif declared and query.category not in declared:
            complaints.fault(
                QUERIES,
                line,
                f"category {shown(query.category)} is not declared in {HEADER}"
                f"{did_you_mean(query.category, declared)}",
            )


def _check_judgments(contents: Contents, complaints: Complaints) -> None:
    first_line: dict[tuple[str, str], int] = {}
    for line, query_id, memory_id, _ in contents.judgments or ():
        if query_id not in contents.queries.line_of:
            complaints.fault(QRELS, line, f"query {shown(query_id)} is no id in {QUERIES}")
        if memory_id not in contents.memories.line_of:
            complaints.fault(QRELS, line, f"memory {shown(memory_id)} is no id in {MEMORIES}")
        first = first_line.setdefault((query_id, memory_id), line)
        if first != line:
            complaints.fault(
                QRELS,
                line,
                f"query {shown(query_id)} and memory {shown(memory_id)} were already judged "
                f"on line {first}; keep one of the two",
            )


def _check_answerable(contents: Contents, complaints: Complaints) -> None:
    if contents.judgments is None:
        return
    # A query with an unusable judgment is left alone: that fault is told already.
    doubtful = {j.query_id for j in contents.judgments if j.grade is None}
    relevant = {j.query_id for j in contents.judgments if j.grade}
    for line, query in contents.queries.items():
        if query.id in doubtful or query.answerable == (query.id in relevant):
            continue
        complaints.fault(
            QUERIES,
            line,
            f"query {shown(query.id)} has no memory of grade >= 1 in {QRELS}; "
            "judge one, or set answerable: false"
            if query.answerable
            else f"query {shown(query.id)} is answerable: false but has a memory of grade >= 1 "
            f"in {QRELS}; drop the one or the other",
        )


def _check_attacks(contents: Contents, complaints: Complaints) -> None:
    relevant = {(j.query_id, j.memory_id) for j in contents.judgments or () if j.grade}
    for line, attack in contents.attacks.items():
        if attack.query_id not in contents.queries.line_of:
            complaints.fault(ATTACKS, line, f"query {shown(attack.query_id)} is no id in {QUERIES}")
        if not attack.poison_ids:
            complaints.fault(ATTACKS, line, "poison is empty; an attack plants at least one memory")
        _check_known((ATTACKS, line), "poison", attack.poison_ids, contents, complaints)
        for memory_id in attack.poison_ids:
            if (attack.query_id, memory_id) in relevant:
                complaints.warn(
                    ATTACKS, line, f"poison {shown(memory_id)} is judged relevant to its query"
                )


def _check_pairs(
    file: str, rows: Rows[Link] | Rows[Edge], contents: Contents, complaints: Complaints
) -> None:
    first_line: dict[tuple[str, ...], int] = {}
    for line, pair in rows.items():
        _check_known((file, line), "from", [pair.from_id], contents, complaints)
        _check_known((file, line), "to", [pair.to_id], contents, complaints)
        if pair.from_id == pair.to_id:
            complaints.fault(file, line, f"{shown(pair.from_id)} is tied to itself")
        kind = pair.kind if isinstance(pair, Edge) else ""
        first = first_line.setdefault((pair.from_id, pair.to_id, kind), line)
        if first != line:
            complaints.fault(file, line, f"the same two memories are already tied on line {first}")


def _check_splits(contents: Contents, complaints: Complaints) -> None:
    if contents.header is None or not contents.header.splits:
        return
    placed = {group for groups in contents.header.splits.values() for group in groups}
    used = {query.group for query in contents.queries.records}
    for line, query in contents.queries.items():
        if query.group not in placed:
            complaints.fault(
                QUERIES, line, f"group {shown(query.group)} is in none of the splits of {HEADER}"
            )
    for group in sorted(placed - used):
        complaints.fault(HEADER, None, f"splits names group {shown(group)}, which no query has")


SECONDS_UNTIL = 31_536_000_000
"""A year in milliseconds: before it a time in seconds was meant."""


def _warn_of_times(contents: Contents, complaints: Complaints) -> None:
    if contents.header is None:
        return
    last = max((query.now for query in contents.queries.records), default=None)
    for line, memory in contents.memories.items():
        if last is not None and memory.created_at > last:
            complaints.warn(
                MEMORIES, line, f"createdAt {memory.created_at} is later than every query's now"
            )
        if 0 < memory.created_at < SECONDS_UNTIL:
            complaints.warn(
                MEMORIES,
                line,
                f"createdAt {memory.created_at} is in 1970: times are milliseconds, not seconds",
            )
        if memory.expires_at is not None and memory.expires_at <= memory.created_at:
            complaints.warn(
                MEMORIES, line, "expiresAt is not after createdAt: it is never recalled"
            )


def _warn_of_unreachable(contents: Contents, complaints: Complaints) -> None:
    """Warn of relevant memories that no pipeline keeping to scope and time could return."""
    if contents.header is None:
        return
    memories = {memory.id: memory for memory in contents.memories.records}
    queries = {query.id: query for query in contents.queries.records}
    for line, query_id, memory_id, grade in contents.judgments or ():
        memory, query = memories.get(memory_id), queries.get(query_id)
        if not grade or memory is None or query is None:
            continue
        pair = f"memory {shown(memory_id)} is relevant to query {shown(query_id)} but"
        if not contents.header.policy.shows(memory, query):
            complaints.warn(QRELS, line, f"{pair} outside the scope it may be answered from")
        if memory.expires_at is not None and memory.expires_at <= query.now:
            complaints.warn(QRELS, line, f"{pair} has expired by the query's now")
        if memory.created_at > query.now:
            complaints.warn(QRELS, line, f"{pair} was written after the query's now")


def _warn_of_categories(contents: Contents, complaints: Complaints) -> None:
    declared = contents.header.categories if contents.header else {}
    used = {query.category for query in contents.queries.records}
    for category in sorted(set(declared) - used):
        complaints.warn(HEADER, None, f"category {shown(category)} has no query")
