"""What BEIR and TREC share: documents, queries and judgments, each in a file of its own.

Rules, where a collection does not say what a dataset must:

- a document becomes a memory of trust ``learned``; one without text is left out;
- a document without a time was written at 2000-01-01 UTC, all at once, so that recency tells
  nothing apart; a query without one is asked a day after the newest document;
- grade -1 (in the pool, not judged) is no judgment, grade -2 (junk) is 0; grades above 3 stop
  the import unless the caller says what they become;
- a query that was judged without anything relevant is unanswerable; one that nobody judged,
  or whose relevant documents are all gone, cannot be judged and is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.importers.base import BadRecords, Count, Note
from comis_eval.datasets.importers.folder import FolderWriter, some_of
from comis_eval.errors import DatasetError
from comis_eval.types import TrustLevel

WRITTEN_AT = 946_684_800_000
"""2000-01-01 UTC, ms: createdAt of documents without a time."""
DAY_MS = 86_400_000
MAX_GRADE = 3

_GRADE = re.compile(r"[+-]?[0-9]{1,9}")
_UNJUDGED, _JUNK = -1, -2


class Record(NamedTuple):
    """A document or query as the object of its line; None and why when it is malformed."""

    where: str
    row: dict[str, Any] | None
    why: str = ""


class Judged(NamedTuple):
    """One judgment; ``why`` when it is malformed. ``part`` is the file's split, if it has one."""

    where: str
    query_id: str = ""
    document_id: str = ""
    grade: str = ""
    part: str = ""
    why: str = ""


def joined(title: str | None, text: str | None) -> str:
    """The content of a document: its title, a line feed, its text.

    A title that the text begins with is not told twice; of one alone it is that one, as it
    stands.
    """
    if not (title or "").strip():
        return text or ""
    if not (text or "").strip():
        return title or ""
    opening, words = str(text).split(), str(title).split()
    return str(text) if opening[: len(words)] == words else f"{title}\n{text}"


def unread(path: Path, complaints: Complaints) -> Iterator[tuple[str, str]]:
    """The place of each line that could not be read, and why.

    Raises:
        DatasetError: If it is the file that cannot be read.
    """
    for fault in complaints.faults:
        if fault.line is None:
            raise DatasetError(f"{path}: {fault.message}")
        yield f"{path.name}:{fault.line}", fault.message


class _Grade(NamedTuple):
    """A judgment that can be read."""

    where: str
    query_id: str
    document_id: str
    grade: int
    part: str


class CollectionWriter:
    """Joins a collection's records and writes them as those of a dataset.

    Args:
        writer: Takes the lines.
        files: Of the documents, the queries and the judgments, for messages.
        grades: What grades of the source become, before any rule.
        max_bad: Share of malformed records, of each kind, that is still imported.
        hint: What to try when judgments name queries that are not there.
    """

    def __init__(
        self,
        writer: FolderWriter,
        files: tuple[Path, Path, Path],
        *,
        grades: Mapping[int, int],
        max_bad: float,
        hint: str = "",
    ) -> None:
        self.writer = writer
        self.counts: dict[str, Count] = {}
        self.notes: list[Note] = []
        self.groups: dict[str, set[str]] = {}
        """Groups of queries by the split of the file that judges them; "" where none does."""
        self.newest = WRITTEN_AT
        self._bad = [BadRecords(file, max_bad) for file in files]
        self._grades = grades
        self._hint = hint
        self._blank: list[str] = []

    def write(
        self, documents: Iterable[Record], queries: Iterable[Record], judgments: Iterable[Judged]
    ) -> None:
        """Read each kind once, in one pass, and write it.

        Raises:
            DatasetError: If too many are malformed, a grade is above 3, or nothing is left.
        """
        bad_judgments = self._bad[2]
        found, graded = self._read(judgments)
        self._write_documents(documents)
        asked = self._known(queries)
        ids = {record.row["id"] for record in asked if record.row}
        kept = {
            (each.query_id, each.document_id): each for each in graded if self._joins(each, ids)
        }
        bad_judgments.check(found)
        self._write_queries(asked, graded, kept)
        written = 0
        for (query_id, document_id), each in kept.items():
            if query_id in self.writer.query_ids:
                self.writer.judgment(query_id, document_id, each.grade)
                written += 1
        if not self.writer.query_ids:
            raise DatasetError(
                f"{self._bad[1].source}: no query is left that somebody judged; nothing was "
                f"imported{self._hint}"
            )
        self.counts["judgments"] = Count(found, written)
        self.notes = [*(note for bad in self._bad for note in bad.notes), *self.notes]

    def _read(self, judgments: Iterable[Judged]) -> tuple[int, list[_Grade]]:
        """Turn grades into numbers by the rules; a pair that is judged twice is malformed."""
        bad = self._bad[2]
        found = 0
        graded: dict[tuple[str, str], _Grade] = {}
        high: dict[int, str] = {}
        ruled: Counter[str] = Counter()
        for each in judgments:
            found += 1
            grade = int(each.grade) if _GRADE.fullmatch(each.grade) else None
            pair = f"query {shown(each.query_id)}, document {shown(each.document_id)}"
            if each.why:
                bad.add(each.where, each.why)
            elif grade is None:
                what = f"{pair}: grade is {shown(each.grade)}; it must be a whole number"
                bad.add(each.where, what)
            elif (each.query_id, each.document_id) in graded:
                first = graded[each.query_id, each.document_id].where
                bad.add(each.where, f"{pair}: already judged at {first}")
            else:
                mapped = self._mapped(grade, ruled)
                if mapped is None:
                    continue
                if mapped < 0:
                    bad.add(each.where, f"{pair}: grade is {grade}; there is -2, -1, or 0 to 3")
                    continue
                if mapped > MAX_GRADE:
                    high.setdefault(grade, each.where)
                graded[each.query_id, each.document_id] = _Grade(
                    each.where, each.query_id, each.document_id, mapped, each.part
                )
        if high:
            told = ", ".join(f"{grade} ({where})" for grade, where in sorted(high.items()))
            options = " ".join(f"--grade {grade}={MAX_GRADE}" for grade in sorted(high))
            raise DatasetError(
                f"{bad.source}: grades beyond {MAX_GRADE}: {told}; say what they become, such as "
                f"{options}"
            )
        where = bad.source.name
        self.notes += [Note(where, f"{ruled[done]} judgments", done) for done in ruled]
        return found, list(graded.values())

    def _mapped(self, grade: int, ruled: Counter[str]) -> int | None:
        """A grade by the caller's table, else by the rules; None: no judgment."""
        if grade in self._grades:
            ruled[f"grade {grade} read as {self._grades[grade]}, as asked"] += 1
            return self._grades[grade]
        if grade == _UNJUDGED:
            ruled[f"dropped: grade {_UNJUDGED} says that nobody judged them"] += 1
            return None
        if grade == _JUNK:
            ruled[f"grade {_JUNK} (junk) read as 0"] += 1
            return 0
        return grade

    def _write_documents(self, documents: Iterable[Record]) -> None:
        bad = self._bad[0]
        found = kept = undated = 0
        for record in documents:
            found += 1
            if record.row is None:
                bad.add(record.where, record.why)
                continue
            row = record.row
            if isinstance(row["content"], str) and not row["content"].strip():
                self._blank.append(str(row["id"]))
                continue
            dated = row.get("createdAt") is not None
            row = {"trustLevel": str(TrustLevel.LEARNED), "createdAt": WRITTEN_AT, **row}
            why = self.writer.memory(row)
            if why is None:
                kept += 1
                undated += not dated
                self.newest = max(self.newest, int(row["createdAt"]))
            else:
                bad.add(record.where, why)
        bad.check(found)
        if not kept:
            raise DatasetError(f"{bad.source}: holds no document that can be used")
        self.counts["memories"] = Count(found, kept)
        where = bad.source.name
        if self._blank:
            what = f"{len(self._blank)} documents have no text ({some_of(self._blank)})"
            self.notes.append(Note(where, what, "dropped: a memory says something"))
        if undated:
            done = "createdAt is 2000-01-01 UTC for all: recency tells them not apart"
            self.notes.append(Note(where, f"{undated} documents have no time", done))

    def _known(self, queries: Iterable[Record]) -> list[Record]:
        """The queries with an id; a repeated one is malformed."""
        bad = self._bad[1]
        known: dict[object, Record] = {}
        found = 0
        for record in queries:
            found += 1
            if record.row is None:
                bad.add(record.where, record.why)
            elif record.row["id"] in known:
                first = known[record.row["id"]].where
                bad.add(record.where, f"id {shown(record.row['id'])} already stands at {first}")
            else:
                known[record.row["id"]] = record
        bad.check(found)  # here, so that it is told before the judgments of what is missing
        self.counts["queries"] = Count(found, 0)
        return list(known.values())

    def _joins(self, each: _Grade, asked: set[object]) -> bool:
        """Whether a judgment's query and document are there; otherwise it is noted."""
        if each.query_id not in asked:
            what = f"judges query {shown(each.query_id)}, which is not there{self._hint}"
            self._bad[2].add(each.where, what)
            return False
        if each.document_id in self._blank_ids:
            what = f"judges document {shown(each.document_id)}, which has no text"
            self.notes.append(Note(each.where, what, "dropped: so was the document"))
            return False
        if each.document_id not in self.writer.memory_ids:
            what = f"judges document {shown(each.document_id)}, which is not there"
            self._bad[2].add(each.where, what)
            return False
        return True

    def _write_queries(
        self,
        asked: list[Record],
        graded: list[_Grade],
        kept: Mapping[tuple[str, str], _Grade],
    ) -> None:
        """Write the queries that can be judged, each as answerable or not."""
        bad = self._bad[1]
        relevant = {query_id for (query_id, _), each in kept.items() if each.grade > 0}
        was_relevant = {each.query_id for each in graded if each.grade > 0}
        part_of: dict[str, str] = {}
        for each in graded:
            part = part_of.setdefault(each.query_id, each.part)
            if part != each.part:
                raise DatasetError(
                    f"{each.where}: query {shown(each.query_id)} is judged in {part} too; "
                    "import one of them with --split"
                )
        unjudged: list[str] = []
        irrelevant = 0
        undated = 0
        for where, row, _ in asked:
            if row is None:
                continue
            own = row["id"]
            answerable = own in relevant
            if not answerable and own in was_relevant:
                what = f"none of the documents relevant to query {shown(own)} is there"
                self.notes.append(Note(where, what, "query dropped: it cannot be judged"))
                continue
            if own not in part_of and row.get("answerable") is not False:
                unjudged.append(str(own))
                continue
            irrelevant += not answerable and row.get("answerable") is not False
            undated += row.get("now") is None
            why = self.writer.query({"now": self.newest + DAY_MS, **row, "answerable": answerable})
            if why is not None:
                bad.add(where, why)
            else:
                group = str(row.get("group", own))
                self.groups.setdefault(part_of.get(own, ""), set()).add(group)
        found = self.counts["queries"].found
        bad.check(found)
        self.counts["queries"] = Count(found, len(self.writer.query_ids))
        file = bad.source.name
        if unjudged:
            what = f"{len(unjudged)} queries were judged by nobody ({some_of(unjudged)})"
            self.notes.append(Note(file, what, "dropped: they cannot be judged"))
        if irrelevant:
            what = f"{irrelevant} queries were judged, and nothing is relevant to them"
            self.notes.append(Note(file, what, "answerable: false"))
        if undated:
            done = "asked a day after the newest document"
            self.notes.append(Note(file, f"{undated} queries have no time", done))

    @cached_property
    def _blank_ids(self) -> frozenset[str]:
        return frozenset(self._blank)
