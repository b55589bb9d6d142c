"""HTML for the generated pages. Every text is escaped here; no page writes its own tags."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"``(.+?)``|:[a-z]+:`~?\.?([^`]+)`|`([^`]+)`", re.DOTALL)


def inline(text: str) -> str:
    """Escape a text; what docstrings mark as code (``x``, :func:`x`, `x`) becomes code."""
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts.append(html.escape(text[end : found.start()]))
        parts.append(code(next(group for group in found.groups() if group is not None)))
        end = found.end()
    return "".join([*parts, html.escape(text[end:])])


def code(text: str) -> str:
    """Inline code."""
    return f"<code>{html.escape(text)}</code>"


def block(text: str, *, language: str = "text") -> str:
    """A block of code, letter by letter."""
    return f'<pre><code class="language-{language}">{html.escape(text.strip(chr(10)))}</code></pre>'


def prose(text: str) -> str:
    """Paragraphs, bullets and indented examples of a docstring."""
    return "\n\n".join(_paragraph(part) for part in re.split(r"\n\s*\n", text.strip("\n")) if part)


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return block(textwrap.dedent(text))
    if lines[0].startswith("- "):
        points = re.split(r"(?m)^- ", text)[1:]
        return "<ul>" + "".join(f"<li>{inline(point)}</li>" for point in points) + "</ul>"
    return f"<p>{inline(text.removesuffix('::') + ':' * text.endswith('::'))}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are HTML already, the columns' names are not."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def heading(level: int, text: str, anchor: str) -> str:
    """A Markdown heading of names alone, with an anchor that does not depend on its text.

    Raises:
        ValueError: If the text holds more than names, which Markdown would read.
    """
    if re.search(r"[^\w .,:-]", text):
        raise ValueError(f"a heading of the reference holds names only, got {text!r}")
    return f"{'#' * level} {text.replace('_', chr(92) + '_')} {{ #{anchor} }}"


def page(*parts: str) -> str:
    """Parts of a page, set apart so that Markdown takes each by itself."""
    return "\n\n".join(parts) + "\n"
