"""Checks of single values, and the reading of an object against a table of fields.

A check takes a decoded value and returns it as the type a record holds, or raises
:class:`UnusableError`. Nothing is coerced: ``1`` is no text, ``1.0`` no integer, ``true`` no
number. ``null`` counts as absent everywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from enum import StrEnum
from math import inf, isfinite
from typing import Any, NamedTuple, TypeVar

from comis_eval.datasets.faults import did_you_mean, shown

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""Names of datasets, studies and baselines, matched whole (architecture.md)."""

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

_INT64 = range(-(2**63), 2**63)
_KEY = re.compile(r"[a-z0-9][a-z0-9-]*[a-z0-9]")
_KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class UnusableError(Exception):
    """A value cannot be used; each argument reads on from the field's name."""


class Field(NamedTuple):
    """How one key of a file becomes one attribute of a record, and back.

    Attributes:
        attribute: The record's attribute.
        check: Turns the decoded value into the attribute's.
        required: Whether the key must be there.
        encode: Turns the attribute's value into what JSON holds.
    """

    attribute: str
    check: Callable[[object], Any]
    required: bool = False
    encode: Callable[[Any], object] = lambda value: value


Fields = Mapping[str, Field]


def read_fields(row: Mapping[Any, object], fields: Fields) -> tuple[dict[str, Any], list[str]]:
    """Check an object against its table.

    Returns:
        The attributes that are there and usable, and what is wrong with the others.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for key, value in row.items():
        field = fields.get(key) if isinstance(key, str) else None
        if field is None:
            wrong.append(f"unknown key {shown(key)}{did_you_mean(key, fields)}")
        elif value is not None:
            try:
                values[field.attribute] = field.check(value)
            except UnusableError as error:
                wrong += [f"{key}{message}" for message in error.args]
    wrong += [
        f"{key} is missing; it is required"
        for key, field in fields.items()
        if field.required and row.get(key) is None
    ]
    return values, wrong


def write_fields(record: object, fields: Fields, defaults: Mapping[str, object]) -> dict[str, Any]:
    """Turn a record back into an object, leaving out what equals its default."""
    return {
        key: field.encode(value)
        for key, field in fields.items()
        if (value := getattr(record, field.attribute)) != defaults.get(field.attribute)
    }


def nested(fields: Fields, build: Callable[..., T]) -> Callable[[object], T]:
    """Make the check of an object inside an object; its faults carry the dotted path."""

    def check(value: object) -> T:
        if not isinstance(value, dict):
            raise _not(value, f"an object with {', '.join(fields)}")
        values, wrong = read_fields(value, fields)
        if wrong:
            raise UnusableError(*(f".{message}" for message in wrong))
        return build(**values)

    return check


def listing(check: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    """Make the check of a list from the check of its members."""

    def check_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise _not(value, "a list")
        members: list[T] = []
        wrong: list[str] = []
        for position, member in enumerate(value):
            try:
                members.append(check(member))
            except UnusableError as error:
                wrong += [f"[{position}]{message}" for message in error.args]
        if wrong:
            raise UnusableError(*wrong)
        return tuple(members)

    return check_all


def one_of(*words: str) -> Callable[[object], str]:
    """Make the check of one of a few words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise UnusableError(f" is {shown(value)}; allowed: {', '.join(words)}")
        return value

    return check


def choice(kind: type[E]) -> Callable[[object], E]:
    """Make the check of one of an enumeration's values."""
    check = one_of(*(member.value for member in kind))
    return lambda value: kind(check(value))


def any_text(value: object) -> str:
    """Accept any text, blank too."""
    if not isinstance(value, str):
        raise _not(value, "text")
    return value


def text(value: object) -> str:
    """Accept text that is not blank."""
    if not any_text(value).strip():
        raise UnusableError(" is blank; it must say something")
    return str(value)


def identifier(value: object) -> str:
    """Accept an id: text without white space or control characters, so that qrels can hold it."""
    if not isinstance(value, str):
        raise _not(value, 'text (ids are always text: write "7", not 7)')
    if not value:
        raise UnusableError(" is empty; an id needs at least one character")
    plain = value.isascii() and value.isprintable() and " " not in value
    if not plain and any(c.isspace() or unicodedata.category(c) == "Cc" for c in value):
        raise UnusableError(f" is {shown(value)}; an id holds no white space or control characters")
    return value


def name(value: object) -> str:
    """Accept a name that is safe in paths, tables and trackers; ``.`` and ``..`` are none."""
    if not NAME.fullmatch(any_text(value)) or value in {".", ".."}:
        raise UnusableError(f" is {shown(value)}; a name matches [A-Za-z0-9._-]{{1,64}}")
    return str(value)


def memory_key(value: object) -> str:
    """Accept a key of the recall tool, which refuses bad ones and never normalises."""
    if not _KEY.fullmatch(any_text(value)):
        raise UnusableError(
            f" is {shown(value)}; a key has at least two of a-z, 0-9 and inner hyphens"
        )
    return str(value)


def flag(value: object) -> bool:
    """Accept true or false."""
    if not isinstance(value, bool):
        raise _not(value, "true or false")
    return value


def integer(value: object) -> int:
    """Accept a whole number of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _not(value, "a whole number")
    if value not in _INT64:
        raise UnusableError(f" is {shown(value)}; it must fit into 64 bits")
    return value


def time(value: object) -> int:
    """Accept a moment: whole milliseconds since 1970-01-01 UTC, of 64 bits."""
    try:
        return integer(value)
    except UnusableError as error:
        raise UnusableError(
            f"{error.args[0]}; times are whole milliseconds since 1970-01-01 UTC"
        ) from error


def count(value: object) -> int:
    """Accept a whole number >= 0."""
    if integer(value) < 0:
        raise UnusableError(f" is {shown(value)}; it must be >= 0")
    return integer(value)


def ordinal(value: object) -> int:
    """Accept a whole number >= 1."""
    if integer(value) < 1:
        raise UnusableError(f" is {shown(value)}; it must be >= 1")
    return integer(value)


def number(value: object, *, low: float = -inf, high: float = inf) -> float:
    """Accept a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _not(value, "a number")
    if not (low <= value <= high and abs(value) < 2**1000 and isfinite(value)):
        raise UnusableError(f" is {shown(value)}; it must lie in [{low:g}, {high:g}]")
    return float(value) + 0.0  # so that -0.0 and 0.0 are one value


def share(value: object) -> float:
    """Accept a number in [0, 1]."""
    return number(value, low=0, high=1)


def _not(value: object, wanted: str) -> UnusableError:
    kind = _KINDS.get(type(value), type(value).__name__)
    return UnusableError(f" is {shown(value)} ({kind}); it must be {wanted}")
