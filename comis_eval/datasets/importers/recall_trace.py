"""``recall-trace.jsonl`` of the shipped system: what was recalled, and what became of it.

A trace names memories by id and the query by its sha256, never by its text. It is joined
with the database, which has the memories, and with a log of the user's own queries, which
has the texts: what joins becomes an unlabelled dataset that can be replayed against new
settings (``comis-eval diff``, ``recall``). Everything recorded, joined or not, goes into
``surfaced.jsonl`` beside it, and used / ignored counts of memories that were injected become
weak labels (:mod:`comis_eval.datasets.weak`).

Decisions: the recalls of one text by one agent at one moment each are a query of their own,
in one group by text; a query's ``now`` is the moment of the recall; its agent is the trace's,
its tenant the one that the surfaced memories share (``default`` where they share none).

Source: specification of MemoryRecall, section 14 and its appendix ("Trace").
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets.contents import (
    MEMORIES,
    QUERIES,
    SURFACED,
    USEFULNESS,
    read_usefulness_file,
)
from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.fields import UnusableError, identifier
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.importers.base import BadRecords, Count, ImportReport, Note
from comis_eval.datasets.importers.comis import (
    ComisOptions,
    header,
    write_memories,
)
from comis_eval.datasets.importers.comis_usefulness import write_usefulness
from comis_eval.datasets.labels import Usefulness
from comis_eval.datasets.lines import UnreadableError, decode_json, read_lines, read_objects
from comis_eval.datasets.weak import weak_labels, write_weak
from comis_eval.datasets.write import new_folder, write_header
from comis_eval.errors import DatasetError
from comis_eval.text import sha256_text

SCHEMA = "comis-recall-trace"
REASONS = ("included", "below_budget", "trust_filtered", "deduped")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MS = 2**53 - 1


class Recall(NamedTuple):
    """One line of a trace.

    Attributes:
        line: Its number.
        digest: sha256 of the query, hex.
        at: The moment, ms.
        agent_id: Who recalled; None where it is not said.
        ranked: Id, reason and breakdown of each memory, as recorded.
        record: The line.
    """

    line: int
    digest: str
    at: int
    agent_id: str | None
    ranked: tuple[tuple[str, str, Mapping[str, Any] | None], ...]
    record: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What a trace is joined with.

    Attributes:
        database: The ``memory.db`` that has the memories.
        query_log: The user's own queries: a text a line, or JSON objects with ``text`` or
            ``query``; None: no text is known.
        usefulness: A CSV of memory, used, ignored; None: what the database says.
        comis: How the database is read.
    """

    database: Path
    query_log: Path | None = None
    usefulness: Path | None = None
    comis: ComisOptions = field(default_factory=ComisOptions)


def import_recall_trace(source: Path, folder: Path, options: TraceOptions) -> ImportReport:
    """Turn a recorded trace into an unlabelled dataset folder.

    Args:
        source: The trace.
        folder: Where to; it must not exist, or be empty.
        options: What it is joined with.

    Raises:
        DatasetError: If a file cannot be read, or too many records are malformed; then
            nothing is written.
    """
    bad = BadRecords(source, options.comis.max_bad)
    texts = _query_log(options.query_log) if options.query_log else {}
    with new_folder(folder) as part:
        found = write_memories(options.database, part, options.comis)
        recalls = list(_recalls(source, bad))
        bad.check(len(recalls) + len(bad.notes))
        tenants = _tenants(part / MEMORIES)
        usefulness = _usefulness(part, options, tenants)
        queries = _queries(recalls, texts, tenants, options)
        with (part / QUERIES).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in queries.values())
        unknown = _write_surfaced(part / SURFACED, recalls, queries, tenants, options)
        pairs = (
            (str(queries[recall.line]["id"]), memory_id)
            for recall in recalls
            if recall.line in queries
            for memory_id, reason, _ in recall.ranked
            if reason == "included" and _known(memory_id, options) in tenants
        )
        named = ((query_id, _known(memory_id, options)) for query_id, memory_id in pairs)
        labels = weak_labels(named, usefulness)
        if labels:
            write_weak(labels, part)
        newest = max([found.newest, *(recall.at for recall in recalls)])
        write_header(header(folder, source, newest), part / HEADER)
    counts = {
        "recalls": Count(len(recalls) + len(bad.notes), len(recalls)),
        "queries": Count(len(recalls), len(queries)),
        **found.counts,
        "weak labels": Count(len(labels), len(labels)),
    }
    notes = [*bad.notes, *_asides(recalls, queries, unknown, options), *found.notes]
    return ImportReport(counts, tuple(notes), name=folder.name)


def _recalls(source: Path, bad: BadRecords) -> Iterator[Recall]:
    complaints = Complaints()
    for line, row in read_objects(source, complaints):
        recall = _recall(line, row)
        if isinstance(recall, str):
            complaints.fault(source.name, line, recall)
        else:
            yield recall
    for fault in sorted(complaints.faults, key=lambda fault: fault.line or 0):
        if fault.line is None:
            raise DatasetError(f"{source}: {fault.message}")
        bad.add(f"{fault.file}:{fault.line}", fault.message)


def _recall(line: int, row: dict[str, Any]) -> Recall | str:
    """Read one record; what is wrong with it when it cannot be used."""
    at = _moment(row.get("ts"))
    wrong = _wrong_head(row, at) or _wrong_ranked(row.get("ranked"))
    if wrong or at is None:
        return wrong or "has no ts"
    ranked = tuple((e["id"], e["reason"], e.get("breakdown")) for e in row["ranked"])
    return Recall(line, row["queryDigest"], at, row.get("agentId"), ranked, row)


def _wrong_head(row: dict[str, Any], at: int | None) -> str | None:
    version = row.get("schemaVersion", row.get("version", 1))
    digest, agent_id = row.get("queryDigest"), row.get("agentId")
    if row.get("schema", SCHEMA) != SCHEMA or version != 1:
        return f"schema is {shown(row.get('schema'))} {shown(version)}; this reads {SCHEMA} 1"
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        return f"queryDigest is {shown(digest)}; it must be 64 hex digits"
    if at is None:
        return f"ts is {shown(row.get('ts'))}; it must be milliseconds since 1970 or ISO 8601"
    try:
        if agent_id is not None:
            identifier(agent_id)
    except UnusableError as error:
        return f"agentId{error.args[0]}"
    return None


def _wrong_ranked(given: object) -> str | None:
    if not isinstance(given, list):
        return f"ranked is {shown(given)}; it must be a list"
    for place, entry in enumerate(given):
        wrong = _wrong_entry(entry)
        if wrong:
            return f"ranked[{place}]{wrong}"
    if len({entry["id"] for entry in given}) < len(given):
        return "ranked names a memory twice"
    return None


def _wrong_entry(entry: object) -> str | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not entry["id"]:
        return f" is {shown(entry)}; it must be an object with an id"
    if entry.get("reason") not in REASONS:
        return f".reason is {shown(entry.get('reason'))}; allowed: {', '.join(REASONS)}"
    breakdown = entry.get("breakdown")
    if breakdown is not None and not isinstance(breakdown, dict):
        return f".breakdown is {shown(breakdown)}; it must be an object"
    for name, value in (breakdown or {}).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            return f".breakdown.{name} is {shown(value)}; it must be a finite number"
    return None


def _moment(value: object) -> int | None:
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            return None
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        value = (aware - _EPOCH) // timedelta(milliseconds=1)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= _MAX_MS else None  # type: ignore[operator,return-value]


def _query_log(path: Path) -> dict[str, str]:
    """Read the texts of a query log by their sha256."""
    complaints = Complaints()
    texts: list[str] = []
    for line in read_lines(path, complaints):
        texts.extend(_texts(path, line.number, line.text, complaints))
    if complaints.faults:
        raise DatasetError(
            f"{path}: {len(complaints.faults)} lines cannot be read, the first: "
            f"{complaints.faults[0]}"
        )
    return {sha256_text(text): text for text in texts}


def _texts(path: Path, number: int, line: str, complaints: Complaints) -> Iterator[str]:
    if path.suffix != ".jsonl":
        yield line
        return
    try:
        value = decode_json(line)
    except UnreadableError as error:
        complaints.fault(path.name, number, str(error))
        return
    if isinstance(value, dict):
        value = value.get("text", value.get("query"))
    if isinstance(value, str):
        yield value
    else:
        complaints.fault(path.name, number, "holds no text; write a string, or an object with text")


def _tenants(path: Path) -> dict[str, str]:
    """Tenant of each memory that was written."""
    with path.open(encoding="utf-8") as file:
        rows = map(json.loads, file)
        return {row["id"]: row.get("tenantId") or "default" for row in rows}


def _usefulness(
    folder: Path, options: TraceOptions, known: Mapping[str, str]
) -> dict[str, Usefulness]:
    """Read the counts that were given; a CSV takes the place of the database's."""
    if options.usefulness is not None:
        given = _checked_usefulness(options.usefulness)
        mine = {_known(key, options): value for key, value in given.items()}
        kept = {key: value for key, value in mine.items() if key in known}
        write_usefulness(folder / USEFULNESS, kept)
        return kept
    path = folder / USEFULNESS
    return _checked_usefulness(path) if path.exists() else {}


def _checked_usefulness(path: Path) -> dict[str, Usefulness]:
    complaints = Complaints()
    if not path.exists():
        raise DatasetError(f"{path}: no such file")
    rows = read_usefulness_file(path, complaints)
    if complaints.faults:
        raise DatasetError(
            f"{path}: {len(complaints.faults)} lines cannot be used, the first: "
            f"{complaints.faults[0]}"
        )
    return dict(rows.records)


def _queries(
    recalls: list[Recall],
    texts: Mapping[str, str],
    tenants: Mapping[str, str],
    options: TraceOptions,
) -> dict[int, dict[str, Any]]:
    """The recalls whose text is known, as lines of queries.jsonl, by line of the trace."""
    redactor = options.comis.redactor
    queries: dict[int, dict[str, Any]] = {}
    for recall in recalls:
        text = texts.get(recall.digest)
        if text is None:
            continue
        whose = Counter(
            tenants[_known(memory_id, options)]
            for memory_id, _, _ in recall.ranked
            if _known(memory_id, options) in tenants
        )
        row = {
            "id": f"r{recall.line}",
            "text": text,
            "now": recall.at,
            "category": "recorded",
            "group": f"sha256-{recall.digest[:16]}",
            "tenancy": {
                "tenantId": next(iter(whose)) if len(whose) == 1 else "default",
                "agentId": recall.agent_id or "default",
            },
        }
        queries[recall.line] = row if redactor is None else redactor.query(row)[0]
    return queries


def _known(memory_id: str, options: TraceOptions) -> str:
    """A memory's id as it stands in the dataset."""
    redactor = options.comis.redactor
    return memory_id if redactor is None else redactor.identifier(memory_id)[0]


def _write_surfaced(
    path: Path,
    recalls: list[Recall],
    queries: Mapping[int, dict[str, Any]],
    tenants: Mapping[str, str],
    options: TraceOptions,
) -> set[str]:
    """Write what was recorded, whole; return the ids that are no memory of the dataset."""
    unknown: set[str] = set()
    redactor = options.comis.redactor
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for recall in recalls:
            named = {memory_id: _known(memory_id, options) for memory_id, _, _ in recall.ranked}
            unknown |= {name for name in named.values() if name not in tenants}
            row = recall.record if redactor is None else redactor.query(recall.record)[0]
            if redactor is not None:  # a digest of a short secret can be found by trying
                row["queryDigest"] = redactor.placeholder("digest", recall.digest)
            query = queries.get(recall.line)
            row = {"query": None if query is None else query["id"], **row}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return unknown


def _asides(
    recalls: list[Recall],
    queries: Mapping[int, dict[str, Any]],
    unknown: set[str],
    options: TraceOptions,
) -> Iterator[Note]:
    untold = len(recalls) - len(queries)
    if untold:
        what = f"{untold} recalls are of texts that no query log has"
        done = "in surfaced.jsonl alone" + ("" if options.query_log else "; name a --query-log")
        yield Note("recalls", what, done)
    if unknown:
        some = ", ".join(map(shown, sorted(unknown)[:3]))
        what = f"{len(unknown)} memories that were surfaced are not in the dataset ({some})"
        yield Note("recalls", what, "in surfaced.jsonl alone")
