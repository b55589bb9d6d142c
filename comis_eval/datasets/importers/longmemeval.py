"""LongMemEval: questions, each with a haystack of dated chat sessions between user and assistant.

The file is read question by question; only the questions' groups wait for its end. Every
question has a haystack of its own and is a tenant of its own, so that no question sees
another's sessions. Decisions where the source is silent:

- a document is a session (``session``) or a turn (``turn``), both speakers in it; turns
  without text are left out;
- times have no zone and are read as UTC; a date without a time is 00:00 of a session and
  23:59 of a question, so that it is asked after the sessions of its day; turn i of a session
  (from 0) is written i seconds after it; a session's memory is written when the session
  began; ``now`` is the question's;
- evidence is binary (grade 1): sessions that ``answer_session_ids`` names, or turns with
  ``has_answer``; evidence that is not in the haystack is dropped and noted;
- a question whose id ends in ``_abs`` is unanswerable; its evidence is about something else
  that was asked for, and is left out;
- any other question without usable evidence is dropped, with its haystack, and noted: at
  turn level these are the questions whose evidence has no marked turn;
- questions that share an evidence session, and a question and its ``_abs`` twin, share a group;
- a session id that stands twice in a haystack is kept twice, the second as ``ID#2``.

Source:
    Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory",
    ICLR 2025.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.importers.base import (
    MAX_BAD,
    BadRecords,
    Count,
    ImportReport,
    Note,
    Tell,
    name_of,
)
from comis_eval.datasets.importers.folder import FolderWriter
from comis_eval.datasets.importers.json_array import Element, read_array
from comis_eval.datasets.importers.longmemeval_rows import (
    ABSTAIN,
    MalformedError,
    Question,
    read_question,
)
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.write import new_folder, write_header
from comis_eval.errors import DatasetError
from comis_eval.types import MemoryType, TrustLevel

UNITS = ("session", "turn")
"""What becomes a memory."""
_SECOND_MS = 1000


class LongMemEvalOptions(NamedTuple):
    """What is taken, and how.

    Attributes:
        unit: Of UNITS.
        redactor: Replaces secrets.
        max_bad: Share of malformed questions that is still imported.
        tell: Told of progress.
    """

    unit: str = UNITS[0]
    redactor: Redactor | None = None
    max_bad: float = MAX_BAD
    tell: Tell | None = None


def import_longmemeval(source: Path, folder: Path, options: LongMemEvalOptions) -> ImportReport:
    """Turn a LongMemEval file (oracle, S or M) into a dataset folder.

    Args:
        source: The JSON file; it is only read.
        folder: Where to; it must not exist, or be empty.
        options: What is taken.

    Raises:
        DatasetError: If the file is no JSON list, or too many questions are malformed; then
            nothing is written.
    """
    with new_folder(folder) as part:
        with FolderWriter(part, options.redactor) as writer:
            taken = _Import(source, writer, options)
            size = source.stat().st_size if source.is_file() else 0
            for element in read_array(source):
                taken.take(element)
                if options.tell is not None:
                    options.tell("questions", element.done, size)
            taken.finish()
        write_header(
            {
                "name": name_of(folder, "longmemeval"),
                "description": f"imported from {source.name}; a memory is a {options.unit}, every "
                "question is a tenant of its own; times are read as UTC",
                "licence": "MIT, says the source's page; the sessions are by language models",
                "judgedBy": "people, who wrote or checked the questions and their evidence",
            },
            part / HEADER,
        )
    return ImportReport(taken.counts, tuple(taken.notes), name=name_of(folder, "longmemeval"))


class _Import:
    """What was taken so far."""

    def __init__(self, source: Path, writer: FolderWriter, options: LongMemEvalOptions) -> None:
        self.notes: list[Note] = []
        self._writer = writer
        self._by_turn = options.unit == "turn"
        self._redacted = options.redactor is not None
        self._source = source
        self._bad = BadRecords(source, options.max_bad)
        self._found: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._rows: list[tuple[dict[str, Any], list[str]]] = []
        self._sums: Counter[tuple[str, str]] = Counter()
        self._ids: set[str] = set()

    @property
    def counts(self) -> dict[str, Count]:
        """How many came in and went out."""
        return {
            kind: Count(self._found[kind], self._kept[kind])
            for kind in ("memories", "queries", "judgments")
        }

    def take(self, element: Element) -> None:
        """Write the memories of one member of the list; its query waits for its group."""
        self._found["queries"] += 1
        where = f"[{element.place}] (line {element.line})"
        try:
            if element.value is None:
                raise MalformedError(element.why)
            question = read_question(element.value)
            if question.id in self._ids:
                raise MalformedError(f"question_id {shown(question.id)} already stands before it")
        except MalformedError as error:
            self._bad.add(where, str(error))
            return
        self._ids.add(question.id)
        memories, relevant = self._memories(question)
        self._found["memories"] += len(memories)
        relevant = self._evidence(question, relevant)
        if question.answerable and not relevant:
            what = f"no {'marked turn' if self._by_turn else 'evidence session'} is in its haystack"
            done = "question dropped with its haystack: it cannot be judged"
            self.notes.append(Note(question.id, what, done))
            return
        for row in memories:
            why = self._writer.memory(row)
            if why is not None:
                raise DatasetError(f"{self._source}{where}: {row['id']}: {why}")
        self._kept["memories"] += len(memories)
        late = sum(session.at > question.now for session in question.sessions)
        self._sums["sessions are dated after their question", "kept"] += late
        self._sums["dates have another day of the week", "the date counts"] += question.odd_days
        query = {
            "id": question.id,
            "text": question.text,
            "now": question.now,
            "category": question.category,
            "tenancy": {"tenantId": question.id},
            "answerable": question.answerable,
        }
        self._rows.append((query, question.evidence_ids))
        for memory_id in relevant:
            self._writer.judgment(question.id, memory_id, 1)
            self._kept["judgments"] += 1

    def finish(self) -> None:
        """Write the queries.

        Raises:
            DatasetError: If too many were malformed, or none is left.
        """
        self._bad.check(self._found["queries"])
        if not self._rows:
            raise DatasetError(f"{self._source}: holds no question that can be used")
        for group, (query, _) in zip(_groups(self._rows), self._rows, strict=True):
            why = self._writer.query(query | {"group": group})
            if why is not None:
                raise DatasetError(f"{self._source}: question {shown(query['id'])}: {why}")
            self._kept["queries"] += 1
        sums = [(what, done, n) for (what, done), n in self._sums.items() if n]
        self.notes = [*self._bad.notes, *self.notes]
        self.notes += [Note(self._source.name, f"{n} {what}", done) for what, done, n in sums]
        if self._redacted:
            what = f"{self._writer.replaced} secrets found by pattern"
            self.notes.append(Note(self._source.name, what, "replaced by placeholders"))

    def _memories(self, question: Question) -> tuple[list[dict[str, Any]], list[str]]:
        """The rows of a haystack, and the ids of those marked as evidence."""
        rows: list[dict[str, Any]] = []
        relevant: list[str] = []
        for session in question.sessions:
            if session.id != session.stated_id:
                what = f"session {shown(session.stated_id)} stands twice in the haystack"
                self.notes.append(Note(question.id, what, f"kept as {shown(session.id)}"))
            told = [turn for turn in session.turns if turn.content.strip()]
            self._sums["turns without text", "left out"] += len(session.turns) - len(told)
            base = {
                "trustLevel": str(TrustLevel.LEARNED),
                "tenantId": question.id,
                "memoryType": str(MemoryType.EPISODIC),
            }
            memory_id = f"{question.id}:{session.id}"
            source = {"sessionKey": session.id}
            if self._by_turn:
                for place, turn in enumerate(session.turns):
                    if not turn.content.strip():
                        continue
                    row = {
                        "id": f"{memory_id}:{place}",
                        "content": f"{turn.role}: {turn.content}",
                        "source": {"who": turn.role, **source},
                        "createdAt": session.at + place * _SECOND_MS,
                    }
                    rows.append(base | row)
                    if turn.evidence:
                        relevant.append(str(row["id"]))
            elif told:
                content = "\n".join(f"{turn.role}: {turn.content}" for turn in told)
                row = {"id": memory_id, "content": content, "source": source}
                rows.append(base | row | {"createdAt": session.at})
                if session.stated_id in question.evidence_ids:
                    relevant.append(memory_id)
            else:
                self._sums["sessions without text", "left out"] += 1
        return rows, relevant

    def _evidence(self, question: Question, relevant: list[str]) -> list[str]:
        """The evidence that counts; what is lost of it is noted."""
        there = {session.stated_id for session in question.sessions}
        gone = [own for own in question.evidence_ids if own not in there]
        if not self._by_turn:
            self._found["judgments"] += len(gone)
        self._found["judgments"] += len(relevant)
        if gone:
            what = f"evidence {', '.join(map(shown, gone))} is not in the haystack"
            self.notes.append(Note(question.id, what, "evidence dropped"))
        if not question.answerable:
            what = f"pieces of evidence of {ABSTAIN} questions"
            self._sums[what, "left out: nothing answers them"] += len(relevant)
            return []
        return relevant


def _groups(rows: list[tuple[dict[str, Any], list[str]]]) -> Iterator[str]:
    """The group of each question: the id of the first that it is tied to."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    keys = [
        [f"q {query['id'].removesuffix(ABSTAIN)}", *(f"s {own}" for own in evidence)]
        for query, evidence in rows
    ]
    for first, *others in keys:
        for other in others:
            parent[root(other)] = root(first)
    named: dict[str, str] = {}
    for (query, _), (first, *_rest) in zip(rows, keys, strict=True):
        yield named.setdefault(root(first), query["id"])
