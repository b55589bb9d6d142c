"""Docstrings in Google's style, taken apart."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import NamedTuple

import markup

_LISTS = ("Args", "Attributes", "Raises")
_TEXTS = ("Returns", "Yields", "Example", "Examples")
_TITLE = re.compile(rf"^({'|'.join((*_LISTS, *_TEXTS))}):$")
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:,\s+\*{0,2}\w+)*): +(.*)$", re.DOTALL)


class Entry(NamedTuple):
    """One argument, attribute or error, or several that one sentence describes."""

    names: str
    text: str


class Section(NamedTuple):
    """A titled part: entries of a list, or a text."""

    title: str
    entries: tuple[Entry, ...]
    text: str


class Docstring(NamedTuple):
    """What stands before the first section, and the sections."""

    text: str
    sections: tuple[Section, ...]


def parse(docstring: str) -> Docstring:
    """Take a docstring apart.

    Raises:
        ValueError: If a list holds a line that is no entry: nothing is left out silently.
    """
    chunks: list[tuple[str, list[str]]] = [("", [])]
    for line in inspect.cleandoc(docstring).splitlines():
        if found := _TITLE.match(line):
            chunks.append((found[1], []))
        elif line and not line.startswith(" ") and chunks[-1][0]:
            chunks.append(("", [line]))
        else:
            chunks[-1][1].append(line)
    text = "\n\n".join("\n".join(lines) for title, lines in chunks if not title)
    sections = [
        _section(title, textwrap.dedent("\n".join(lines)).strip())
        for title, lines in chunks
        if title
    ]
    return Docstring(text.strip("\n"), tuple(sections))


def _section(title: str, text: str) -> Section:
    if title in _TEXTS:
        return Section(title, (), text)
    entries = []
    for chunk in re.split(r"\n(?=\S)", text):
        found = _ENTRY.match(chunk)
        if found is None:
            raise ValueError(f"{title}: no entry of the form 'name: text': {chunk!r}")
        entries.append(Entry(found[1], " ".join(found[2].split())))
    return Section(title, tuple(entries), "")


def rendered(docstring: str) -> str:
    """A docstring as HTML: prose, and a table for each list."""
    parsed = parse(docstring)
    return markup.page(markup.prose(parsed.text), *map(_rendered, parsed.sections)).rstrip()


def _rendered(section: Section) -> str:
    title = {"Args": "Arguments"}.get(section.title, section.title)
    if section.title in ("Example", "Examples"):
        return markup.page(f"<p><strong>{title}</strong></p>", markup.block(section.text)).rstrip()
    if not section.entries:
        return f"<p><strong>{title}:</strong> {markup.inline(section.text)}</p>"
    rows = [(markup.code(entry.names), markup.inline(entry.text)) for entry in section.entries]
    return markup.table([title, ""], rows)
