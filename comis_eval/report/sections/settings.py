"""With which settings: what differs, and the whole configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping

from comis_eval.config import Config
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.page import numbers
from comis_eval.report.sections.common import Named, of
from comis_eval.text import printable


def section(named: Named) -> Html:
    """Lay out what differs between two configurations, and from the defaults."""
    parts: list[Html] = []
    if len(named) > 1:
        one, two = (e.config for e in named.values())
        parts.append(_table("Settings that differ", changed_settings(one, two), tuple(named)))
    default = Config().to_tree()
    for name, evaluation in named.items():
        changed = changed_settings(default, evaluation.config)
        caption = f"Settings{of(name, named)} that differ from the defaults"
        whole = json.dumps(evaluation.config, indent=1, ensure_ascii=False)
        parts.append(_table(caption, changed, ("default", "here")))
        parts.append(numbers(f"Whole configuration{of(name, named)}", element("pre", whole)))
        made = ", ".join(f"{what} {version}" for what, version in evaluation.versions.items())
        parts.append(element("p", f"Made{of(name, named)} with {made}.", class_="muted"))
    return joined(parts)


def changed_settings(
    first: Mapping[str, object], second: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Settings by dotted path that differ between two configurations, with both values."""
    one, two = dict(_leaves(first)), dict(_leaves(second))
    pairs = {path: (one.get(path), two.get(path)) for path in (*one, *two)}
    return {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}


def _leaves(tree: Mapping[str, object], above: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in tree.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and value:
            found += _leaves(value, f"{path}.")
        else:
            found.append((path, value))
    return found


def _table(
    caption: str, changed: Mapping[str, tuple[object, object]], heads: tuple[str, ...]
) -> Html:
    if not changed:
        return element("p", f"{caption}: none.")
    rows = [(path, *(_value(value) for value in pair)) for path, pair in changed.items()]
    return table(["setting", *heads], rows, caption=caption)


def _value(value: object) -> str:
    return printable(json.dumps(value, ensure_ascii=False), limit=200)
