"""The files of a dataset folder, each read on its own; what ties them together is checks.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from comis_eval.datasets import records
from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.fields import Fields, read_fields
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.header import Header, read_header
from comis_eval.datasets.labels import Attack, Edge, Link, Usefulness
from comis_eval.datasets.lines import read_columns, read_lines, read_objects
from comis_eval.types import Memory, Query

MEMORIES = "memories.jsonl"
QUERIES = "queries.jsonl"
QRELS = "qrels.tsv"
ATTACKS = "attacks.jsonl"
LINKS = "links.jsonl"
EDGES = "edges.jsonl"
USEFULNESS = "usefulness.csv"
WEAK = "weak.tsv"
"""Weak labels: no part of the dataset, read by :mod:`.weak` alone."""
SURFACED = "surfaced.jsonl"
"""What a live system recalled, as it recorded it: no part of the dataset either."""
EMBEDDINGS = ("embeddings.npy", "embeddings.ids", "embeddings.yaml")
"""Read with the models; here only their hashes matter."""

FILES = (HEADER, MEMORIES, QUERIES, QRELS, ATTACKS, LINKS, EDGES, USEFULNESS, *EMBEDDINGS)
BESIDE = (WEAK, SURFACED)
"""Files that may stand in the folder without being part of the dataset."""
USEFULNESS_COLUMNS = ("memory", "used", "ignored")
GRADES = {"0": 0, "1": 1, "2": 2, "3": 3}

T = TypeVar("T")


class Rows(NamedTuple, Generic[T]):
    """The usable records of one file.

    Attributes:
        records: In file order.
        lines: Line of each record.
        line_of: First line of each id, of unusable records too, so that a fault in a
            record is not told again wherever its id is used.
    """

    records: list[T]
    lines: list[int]
    line_of: dict[str, int]

    def items(self) -> Iterator[tuple[int, T]]:
        """Yield (line, record)."""
        return zip(self.lines, self.records, strict=True)


class Judgment(NamedTuple):
    """One line of qrels.tsv as it stands there; grade None when it is unusable."""

    line: int
    query_id: str
    memory_id: str
    grade: int | None


@dataclass(frozen=True)
class Contents:
    """Everything usable in a folder; ``judgments`` is None without judgments."""

    header: Header | None
    memories: Rows[Memory]
    queries: Rows[Query]
    judgments: list[Judgment] | None
    attacks: Rows[Attack]
    links: Rows[Link]
    edges: Rows[Edge]
    usefulness: Rows[tuple[str, Usefulness]]


def read_contents(folder: Path, complaints: Complaints, *, labelled: bool = True) -> Contents:
    """Read every file of a dataset folder; what is unusable becomes faults.

    Args:
        folder: The folder.
        complaints: Takes the faults.
        labelled: Whether a missing qrels.tsv is one of them.
    """
    header = read_header(folder / HEADER, complaints)
    judged = header is None or header.labelled

    def query_of(line: int, values: dict[str, Any]) -> Query | None:
        values.setdefault("group", values["id"])
        # Without a header nothing is built; any moment lets the other checks go on.
        now = header.now if header is not None else 0
        if values.setdefault("now", now) is not None:
            return Query(**values)
        complaints.fault(
            QUERIES, line, f"now is missing, here and in {HEADER}; state one of them (ms)"
        )
        return None

    def memory_of(line: int, values: dict[str, Any]) -> Memory | None:
        if values.get("scope") == "agent" and not values.keys() & {"created_by", "agent_id"}:
            complaints.fault(
                MEMORIES, line, "scope is 'agent' but nobody owns it; state createdBy or agentId"
            )
            return None
        return records.memory_of(values)

    def optional(name: str, fields: Fields, build: Callable[..., T]) -> Rows[T]:
        if not (folder / name).exists():
            return Rows([], [], {})
        return _rows(folder / name, fields, lambda _, values: build(**values), complaints)

    return Contents(
        header=header,
        memories=_rows(folder / MEMORIES, records.MEMORY, memory_of, complaints),
        queries=_rows(folder / QUERIES, records.QUERY, query_of, complaints),
        judgments=_judgments(folder / QRELS, complaints, judged=judged, required=labelled),
        attacks=optional(ATTACKS, records.ATTACK, Attack),
        links=optional(LINKS, records.LINK, Link),
        edges=optional(EDGES, records.EDGE, Edge),
        usefulness=read_usefulness_file(folder / USEFULNESS, complaints),
    )


def hash_embeddings(folder: Path) -> dict[str, str]:
    """Return the sha256 (hex) of each embeddings file that is there."""
    hashes: dict[str, str] = {}
    for name in EMBEDDINGS:
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                hashes[name] = file_digest(file, "sha256").hexdigest()
    return hashes


def _rows(
    path: Path,
    fields: Fields,
    build: Callable[[int, dict[str, Any]], T | None],
    complaints: Complaints,
) -> Rows[T]:
    """Read records; an id that stood before is a fault naming both lines."""
    rows: Rows[T] = Rows([], [], {})
    for line, row in read_objects(path, complaints):
        values, wrong = read_fields(row, fields)
        for message in wrong:
            complaints.fault(path.name, line, message)
        own_id = values.get("id")
        if own_id is not None and (first := rows.line_of.setdefault(own_id, line)) != line:
            complaints.fault(path.name, line, f"id {shown(own_id)} already stands on line {first}")
        elif not wrong and (record := build(line, values)) is not None:
            rows.records.append(record)
            rows.lines.append(line)
    return rows


def _judgments(
    path: Path, complaints: Complaints, *, judged: bool, required: bool
) -> list[Judgment] | None:
    if not judged:
        if path.exists():
            complaints.fault(
                path.name, None, f"is there, but {HEADER} says labelled: false; remove one of them"
            )
        return None
    if not path.exists():
        if required:
            complaints.fault(
                path.name,
                None,
                "no such file; it holds: query 0 memory grade "
                f"(or say labelled: false in {HEADER})",
            )
        return None
    judgments: list[Judgment] = []
    for line, words in read_columns(path, ("query", "0", "memory", "grade"), complaints):
        query_id, zero, memory_id, grade = words
        if zero != "0":
            complaints.fault(path.name, line, f"second column is {shown(zero)}; it must be 0")
        if grade not in GRADES:
            complaints.fault(
                path.name,
                line,
                f"grade of query {shown(query_id)} and memory {shown(memory_id)} is "
                f"{shown(grade)}; allowed: {', '.join(GRADES)}",
            )
        judgments.append(Judgment(line, query_id, memory_id, GRADES.get(grade)))
    return judgments


def read_usefulness_file(path: Path, complaints: Complaints) -> Rows[tuple[str, Usefulness]]:
    """Read a CSV of memory, used, ignored; a file that is not there gives nothing."""
    rows: Rows[tuple[str, Usefulness]] = Rows([], [], {})
    if not path.exists():
        return rows
    header = ",".join(USEFULNESS_COLUMNS)
    if not path.stat().st_size:
        complaints.fault(path.name, None, f"is empty; it must begin with {header!r}")
    for line, text in read_lines(path, complaints):
        if line == 1:
            if text != header:
                complaints.fault(path.name, 1, f"must be {header!r}, found {shown(text)}")
            continue
        try:
            memory_id, used, ignored = next(csv.reader([text], strict=True))
        except (csv.Error, ValueError) as error:
            complaints.fault(path.name, line, f"must hold {header}, found {shown(text)}: {error}")
            continue
        first = rows.line_of.setdefault(memory_id, line)
        if first != line:
            complaints.fault(
                path.name, line, f"memory {shown(memory_id)} already stands on line {first}"
            )
        elif not (_COUNT.fullmatch(used) and _COUNT.fullmatch(ignored)):
            complaints.fault(
                path.name,
                line,
                f"used is {shown(used)}, ignored is {shown(ignored)}; "
                "both must be whole numbers >= 0",
            )
        else:
            rows.records.append((memory_id, Usefulness(int(used), int(ignored))))
            rows.lines.append(line)
    return rows


_COUNT = re.compile(r"[0-9]{1,18}")
