"""What is wrong with a configuration, in words for its author."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, get_origin

from pydantic import ValidationError

from comis_eval.config.base import MAX_INTEGER
from comis_eval.config.knobs import is_part, step, unknown
from comis_eval.config.models import Config
from comis_eval.config.schema import allowed, shown
from comis_eval.text import printable

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Fault(NamedTuple):
    """What is wrong with one key of a configuration."""

    keys: tuple[str, ...]
    text: str

    @property
    def path(self) -> str:
        """Where it is, dotted, as files spell it; safe to print."""
        return ".".join(printable(key, limit=80) for key in self.keys)


def faults(error: ValidationError) -> list[Fault]:
    """All that is wrong with a configuration, one fault a key, in words for its author."""
    found: dict[tuple[str, ...], str] = {}
    for detail in error.errors(include_url=False):
        keys = _keys(detail["loc"], unknown=detail["type"] in _UNKNOWN)
        found.setdefault(keys, _explain(detail, keys))
    return [Fault(keys, text) for keys, text in found.items()]


_UNKNOWN = ("extra_forbidden", "invalid_key")


def _keys(location: tuple[int | str, ...], *, unknown: bool) -> tuple[str, ...]:
    """The part of an error's location that its author wrote: pydantic adds names of types."""
    if unknown:
        return (*_keys(location[:-1], unknown=False), str(location[-1]))
    keys: list[str] = []
    inside: Any = Config
    for part in location:
        found = step(inside, str(part)) if is_part(inside) else None
        if found is None:
            if get_origin(inside) in (dict, tuple):
                keys.append(str(part))
            break
        knob, inside = found
        keys.append(knob.key)
    return tuple(keys)


def _explain(detail: ErrorDetails, keys: tuple[str, ...]) -> str:
    if detail["type"] in _UNKNOWN:
        return unknown(keys)
    if detail["loc"] and detail["loc"][-1] == "[key]":
        return "keys must be text"
    found = shown(detail["input"])
    if detail["type"] == "value_error":
        return f"{detail['ctx']['error']}, got {found}"
    may_be = allowed(keys)
    if detail["type"] == "less_than_equal" and may_be.startswith("an integer"):
        may_be = f"{may_be} and at most {MAX_INTEGER} (2^53 - 1)"
    return f"must be {may_be}, got {found}"
