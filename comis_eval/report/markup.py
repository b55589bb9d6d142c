"""HTML that cannot be broken out of: text is escaped unless this module made it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from comis_eval.text import html


class Html(str):
    """Markup that is safe as it is; any other ``str`` is somebody's text."""

    __slots__ = ()


def escaped(content: str) -> Html:
    """Text as markup; markup stays itself."""
    return content if isinstance(content, Html) else Html(html(content))


def joined(parts: Iterable[str]) -> Html:
    """Several pieces, one after another."""
    return Html("".join(escaped(part) for part in parts))


def element(name: str, *content: str, **attributes: str) -> Html:
    """An element; ``class_`` and ``for_`` lose their underscore, others trade it for ``-``."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{joined(content)}</{name}>")


def table(
    head: Sequence[str],
    body: Iterable[Sequence[str]],
    *,
    caption: str = "",
    texts: int = 1,
    rows: Sequence[str] = (),
) -> Html:
    """A table whose first columns hold text and whose others hold numbers, in a box that scrolls.

    Args:
        head: One heading a column.
        body: One cell a column.
        caption: Above it.
        texts: How many columns from the left hold text.
        rows: A class for each row; "" for none.
    """
    kind = ["" if place < texts else "number" for place in range(len(head))]
    cells = list(body)
    classes = list(rows) or [""] * len(cells)
    named = [
        element("th", name, scope="col", class_=of) for name, of in zip(head, kind, strict=True)
    ]
    lines = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, class_=of) for cell, of in zip(row[1:], kind[1:], strict=True)),
            class_=mark,
        )
        for row, mark in zip(cells, classes, strict=True)
    ]
    above = [element("caption", caption)] if caption else []
    laid = element(
        "table", *above, element("thead", element("tr", *named)), element("tbody", *lines)
    )
    return element("div", laid, class_="scroll", tabindex="0")


def data_block(ident: str, value: Any) -> Html:
    """JSON that a script reads and no parser takes for markup.

    ``<``, ``>`` and ``&`` are escaped, and so is all beyond ASCII, line separators and lone
    surrogates among it.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{html(ident)}">{text}</script>')
