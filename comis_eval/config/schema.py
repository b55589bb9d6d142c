"""What the value at a path may be, read off the models' JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any

from comis_eval.config.base import MAX_INTEGER
from comis_eval.config.models import Config
from comis_eval.text import mask_credentials, printable


def shown(value: object) -> str:
    """A value somebody gave, as YAML would have it, short and safe to print."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"'{printable(mask_credentials(value), limit=60)}'"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, int | float):
        return repr(value) if isfinite(value) else f".{value}"
    return _CONTAINERS.get(type(value), type(value).__name__)


_CONTAINERS: dict[type, str] = {dict: "a mapping", list: "a list", tuple: "a list"}


def allowed(keys: tuple[str, ...]) -> str:
    """What the value at a path, spelled as in files, may be: "an integer > 0"."""
    return _allowed(schema_at(keys))


def _allowed(node: Mapping[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(_allowed(_resolved(option)) for option in node["anyOf"])
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    if "const" in node:
        return str(node["const"])
    kind = node.get("type", "any")
    if kind in ("integer", "number"):
        return f"{_KINDS[kind]} {_range(node)}"
    if kind == "array":
        of = _allowed(_resolved(node["items"])).removeprefix("one of ")
        return f"a list of {of} ({'not' if node.get('minItems') else 'may be'} empty)"
    return _KINDS[kind]


_KINDS = {
    "any": "text, a finite number, true, false, null, a list or a mapping",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


def _range(node: Mapping[str, Any]) -> str:
    if node.get("maximum", MAX_INTEGER) != MAX_INTEGER:
        return f"in [{node['minimum']:g}, {node['maximum']:g}]"
    if "exclusiveMinimum" in node:
        return f"> {node['exclusiveMinimum']:g}"
    return f">= {node['minimum']:g}"


@cache
def _whole_schema() -> dict[str, Any]:
    return Config.model_json_schema(by_alias=True)


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in node:
        resolved: Mapping[str, Any] = _whole_schema()["$defs"][node["$ref"].rpartition("/")[2]]
        return resolved
    return node


def schema_at(keys: tuple[str, ...]) -> Mapping[str, Any]:
    """The JSON schema of what stands at a path."""
    node: Mapping[str, Any] = _whole_schema()
    for key in keys:
        node = _inner(node, key) or {}
    return node


def _inner(node: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    if key in node.get("properties", {}):
        return _resolved(node["properties"][key])
    if "items" in node and key.isdecimal():
        return _resolved(node["items"])
    if isinstance(node.get("additionalProperties"), Mapping):
        return _resolved(node["additionalProperties"])
    return None
