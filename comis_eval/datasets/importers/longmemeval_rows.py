"""One question of a LongMemEval file, checked; the importer is :mod:`.longmemeval`."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.fields import UnusableError, identifier

ABSTAIN = "_abs"
"""End of the ids of questions that the haystack does not answer."""

_LAST_MINUTE = ("23", "59")
_MOMENT = re.compile(
    r"(?P<year>[0-9]{4})/(?P<month>[0-9]{2})/(?P<day>[0-9]{2})(?: \((?P<weekday>[A-Z][a-z]{2})\))?"
    r"(?: (?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}))?"
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MalformedError(Exception):
    """A question cannot be read; the message says where in it and why."""


class Turn(NamedTuple):
    """One turn of a session, and whether it is marked as evidence."""

    role: str
    content: str
    evidence: bool


class Session(NamedTuple):
    """One session of a haystack, its id unique within it."""

    id: str
    stated_id: str
    at: int
    turns: list[Turn]


class Question(NamedTuple):
    """One member of the list, checked."""

    id: str
    category: str
    text: str
    now: int
    sessions: list[Session]
    evidence_ids: list[str]
    odd_days: int

    @property
    def answerable(self) -> bool:
        """Whether the haystack has the answer, as the id says."""
        return not self.id.endswith(ABSTAIN)


def read_question(value: dict[str, object]) -> Question:
    """Check one member of the list.

    Raises:
        MalformedError: If anything in it is not as the format has it.
    """
    own = _id(value, "question_id")
    category = _text(value, "question_type")
    if category == "all":
        raise MalformedError("question_type 'all' is taken: it names the headline mean")
    ids = _list(value, "haystack_session_ids")
    dates = _list(value, "haystack_dates")
    sessions = _list(value, "haystack_sessions")
    if not len(ids) == len(dates) == len(sessions):
        raise MalformedError(
            f"haystack_session_ids, haystack_dates and haystack_sessions have {len(ids)}, "
            f"{len(dates)} and {len(sessions)} members; they must be as many"
        )
    seen: Counter[str] = Counter()
    checked: list[Session] = []
    for place, (stated, date, turns) in enumerate(zip(ids, dates, sessions, strict=True)):
        session_id = _checked_id(stated, f"haystack_session_ids[{place}]")
        seen[session_id] += 1
        unique = session_id if seen[session_id] == 1 else f"{session_id}#{seen[session_id]}"
        at = _moment(date, f"haystack_dates[{place}]")
        told = _turns(turns, f"haystack_sessions[{place}]")
        checked.append(Session(unique, session_id, at, told))
    if len({session.id for session in checked}) < len(checked):
        raise MalformedError("haystack_session_ids repeats an id that ends in #2")
    unstated = own.endswith(ABSTAIN) and "answer_session_ids" not in value
    evidence = [
        _checked_id(member, f"answer_session_ids[{place}]")
        for place, member in enumerate([] if unstated else _list(value, "answer_session_ids"))
    ]
    asked = value.get("question_date")
    return Question(
        id=own,
        category=category,
        text=_text(value, "question"),
        now=_moment(asked, "question_date", otherwise=_LAST_MINUTE),
        sessions=checked,
        evidence_ids=list(dict.fromkeys(evidence)),
        odd_days=sum(map(_is_odd, [asked, *dates])),
    )


def _turns(value: object, where: str) -> list[Turn]:
    if not isinstance(value, list):
        raise MalformedError(f"{where} is {shown(value)}; it must be a list of turns")
    turns: list[Turn] = []
    for place, turn in enumerate(value):
        if not isinstance(turn, dict):
            raise MalformedError(f"{where}[{place}] is {shown(turn)}; it must be an object")
        role, content, marked = (turn.get(key) for key in ("role", "content", "has_answer"))
        if not isinstance(role, str) or not role.strip() or not isinstance(content, str):
            raise MalformedError(f"{where}[{place}] must have role and content, both text")
        if not isinstance(marked, bool | None):
            raise MalformedError(f"{where}[{place}].has_answer is {shown(marked)}; true or false")
        turns.append(Turn(role, content, bool(marked)))
    return turns


def _moment(value: object, where: str, *, otherwise: tuple[str, str] = ("0", "0")) -> int:
    """Read ``2023/05/20 (Sat) 02:21`` as ms since 1970 UTC, whatever day of the week it says.

    Args:
        value: What stands there.
        where: For messages.
        otherwise: Hour and minute of a date without them.
    """
    parts = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise MalformedError(f"{where} is {shown(value)}; it must be like '2023/05/20 (Sat) 02:21'")
    clock = (parts["hour"], parts["minute"]) if parts["hour"] else otherwise
    try:
        year, month, day, hour, minute = map(int, (*parts.group("year", "month", "day"), *clock))
        moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError as error:
        raise MalformedError(f"{where} is {shown(value)}: {error}") from error
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _is_odd(value: object) -> bool:
    """Whether a date that can be read names a day of the week that is not its own."""
    parts = _MOMENT.fullmatch(str(value))
    if parts is None or parts["weekday"] is None:
        return False
    date = datetime(int(parts["year"]), int(parts["month"]), int(parts["day"]), tzinfo=UTC)
    return _DAYS[date.weekday()] != parts["weekday"]


def _list(value: dict[str, object], key: str) -> list[object]:
    found = value.get(key)
    if not isinstance(found, list):
        raise MalformedError(f"{key} is {shown(found)}; it must be a list")
    return found


def _text(value: dict[str, object], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not found.strip():
        raise MalformedError(f"{key} is {shown(found)}; it must be text")
    return found


def _id(value: dict[str, object], key: str) -> str:
    return _checked_id(value.get(key), key)


def _checked_id(value: object, where: str) -> str:
    try:
        return identifier(value)
    except UnusableError as error:
        raise MalformedError(f"{where}{error.args[0]}") from error
