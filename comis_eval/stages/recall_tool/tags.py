"""Keys and tags: which are taken, and how far two sets of tags agree.

Source: specification of the recall tool, sections 1, 2.2, 2.3 and 2.7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_TAGS = 20
MAX_TAG_BYTES = 64
KEY_RULE = "a key is two or more of a-z, 0-9 and inner hyphens, and is never changed into one"

_KEY = re.compile(r"[a-z0-9][a-z0-9-]*[a-z0-9]")
_MARKS = frozenset(
    "fleet infra bug feature throwaway smoke probe test wip p0 p1 p2".split()  # noqa: SIM905
)
_MARK_PREFIXES = ("kind:", "owner:", "project:", "phase:")


def is_key(key: str) -> bool:
    """Tell whether a key is one: two or more of a-z, 0-9 and inner hyphens."""
    return _KEY.fullmatch(key) is not None


def tag_fault(tags: Sequence[str]) -> str | None:
    """Say what is wrong with a memory's tags; None: nothing. Lengths are in UTF-8 bytes."""
    if len(tags) > MAX_TAGS:
        return f"there are {len(tags)} tags; at most {MAX_TAGS} are taken"
    for tag in tags:
        size = len(tag.encode("utf-8", "surrogatepass"))
        if size > MAX_TAG_BYTES:
            return f"tag {tag[:20]!r}... has {size} bytes; a tag has at most {MAX_TAG_BYTES}"
    return None


def overlap(old: Sequence[str], new: Sequence[str]) -> float:
    """Return the share of the new tags that are among the old; 0 when there are no new ones.

    A tag that stands twice counts twice.
    """
    known = frozenset(old)
    return sum(tag in known for tag in new) / len(new) if new else 0.0


def semantic(tags: Sequence[str]) -> list[str]:
    """Return the tags that say what a memory is about, not how it is handled."""
    return [tag for tag in tags if tag not in _MARKS and not tag.startswith(_MARK_PREFIXES)]
