"""The page of public names: signature and docstring of each, and of its methods."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import Any

import docstring
import markup
from pydantic import BaseModel

import comis_eval

INTRODUCTION = """\
Everything that `comis_eval` offers by name: `from comis_eval import NAME`. What is not listed \
may change without notice. Models of the configuration are described as [settings](settings.md).
"""

_WIDEST = 70
"""Defaults whose repr is longer are shown as an ellipsis: the docstring says what they mean."""


def page() -> str:
    """Every name of ``comis_eval.__all__``."""
    return markup.page(
        "# Python", INTRODUCTION, *(_named(name) for name in sorted(comis_eval.__all__))
    )


def _named(name: str) -> str:
    value = getattr(comis_eval, name)
    parts = [markup.heading(2, name, name), *_signature(name, value), _text(value)]
    if inspect.isclass(value):
        if issubclass(value, Enum):
            rows = [(markup.code(member.name), markup.code(str(member.value))) for member in value]
            parts.append(markup.table(["Member", "In files"], rows))
        parts += [_member(name, *member) for member in _members(value)]
    return markup.page(*parts).rstrip()


def _text(value: Any) -> str:
    return docstring.rendered(inspect.getdoc(value) or "")


def _signature(name: str, value: Any) -> list[str]:
    if inspect.isclass(value) and issubclass(value, BaseModel | BaseException | Enum):
        return []
    return [markup.block(signature(name, value), language="python")]


def signature(name: str, value: Any) -> str:
    """A call's form, one parameter a line when there are several."""
    told = inspect.signature(value)
    pieces = []
    starred = False
    for parameter in told.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not starred:
            pieces.append("*")
            starred = True
        pieces.append(_parameter(parameter))
    returns = told.return_annotation
    nothing = returns in (told.empty, "None", None)
    arrow = "" if nothing else f" -> {_annotation(returns)}"
    if len(one := f"{name}({', '.join(pieces)}){arrow}") <= _WIDEST:
        return one
    return f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        fits = len(default) <= _WIDEST and not default.startswith("<")
        text += f" = {default if fits else '...'}"
    return text


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    forward = getattr(annotation, "__forward_arg__", None)
    return str(forward) if forward else inspect.formatannotation(annotation)


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(owner).items():
        callable_or_property = (property, cached_property, classmethod, staticmethod)
        if name.startswith("_") or name == "model_config":
            continue
        if inspect.isfunction(member) or isinstance(member, callable_or_property):
            yield name, member


def _member(owner: str, name: str, member: Any) -> str:
    title = markup.heading(3, f"{owner}.{name}", f"{owner}.{name}")
    if isinstance(member, property | cached_property):
        return markup.page(title, _text(member)).rstrip()
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    told = inspect.signature(function)
    bound = [p for p in told.parameters.values() if p.name not in ("self", "cls")]
    shown = markup.block(_bound(f"{owner}.{name}", function, bound), language="python")
    return markup.page(title, shown, _text(function)).rstrip()


def _bound(name: str, function: Any, parameters: list[inspect.Parameter]) -> str:
    class Call:
        __signature__ = inspect.signature(function).replace(parameters=parameters)

        def __call__(self) -> None:
            """Only its signature is asked for."""

    return signature(name, Call())
