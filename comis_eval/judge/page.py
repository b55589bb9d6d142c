"""The page itself: a frame that holds no data, and the policy that lets nothing else in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from comis_eval.report.markup import Html, element
from comis_eval.report.page import csp_hash
from comis_eval.text import html

_GRADES = ("of no use", "worth mentioning", "part of the answer", "the answer")


class Document(NamedTuple):
    """The page and the content security policy it is sent with."""

    text: str
    policy: str


def document(*, judge: str, guideline: str) -> Document:
    """Lay out the page.

    Args:
        judge: Who judges.
        guideline: How to grade, as plain text.
    """
    style, script = _own("page.css"), _own("page.js")
    policy = (
        f"default-src 'none'; script-src '{csp_hash(script)}'; style-src '{csp_hash(style)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    body = [
        element("header", element("h1", f"Judging as {judge}"), _progress()),
        element("main", *_main(guideline)),
        element(
            "footer", "Every judgment is on disk before the next one is shown. End with Ctrl-C."
        ),
    ]
    text = "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{html(f'Judging as {judge}')}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            *body,
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )
    return Document(text, policy)


def _progress() -> Html:
    return element(
        "p",
        element("span", id="count"),
        " ",
        element("span", id="where"),
        id="progress",
    )


def _main(guideline: str) -> list[Html]:
    grades = [
        _button(str(grade), meaning, act="grade", grade=str(grade))
        for grade, meaning in enumerate(_GRADES)
    ]
    acts = [*grades, _button("s", "skip", act="skip"), _button("u", "undo", act="undo")]
    work = element(
        "div",
        element("h2", "What is asked"),
        element("div", id="query", class_="box"),
        element("h2", "A memory"),
        element("div", id="memory", class_="box"),
        id="work",
        hidden="",
    )
    done = element(
        "div",
        element("p", "All is judged. Press Ctrl-C where comis-eval judge runs, then export."),
        id="done",
        class_="box",
        hidden="",
    )
    return [
        element("progress", id="bar", max="1", value="0", aria_label="judged"),
        work,
        done,
        element("div", *acts, id="acts", role="group", aria_label="Grade"),
        element("p", id="said", role="status", aria_live="polite"),
        element("details", element("summary", "Guideline"), element("pre", guideline), open=""),
        element(
            "details",
            element("summary", "Agreement of those who judged the same"),
            element("div", id="agreed"),
            id="agreement",
        ),
    ]


def _button(key: str, meaning: str, **data: str) -> Html:
    given = {f"data_{name}": value for name, value in data.items()}
    return element("button", element("kbd", key), meaning, type="button", disabled="", **given)


@cache
def _own(name: str) -> str:
    return files("comis_eval.judge").joinpath(name).read_text(encoding="utf-8")
