"""A log of queries, read strictly and a line at a time."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.checks import SECONDS_UNTIL
from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.fields import (
    Field,
    Fields,
    UnusableError,
    identifier,
    read_fields,
    text,
    time,
)
from comis_eval.datasets.lines import read_lines, read_objects
from comis_eval.datasets.records import QUERY
from comis_eval.errors import DatasetError
from comis_eval.types import Tenancy, Turn

_KEYS_NAMED = 20


class Asked(NamedTuple):
    """One line of a log.

    Attributes:
        text: What was asked; not blank.
        turns: What was said before, oldest first.
        tenancy: Who asked.
        at: When, ms; None: the log does not say.
    """

    text: str
    turns: tuple[Turn, ...]
    tenancy: Tenancy
    at: int | None


def read_log(
    path: Path,
    complaints: Complaints,
    ignored: set[str] | None = None,
    *,
    only: Container[int] | None = None,
) -> Iterator[tuple[int, Asked]]:
    """Yield (line number, query) for each line that can be used; the others become faults.

    A ``.txt`` holds a query a line. A ``.jsonl`` holds objects with ``text`` or ``query``, and
    perhaps ``ts`` (ms, or ISO 8601 with a zone), ``tenantId``, ``agentId``, ``turns``.

    Args:
        path: The log.
        complaints: Takes the faults.
        ignored: Takes other keys that are met, which are allowed and not read; the first few.
        only: Numbers of the lines that are wanted; None: all.

    Raises:
        DatasetError: If it is of neither kind.
    """
    if path.suffix == ".txt":
        for line in read_lines(path, complaints):
            if only is None or line.number in only:
                yield line.number, Asked(line.text, (), Tenancy(), None)
    elif path.suffix == ".jsonl":
        for number, row in read_objects(path, complaints, only=only):
            asked = _asked(path.name, number, row, complaints)
            if ignored is not None and len(ignored) < _KEYS_NAMED:
                ignored |= row.keys() - _LINE.keys()
            if asked is not None:
                yield number, asked
    else:
        raise DatasetError(
            f"{path}: a query log ends in .jsonl (an object a line) or .txt (a query a line)"
        )


def _asked(file: str, number: int, row: dict[str, object], complaints: Complaints) -> Asked | None:
    values, wrong = read_fields({key: row[key] for key in _LINE if key in row}, _LINE)
    if not wrong and ("text" in values) == ("query" in values):
        there = "both" if "text" in values else "neither"
        wrong.append(f"holds {there} of text and query; it must hold one of them")
    for message in wrong:
        complaints.fault(file, number, message)
    if wrong:
        return None
    tenancy = Tenancy(
        values.get("tenant_id", Tenancy().tenant_id), values.get("agent_id", Tenancy().agent_id)
    )
    asked = values["text"] if "text" in values else values["query"]
    return Asked(asked, values.get("turns", ()), tenancy, values.get("at"))


def _moment(value: object) -> int:
    if not isinstance(value, str):
        if 0 < time(value) < SECONDS_UNTIL:
            raise UnusableError(f" is {value}, in 1970: times are milliseconds, not seconds")
        return time(value)
    try:
        at = datetime.fromisoformat(value)
    except ValueError as error:
        raise UnusableError(f" is {shown(value)}; it must be ms or ISO 8601") from error
    if at.tzinfo is None:
        raise UnusableError(f" is {shown(value)}, which names no time zone; add Z or an offset")
    return round(at.timestamp() * 1000)


_LINE: Fields = {
    "text": Field("text", text),
    "query": Field("query", text),
    "ts": Field("at", _moment),
    "tenantId": Field("tenant_id", identifier),
    "agentId": Field("agent_id", identifier),
    "turns": Field("turns", QUERY["turns"].check),
}
