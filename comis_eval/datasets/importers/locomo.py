"""LoCoMo: very long conversations between two people, questions, and evidence by turn.

Every turn becomes a memory, every question with evidence a query. A conversation is a
tenant of its own, so that no question sees another conversation. Decisions where the
source is silent:

- a session has one time and no zone: it is read as UTC, and turn i of the session (from
  0) is written i seconds after it; nothing is known about when things happened, so there
  is no ``occurredAt``;
- a question is asked one day after the start of its conversation's last session with turns;
- evidence is binary (grade 1). An id that is malformed but names turns that exist is mended,
  anything else is dropped, and both are noted;
- a question without usable evidence is neither answerable nor known to be unanswerable:
  it is dropped and noted;
- adversarial questions have evidence (the turn they twist) and stay, in a category outside
  the headline;
- equal questions of one conversation (case and white space aside) share a group;
- image captions and answers are left out: what is recalled is what was said.

Source:
    Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents",
    ACL 2024; data/locomo10.json of snap-research/LoCoMo (CC BY-NC 4.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.faults import shown
from comis_eval.datasets.fields import UnusableError, identifier
from comis_eval.datasets.importers.base import Count, ImportReport, Note
from comis_eval.datasets.judgments import Judgments
from comis_eval.datasets.lines import UnreadableError, decode_json
from comis_eval.errors import DatasetError
from comis_eval.files import open_regular
from comis_eval.text import printable
from comis_eval.types import Memory, MemoryType, Query, Source, Tenancy, TrustLevel

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""The source's numbers and the names its paper gives them."""

OUTSIDE_HEADLINE = "adversarial"

T = TypeVar("T")

_DAY_MS = 86_400_000
_SECOND_MS = 1000
_SESSION = re.compile(r"session_([0-9]+)")
_SESSION_TIME = re.compile(r"session_([0-9]+)_date_time")
_MOMENT = re.compile(r"([0-9]{1,2}):([0-9]{2}) (am|pm) on ([0-9]{1,2}) ([A-Za-z]+), ([0-9]{4})")
_EVIDENCE = re.compile(r"D:?([0-9]+):([0-9]+)")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


class _Evidence(NamedTuple):
    """The memories a question's evidence names, and how many turns it named in all."""

    memory_ids: list[str]
    named: int


class _Conversation(NamedTuple):
    """What one entry of the source gives."""

    memories: list[Memory]
    queries: list[Query]
    evidence: dict[str, list[str]]
    found: dict[str, int]
    notes: list[Note]


def import_locomo(source: Path) -> tuple[Dataset, ImportReport]:
    """Turn ``locomo10.json``, or a file of its shape, into a dataset.

    Args:
        source: The JSON file.

    Returns:
        The dataset, and what was mended or left out.

    Raises:
        DatasetError: If the file cannot be read or is not of LoCoMo's shape; the message
            names the place in it.
    """
    content, digest = _read(source)
    conversations = [
        _conversation(_expect(entry, dict, f"{source.name}[{number}]"), number)
        for number, entry in enumerate(_expect(content, list, source.name))
    ]
    _check_ids(conversations)
    memories = [memory for c in conversations for memory in c.memories]
    queries = [query for c in conversations for query in c.queries]
    if not memories or not queries:
        raise DatasetError(f"{source}: {len(memories)} turns and {len(queries)} usable questions")
    judgments = _judgments(memories, queries, conversations)
    dataset = Dataset(
        name="locomo",
        version=f"sha256-{digest[:12]}",
        licence="CC BY-NC 4.0 (non-commercial, attribution; Maharana et al., ACL 2024)",
        description="LoCoMo: long conversations of two people, one tenant each; "
        "every turn is a memory, evidence turns are relevant (binary).",
        judged_by="people, by turn; the conversations were written by language models "
        "and edited by people",
        categories={name: name != OUTSIDE_HEADLINE for name in CATEGORIES.values()},
        memories=tuple(memories),
        queries=tuple(queries),
        judgments=judgments,
    )
    kept = {"memories": len(memories), "queries": len(queries), "judgments": len(judgments)}
    counts = {
        kind: Count(sum(c.found[kind] for c in conversations), number)
        for kind, number in kept.items()
    }
    return dataset, ImportReport(counts, tuple(note for c in conversations for note in c.notes))


def _read(source: Path) -> tuple[object, str]:
    try:
        with open_regular(source) as file:
            raw = file.read()
        return decode_json(raw.decode("utf-8")), sha256(raw).hexdigest()
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{source}: not UTF-8 from byte {error.start} on") from error
    except UnreadableError as error:
        raise DatasetError(f"{source}: {error}") from error


def _conversation(entry: dict[str, object], number: int) -> _Conversation:
    sample = _id(entry, "sample_id", f"[{number}]")
    notes: list[Note] = []
    memories, found = _turns(_member(entry, "conversation", dict, sample), sample, notes)
    turns = {memory.id for memory in memories}
    questions = _member(entry, "qa", list, sample)
    now = _last_session(memories) + _DAY_MS
    groups: dict[str, str] = {}
    queries: list[Query] = []
    evidence: dict[str, list[str]] = {}
    for position, item in enumerate(questions):
        where = f"{sample}:q{position}"
        question = _expect(item, dict, where)
        text = _member(question, "question", str, where)
        stated = _member(question, "evidence", list, where)
        relevant = _evidence(stated, sample, where, turns, notes)
        found["judgments"] += relevant.named
        if not relevant.memory_ids:
            what = f"evidence {shown(stated)} names no turn that exists"
            notes.append(Note(where, what, "question dropped: it cannot be judged"))
            continue
        evidence[where] = relevant.memory_ids
        queries.append(
            Query(
                id=where,
                text=text,
                now=now,
                category=_category(question, where),
                group=groups.setdefault(" ".join(text.casefold().split()), where),
                tenancy=Tenancy(tenant_id=sample),
            )
        )
    found["queries"] = len(questions)
    return _Conversation(memories, queries, evidence, found, notes)


def _turns(
    conversation: dict[str, object], sample: str, notes: list[Note]
) -> tuple[list[Memory], dict[str, int]]:
    """Read the turns of every session, in the order of the sessions' numbers."""
    memories: list[Memory] = []
    found = captions = 0
    for session in sorted(_numbers(_SESSION, conversation)):
        where = f"{sample}:session_{session}"
        turns = _member(conversation, f"session_{session}", list, where)
        if not turns:
            continue
        start = _moment(_member(conversation, f"session_{session}_date_time", str, where), where)
        for position, item in enumerate(turns):
            turn = _expect(item, dict, f"{where}[{position}]")
            found += 1
            captions += "blip_caption" in turn
            memory = _memory(turn, sample, session, start + position * _SECOND_MS, where)
            if memory is None:
                notes.append(Note(f"{where}[{position}]", "turn without text", "turn dropped"))
            else:
                memories.append(memory)
    notes += _asides(conversation, sample, captions)
    return memories, {"memories": found, "judgments": 0}


def _memory(
    turn: dict[str, object], sample: str, session: int, created_at: int, where: str
) -> Memory | None:
    speaker = _member(turn, "speaker", str, where)
    text = _member(turn, "text", str, where)
    if not speaker.strip():
        raise DatasetError(f"{printable(where)}.speaker is blank; nobody said {shown(text)}")
    if not text.strip():
        return None
    return Memory(
        id=f"{sample}:{_id(turn, 'dia_id', where)}",
        content=f"{speaker}: {text}",
        trust_level=TrustLevel.LEARNED,
        created_at=created_at,
        tenancy=Tenancy(tenant_id=sample),
        memory_type=MemoryType.EPISODIC,
        source=Source(who=speaker, session_key=f"session_{session}"),
    )


def _asides(conversation: dict[str, object], sample: str, captions: int) -> Iterator[Note]:
    """Note what a whole conversation has that a dataset has no place for."""
    if captions:
        yield Note(sample, f"{captions} turns carry an image caption", "captions left out")
    with_turns = {n for n in _numbers(_SESSION, conversation) if conversation[f"session_{n}"]}
    empty = sorted(set(_numbers(_SESSION_TIME, conversation)) - with_turns)
    if empty:
        numbers = ", ".join(map(str, empty))
        yield Note(sample, f"sessions {numbers} have a time but no turns", "ignored")


def _evidence(
    stated: list[object], sample: str, where: str, turns: set[str], notes: list[Note]
) -> _Evidence:
    """Read a question's evidence; a turn named twice counts once."""
    relevant: list[str] = []
    number = 0
    for entry in stated:
        text = _expect(entry, str, f"{where}.evidence")
        named = [text] if f"{sample}:{text}" in turns else _mended(text)
        number += len(named) or 1
        if named != [text]:
            done = f"read as {', '.join(named)}" if named else "dropped: it names no turn"
            notes.append(Note(where, f"evidence {shown(text)} is not one turn id", done))
        for turn in named:
            memory_id = f"{sample}:{turn}"
            if memory_id not in turns:
                notes.append(Note(where, f"evidence {turn} is no turn of {sample}", "dropped"))
            elif memory_id in relevant:
                notes.append(Note(where, f"evidence {turn} stands twice", "counted once"))
            else:
                relevant.append(memory_id)
    return _Evidence(relevant, number)


def _mended(text: str) -> list[str]:
    """Find the turn ids in a malformed one; none when anything else stands between them.

    Example: ``"D8:6; D:9:07"`` -> ``["D8:6", "D9:7"]``; ``"D"`` -> ``[]``
    """
    if _EVIDENCE.sub("", text).strip(" ,;"):
        return []
    return [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(text)]


def _category(question: dict[str, object], where: str) -> str:
    number = _member(question, "category", int, where)
    if number not in CATEGORIES:
        known = ", ".join(f"{key} {name}" for key, name in CATEGORIES.items())
        raise DatasetError(f"{printable(where)}.category is {number}; known: {known}")
    return CATEGORIES[number]


def _moment(text: str, where: str) -> int:
    """Read a session's time, such as ``1:56 pm on 8 May, 2023``, as ms since 1970 UTC."""
    parts = _MOMENT.fullmatch(text.strip())
    try:
        if parts is None:
            raise ValueError("it does not look like '1:56 pm on 8 May, 2023'")
        hour, minute, half, day, month, year = parts.groups()
        if not 1 <= int(hour) <= 12:
            raise ValueError("the hour must be 1 to 12")
        moment = datetime(
            int(year),
            _MONTHS.index(month.lower()) + 1,
            int(day),
            int(hour) % 12 + 12 * (half == "pm"),
            int(minute),
            tzinfo=UTC,
        )
    except ValueError as error:
        raise DatasetError(
            f"{printable(where)}: time {shown(text)} cannot be read: {error}"
        ) from error
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _last_session(memories: list[Memory]) -> int:
    """Return the start of the latest session, ms; 0 when nothing was said."""
    starts: dict[str | None, int] = {}
    for memory in memories:
        starts.setdefault(memory.source.session_key, memory.created_at)
    return max(starts.values(), default=0)


def _judgments(
    memories: list[Memory], queries: list[Query], conversations: list[_Conversation]
) -> Judgments:
    row_of = {memory.id: row for row, memory in enumerate(memories)}
    relevant = {query: ids for c in conversations for query, ids in c.evidence.items()}
    return Judgments.of(
        (
            (position, row_of[memory_id], 1)
            for position, query in enumerate(queries)
            for memory_id in relevant[query.id]
        ),
        n_queries=len(queries),
    )


def _check_ids(conversations: list[_Conversation]) -> None:
    """Refuse a turn id that stands twice: evidence would then name two turns."""
    seen: set[str] = set()
    for conversation in conversations:
        for memory in conversation.memories:
            if memory.id in seen:
                raise DatasetError(f"turn {shown(memory.id)} stands twice; ids must be unique")
            seen.add(memory.id)


def _numbers(pattern: re.Pattern[str], conversation: dict[str, object]) -> list[int]:
    return [int(found[1]) for key in conversation if (found := pattern.fullmatch(key))]


def _id(mapping: dict[str, object], key: str, where: str) -> str:
    value = _member(mapping, key, str, where)
    try:
        return identifier(value)
    except UnusableError as error:
        raise DatasetError(f"{printable(where)}.{key}{error.args[0]}") from error


def _member(mapping: dict[str, object], key: str, kind: type[T], where: str) -> T:
    if key not in mapping:
        raise DatasetError(f"{printable(where)} has no {key!r}; is this a LoCoMo file?")
    return _expect(mapping[key], kind, f"{where}.{key}")


def _expect(value: object, kind: type[T], where: str) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DatasetError(
            f"{printable(where)} is {shown(value)}; a LoCoMo file has a {kind.__name__} there"
        )
    return value
