"""How well a memory's key answers a query that names it.

Source: specification of the recall tool, section 4.4a.
"""

from __future__ import annotations

import re

_SEPARATOR = re.compile("[-_]")
_TOKEN_BYTES = 4
_TOKENS = 3


def boost(key: str, query: str) -> int:
    """Return 3 for the key itself, 2 for a part of it or more than it, 1 for three of its words.

    Args:
        key: In lower case.
        query: In lower case.
    """
    if key == query:
        return 3
    if key in query or query in key:
        return 2
    tokens = {t for t in _SEPARATOR.split(key) if len(t.encode()) >= _TOKEN_BYTES}
    return int(len(tokens) >= _TOKENS and sum(t in query for t in tokens) >= _TOKENS)
