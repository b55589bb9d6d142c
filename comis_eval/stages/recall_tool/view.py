"""How a memory is shown: whole, or just enough to decide whether to read it.

Source: specification of the recall tool, section 4.4d.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

CHARS = 300
"""Code points of content a compact item holds."""

KEPT = ("key", "tags", "score", "pinned", "graph_boost", "provenance")
"""What a compact item keeps of any."""


def compact(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short form of a whole item, which is left as it is.

    Key, tags, score and marks stay; the project of a project's row, ``archived`` when true,
    a status other than active, ``trust`` when external. The content is cut after 300 code
    points, with an ellipsis.
    """
    short = {name: item[name] for name in KEPT if name in item}
    if item.get("scope") == "project" and "project_id" in item:
        short["project_id"] = item["project_id"]
    if item.get("archived"):
        short["archived"] = True
    if item.get("status") not in (None, "", "active"):
        short["status"] = item["status"]
    if item.get("trust") == "external":
        short["trust"] = "external"
    content = item.get("content", item.get("snippet"))
    if content is not None:
        short["content"] = cut(content)
    return short


def moment(ms: int) -> str | int:
    """Return a time as RFC 3339; one beyond the years it can write, as milliseconds."""
    try:
        at = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return ms
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cut(content: str) -> str:
    """Return the first 300 code points of content, and an ellipsis where there are more."""
    return content if len(content) <= CHARS else f"{content[:CHARS]}…"
