"""HTML that cannot be broken out of: text is escaped unless this package made it."""

from __future__ import annotations

import json
from typing import Any

from comis_eval.text import Html, element, escaped, html, joined
from comis_eval.text import html_table as table

__all__ = ["Html", "data_block", "element", "escaped", "joined", "table"]


def data_block(ident: str, value: Any) -> Html:
    """JSON that a script reads and no parser takes for markup.

    ``<``, ``>`` and ``&`` are escaped, and so is all beyond ASCII, line separators and lone
    surrogates among it.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{html(ident)}">{text}</script>')
