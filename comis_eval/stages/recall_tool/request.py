"""One call of the recall tool: its arguments checked, and every default filled in.

The order in which silence is filled: the caller's word, the profile's, the default. ``null``
is silence. Nothing is clamped: what lies outside is refused, all of it at once.
Source: specification of the recall tool, sections 0 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from math import ceil, floor
from typing import Any

from comis_eval.config import MAX_LIMIT, ORDERS, RecallToolConfig, shown
from comis_eval.errors import RequestError
from comis_eval.stages.recall_tool.order_by import canonical, decays
from comis_eval.stages.recall_tool.profile import PROFILES, classify, first_said, preset
from comis_eval.text import close_matches, printable

SCOPES = ("workspace", "project", "agent", "all")
COMPACT_LIMIT = 5
WIDE_LIMIT = 10
"""Rows when whole items, or a profile, are asked for."""

MAX_OFFSET = 2**53 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one call asks for.

    Attributes:
        query: What to look for.
        limit: Rows of the answer at most, 1..50.
        offset: Rows of the list to pass over, >= 0.
        full: Whether items are whole.
        tags: A memory must have all of them.
        tags_any: A memory must have one of them, when there are any.
        scope: workspace, project or agent; None: any.
        project_id: Only this project's rows; None: any.
        created_by: Only this author's rows; None: any.
        since, until: Earliest and latest time of writing, ms, inclusive; None: any.
        relevance_min: Least relevance, in [0, 1].
        min_importance: Least importance, in [0, 1].
        order_by: One of ORDERS; None: by rank.
        profile: The profile that filled in what was not said.
        decay: Whether age takes from the score.
        include_expired, include_archived, include_superseded: Rows that count too.
    """

    query: str
    limit: int
    offset: int = 0
    full: bool = False
    tags: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    scope: str | None = None
    project_id: str | None = None
    created_by: str | None = None
    since: int | None = None
    until: int | None = None
    relevance_min: float = 0.0
    min_importance: float = 0.0
    order_by: str | None = None
    profile: str = "default"
    decay: bool = False
    include_expired: bool = False
    include_archived: bool = False
    include_superseded: bool = False


def request_of(arguments: Mapping[str, object], settings: RecallToolConfig) -> Request:
    """Check the arguments of a call and fill in what they leave open.

    Args:
        arguments: By the names of the tool's description.
        settings: Profiles and defaults.

    Raises:
        RequestError: If a name is unknown, or values are not allowed: all of them at once.
    """
    given, faults = _checked(arguments)
    if faults:
        raise RequestError("; ".join(faults))
    query, profile = given["query"], given.get("recall_profile")
    chosen = profile or classify(query)
    fill = preset(chosen, settings)
    order = first_said(given.get("order_by"), fill.order_by)
    wide = given.get("full", False) or profile is not None
    limit = first_said(given.get("limit"), fill.limit, WIDE_LIMIT if wide else COMPACT_LIMIT)
    floor_ = first_said(given.get("min_importance"), fill.min_importance, settings.min_importance)
    scope = given.get("scope")
    return Request(
        query=query,
        limit=limit or COMPACT_LIMIT,
        offset=given.get("offset", 0),
        full=given.get("full", False),
        tags=given.get("tags", ()),
        tags_any=given.get("tags_any", ()),
        scope=None if scope == "all" else scope,
        project_id=given.get("project_id"),
        created_by=given.get("created_by"),
        since=_whole(given.get("since"), ceil),
        until=_whole(given.get("until"), floor),
        relevance_min=given.get("relevance_min", 0.0),
        min_importance=floor_ or 0.0,
        order_by=order,
        profile=chosen,
        decay=given.get("apply_recency_decay", False) or (order is not None and decays(order)),
        include_expired=given.get("include_expired", False),
        include_archived=given.get("include_archived", False),
        include_superseded=fill.include_superseded,
    )


class _UnusableError(Exception):
    """What is wrong with a value; the text reads on from the argument's name."""


def _checked(arguments: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    given: dict[str, Any] = {}
    faults: list[str] = []
    for name, value in arguments.items():
        if name not in _CHECKS:
            near = close_matches(str(name), _CHECKS)
            known = near or f"there are {', '.join(_CHECKS)}"
            faults.append(f"{printable(str(name), limit=60)!r} is no argument; {known}")
        elif value is not None:
            try:
                given[name] = _CHECKS[name](value)
            except _UnusableError as error:
                faults.append(f"{name} {error}")
    if "query" not in given and not any(fault.startswith("query ") for fault in faults):
        faults.insert(0, "query is required")
    return given, faults


def _query(value: object) -> str:
    if not isinstance(value, str):
        raise _UnusableError(f"is {shown(value)}; it must be text")
    if not value.strip():
        raise _UnusableError("is required; it is blank")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _UnusableError(f"is {shown(value)}; it must be text that is not empty")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _UnusableError(f"is {shown(value)}; it must be a list of tags")
    for tag in value:
        if not isinstance(tag, str) or not tag:
            raise _UnusableError(f"holds {shown(tag)}; tags are texts that are not empty")
    return tuple(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _UnusableError(f"is {shown(value)}; it must be true or false")
    return value


def _integer(low: int, high: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not low <= value <= high:  # type: ignore[operator]
            raise _UnusableError(f"is {shown(value)}; it must be an integer in [{low}, {high}]")
        return value  # type: ignore[return-value]

    return check


def _share(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # type: ignore[operator]
        raise _UnusableError(f"is {shown(value)}; it must be a number in [0, 1]")
    return float(value)  # type: ignore[arg-type]


def _one_of(*words: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise _UnusableError(f"is {shown(value)}; it must be one of {', '.join(words)}")
        return value

    return check


def _order(value: object) -> str:
    if not isinstance(value, str) or canonical(value) not in ORDERS:
        raise _UnusableError(
            f"is {shown(value)}; it must be one of {', '.join(ORDERS)}; a bare name means :desc"
        )
    return canonical(value)


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d{1,30})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)


def _time(value: object) -> Fraction:
    """The moment in milliseconds since 1970 UTC, exactly."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        day, clock, fraction, zone = found.groups()
        try:
            moment = datetime.fromisoformat(f"{day}T{clock}{zone.upper().replace('Z', '+00:00')}")
            whole = int((moment - _EPOCH).total_seconds())
        except (ValueError, OverflowError):
            pass
        else:
            return 1000 * (whole + Fraction(f"0{fraction or ''}"))
    raise _UnusableError(f"is {shown(value)}; it must be RFC 3339, such as 2026-05-28T12:00:00Z")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _whole(moment: Fraction | None, rounded: Callable[[Fraction], int]) -> int | None:
    """A bound in whole milliseconds, rounded so that it lets in what it did before."""
    return None if moment is None else rounded(moment)


_CHECKS: dict[str, Callable[[object], Any]] = {
    "query": _query,
    "limit": _integer(1, MAX_LIMIT),
    "offset": _integer(0, MAX_OFFSET),
    "full": _flag,
    "tags": _texts,
    "tags_any": _texts,
    "scope": _one_of(*SCOPES),
    "project_id": _text,
    "created_by": _text,
    "since": _time,
    "until": _time,
    "relevance_min": _share,
    "min_importance": _share,
    "order_by": _order,
    "recall_profile": _one_of(*PROFILES),
    "apply_recency_decay": _flag,
    "include_expired": _flag,
    "include_archived": _flag,
}

PARAMETERS = tuple(_CHECKS)
"""The names of the tool's arguments, as its description lists them."""
