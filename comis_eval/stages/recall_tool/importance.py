"""How much a memory matters by what it says of itself, in [0.3, 1].

Source: specification of the recall tool, section 2.2. Arithmetic is that of 32-bit floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from comis_eval.stages.recall_tool.tags import overlap
from comis_eval.stages.recall_tool.words import lowered

_PLAIN = 0.5
_KINDS = {
    "kind:pinned": 1.0,
    "kind:incident": 0.85,
    "kind:decision": 0.8,
    "kind:preference": 0.8,
    "kind:learning": 0.7,
    "kind:fact": 0.6,
}
_CHECKPOINT = 0.3
_WEIGHTY = ("icp", "architecture", "license", "security", "money")
_STEP = 0.1
_ALIKE = 0.8
"""Share of an update's tags that must be the old ones for it to count as a repetition."""

_NUMBER = re.compile(
    r"\s*([+-]?(?:(0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?)"
    r"|inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))",
    re.IGNORECASE | re.ASCII,
)


def importance(content: str, tags: Sequence[str]) -> float:
    """Return the importance of a memory whose writer gave none.

    The highest kind among the tags decides where it starts (a session checkpoint always
    at 0.3); a weighty word in the content and a tag ``relevance:N`` with N >= 0.8 add 0.1
    each; 1 is the most. Tags are compared exactly, words as parts of other words.
    """
    if "kind:session-checkpoint" in tags:
        base = _CHECKPOINT
    else:
        base = max((_KINDS[tag] for tag in tags if tag in _KINDS), default=_PLAIN)
    score = np.float32(base)
    lower = lowered(content)
    if any(word in lower for word in _WEIGHTY):
        score += np.float32(_STEP)
    if any(_stated(tag) >= 0.8 for tag in tags if tag.startswith("relevance:")):
        score += np.float32(_STEP)
    return float(min(score, np.float32(1)))


def reinforced(value: float, new: Sequence[str], old: Sequence[str]) -> float:
    """Return the importance of an update: 0.1 more, up to 1, when it repeats the old tags."""
    if overlap(old, new) < _ALIKE:
        return value
    return float(min(np.float32(value) + np.float32(_STEP), np.float32(1)))


def _stated(tag: str) -> float:
    """The number after ``relevance:``, read as far as it is one; NaN where it is none."""
    found = _NUMBER.match(tag.removeprefix("relevance:"))
    if found is None:
        return math.nan
    return float.fromhex(found[1]) if found[2] else float(found[1])
