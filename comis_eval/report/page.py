"""A report as one HTML file that needs nothing else and lets nothing in.

Its policy allows no request at all, and no script or style but the two that were written
with it, by their hashes. Text of memories and queries is data, which the script shows as text.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from comis_eval.errors import EvaluationError
from comis_eval.files import replacing
from comis_eval.report.drawing import NARROW, WIDE, Figure
from comis_eval.report.markup import Html, element, joined
from comis_eval.report.svg import svg
from comis_eval.text import html


class Section(NamedTuple):
    """A part of the page: the word of its link, its heading and what stands under it."""

    ident: str
    heading: str
    content: Html


class Page(NamedTuple):
    """What a page says.

    Attributes:
        title: Of the document, plain text.
        head: Above the sections.
        sections: From top to bottom.
        data: JSON blocks for the script.
        foot: Below them.
    """

    title: str
    head: Html
    sections: Sequence[Section]
    data: Sequence[Html]
    foot: Html


def document(page: Page) -> str:
    """The whole file; the same page gives the same text."""
    style, script = _own("page.css"), _own("page.js")
    policy = (
        f"default-src 'none'; script-src '{csp_hash(script)}'; style-src '{csp_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    links = [
        element("li", element("a", section.heading, href=f"#{section.ident}"))
        for section in page.sections
    ]
    body = [
        element("section", element("h2", section.heading), section.content, id=section.ident)
        for section in page.sections
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html(page.title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            element(
                "header", page.head, element("nav", element("ul", *links), aria_label="Sections")
            ),
            element("main", *body),
            element("footer", page.foot),
            *page.data,
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def figure(drawn: Figure, ident: str, caption: str, *more: str) -> Html:
    """A figure for desk and paper, and the same for a phone; below it, more of it in words.

    Args:
        drawn: The figure.
        ident: A word of ours, unique on the page.
        caption: How to read it.
        more: What stands below it, such as its numbers as a table.
    """
    wide, narrow = (
        svg(drawn.draw(WIDE), ident=f"{ident}-w"),
        svg(drawn.draw(NARROW), ident=f"{ident}-n"),
    )
    return element(
        "figure",
        element("figcaption", caption),
        element("div", Html(wide), class_="wide"),
        element("div", Html(narrow), class_="narrow"),
        joined(more),
    )


def facts(told: Iterable[tuple[str, str]]) -> Html:
    """What the page is about, as a list of terms."""
    pairs = [joined([element("dt", term), element("dd", what)]) for term, what in told]
    return element("dl", *pairs, class_="facts")


def numbers(summary: str, *content: str) -> Html:
    """What only some readers want to see, folded away; print unfolds it."""
    return element("details", element("summary", summary), *content)


def write_page(page: Page, out: Path) -> None:
    """Write the file, whole or not at all.

    Raises:
        EvaluationError: If it cannot be written.
    """
    try:
        with replacing(out) as partial:
            partial.write_text(document(page), encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"--out {out}: cannot be written: {error.strerror}") from error


def _own(name: str) -> str:
    return files("comis_eval.report").joinpath(name).read_text(encoding="utf-8")


def csp_hash(content: str) -> str:
    """What a content security policy calls a script or style by."""
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
