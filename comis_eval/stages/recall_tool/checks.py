"""What the arguments of a tool's call may be; a refusal says what is allowed.

Nothing is clamped, and ``null`` is silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from comis_eval.config import shown
from comis_eval.errors import RequestError
from comis_eval.text import close_matches, printable

Check = Callable[[object], Any]
"""Returns the value in the form it is used in, or raises UnusableError."""


class UnusableError(Exception):
    """What is wrong with a value; the text reads on from the argument's name."""


def checked(
    arguments: Mapping[str, object], checks: Mapping[str, Check], required: Sequence[str]
) -> dict[str, Any]:
    """Return the arguments that say something, in the form they are used in.

    Args:
        arguments: By name.
        checks: What each may be; faults are told in this order.
        required: Those that must say something.

    Raises:
        RequestError: If a name is unknown, a value not allowed or something is lacking: all
            of it at once.
    """
    given: dict[str, Any] = {}
    faults: list[str] = []
    for name in arguments:
        if name not in checks:
            near = close_matches(str(name), checks)
            known = near or f"there are {', '.join(checks)}"
            faults.append(f"{printable(str(name), limit=60)!r} is no argument; {known}")
    for name, check in checks.items():
        value = arguments.get(name)
        if value is None:
            if name in required:
                faults.append(f"{name} is required")
            continue
        try:
            given[name] = check(value)
        except UnusableError as error:
            faults.append(f"{name} {error}")
    if faults:
        raise RequestError("; ".join(faults))
    return given


def content(value: object) -> str:
    """Take text that is not blank."""
    if not isinstance(value, str):
        raise UnusableError(f"is {shown(value)}; it must be text")
    if not value.strip():
        raise UnusableError("is required; it is blank")
    return value


def text(value: object) -> str:
    """Take text that is not empty."""
    if not isinstance(value, str) or not value:
        raise UnusableError(f"is {shown(value)}; it must be text that is not empty")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Take a list of tags."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise UnusableError(f"is {shown(value)}; it must be a list of tags")
    for tag in value:
        if not isinstance(tag, str) or not tag:
            raise UnusableError(f"holds {shown(tag)}; tags are texts that are not empty")
    return tuple(value)


def flag(value: object) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise UnusableError(f"is {shown(value)}; it must be true or false")
    return value


def integer(low: int, high: int) -> Check:
    """Take an integer within bounds, both included."""

    def check(value: object) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not low <= value <= high:  # type: ignore[operator]
            raise UnusableError(f"is {shown(value)}; it must be an integer in [{low}, {high}]")
        return value  # type: ignore[return-value]

    return check


def share(value: object) -> float:
    """Take a number in [0, 1]."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:  # type: ignore[operator]
        raise UnusableError(f"is {shown(value)}; it must be a number in [0, 1]")
    return float(value)  # type: ignore[arg-type]


def one_of(*words: str) -> Check:
    """Take one of some words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise UnusableError(f"is {shown(value)}; it must be one of {', '.join(words)}")
        return value

    return check


_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d{1,30})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time(value: object) -> Fraction:
    """Take a moment as RFC 3339; the milliseconds since 1970 UTC, exactly."""
    moment = moment_of(value)
    if moment is None:
        raise UnusableError(f"is {shown(value)}; it must be RFC 3339, such as 2026-05-28T12:00:00Z")
    return moment


def moment_of(value: object) -> Fraction | None:
    """Return what RFC 3339 names, in milliseconds since 1970 UTC; None: it is none."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone.upper().replace('Z', '+00:00')}")
        whole = int((moment - _EPOCH).total_seconds())
    except (ValueError, OverflowError):
        return None
    return 1000 * (whole + Fraction(f"0{fraction or ''}"))
