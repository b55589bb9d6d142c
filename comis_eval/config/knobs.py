"""The configuration as paths and trees: finding a knob, setting it, telling two trees apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeGuard, get_origin

from comis_eval.config.base import Settings
from comis_eval.config.models import Config
from comis_eval.config.schema import schema_at, shown
from comis_eval.errors import ConfigError
from comis_eval.text import closest, printable


def put(tree: dict[str, Any], keys: Sequence[str], value: object) -> None:
    """Set one value of a nested mapping; mappings that lack on the way are made.

    Mappings on the way are copied first: they may stand elsewhere too.

    Raises:
        ConfigError: If the path leads through a value that is no mapping.
    """
    node = tree
    for depth, key in enumerate(keys[:-1], start=1):
        inner = node.get(key, {})
        if not isinstance(inner, Mapping):
            path, above = (printable(".".join(part)) for part in (keys, keys[:depth]))
            raise ConfigError(f"{path}: {above} is {shown(inner)}, it has no parts")
        node[key] = dict(inner)
        node = node[key]
    node[keys[-1]] = value


def differences(tree: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a nested mapping whose values differ from the reference's.

    Example: ``{"a": 1, "b": {"c": 2, "d": 3}}`` against ``{"a": 1, "b": {"c": 2, "d": 4}}``
    gives ``{"b": {"d": 3}}``. Empty mappings are left out.
    """
    found: dict[str, Any] = {}
    for key, value in tree.items():
        other = reference[key]
        if isinstance(value, Mapping) and isinstance(other, Mapping) and other:
            if inner := differences(value, other):
                found[key] = inner
        elif value != other:
            found[key] = value
    return found


class Knob(NamedTuple):
    """One step of a dotted path: the name of a field in Python and its key in files."""

    name: str
    key: str


class Setting(NamedTuple):
    """A value of the configuration that has no parts, and what help there is on it."""

    path: tuple[Knob, ...]
    description: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The path as files spell it."""
        return tuple(knob.key for knob in self.path)


@cache
def settings() -> tuple[Setting, ...]:
    """Every value of a configuration, in file order."""
    return tuple(_settings(Config, ()))


def _settings(part: type[Settings], above: tuple[Knob, ...]) -> Iterator[Setting]:
    for name, field in part.model_fields.items():
        path = (*above, Knob(name, field.alias or name))
        if is_part(field.annotation):
            yield from _settings(field.annotation, path)
        else:
            yield Setting(path, field.description or "")


def is_part(annotation: Any) -> TypeGuard[type[Settings]]:
    """Tell whether a field holds a part of the configuration, not a value."""
    return isinstance(annotation, type) and issubclass(annotation, Settings)


@cache
def find_knob(path: str) -> tuple[Knob, ...]:
    """The steps of a dotted path, whose parts may be spelled as in files or as in Python.

    Raises:
        ConfigError: If there is no such path; the message names it and what comes close.
    """
    steps: list[Knob] = []
    inside: Any = Config
    for part in path.split("."):
        keys = tuple(step.key for step in steps)
        if not is_part(inside) and get_origin(inside) is not dict:
            where, above = printable(path, limit=120), ".".join(keys)
            raise ConfigError(f"{where}: {above} holds one value, it has no parts")
        found = step(inside, part)
        if found is None:
            raise ConfigError(f"{printable(path, limit=120)}: {unknown((*keys, part))}")
        knob, inside = found
        steps.append(knob)
    return tuple(steps)


def step(inside: Any, part: str) -> tuple[Knob, Any] | None:
    """Where a part of a path leads, from a part of the configuration or a free mapping."""
    if get_origin(inside) is dict:
        return Knob(part, part), inside
    for name, field in inside.model_fields.items():
        if part in (name, field.alias):
            return Knob(name, field.alias or name), field.annotation
    return None


def unknown(keys: tuple[str, ...]) -> str:
    """What to say of a key that is not there: what comes close, or what is."""
    *above, key = keys
    siblings = schema_at(tuple(above)).get("properties", {})
    near = [".".join((*above, name)) for name in closest(key, siblings)]
    elsewhere = [".".join(s.keys) for s in settings() if closest(key, s.keys[-1:], cutoff=1.0)]
    if options := list(dict.fromkeys(near + elsewhere))[:3]:
        return f"unknown key; did you mean {' or '.join(options)}?"
    return f"unknown key; allowed here: {', '.join(siblings)}"
