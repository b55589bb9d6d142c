"""What can be told of a query from its text alone: the strata a sample is drawn from."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

SHORT, LONG = 20, 80
"""Characters: below SHORT a query is short, from LONG on it is long."""

OFTEN, SOMETIMES = 10, 2
"""Askings: how often the same query must stand in the log to count as often, or sometimes."""

_IDENTIFIER = re.compile(r"\d|\w_\w|\w[./:\\]\w|[a-z][A-Z]")
_QUESTION = re.compile(
    "[?\u061f\uff1f]"  # Latin, Arabic, full width
    r"|^\W*(?:who|whom|whose|what|whats|when|where|which|why|how|is|are|was|were|do|does|did"
    r"|can|could|should|will|would|has|have)\b",
    re.IGNORECASE,
)


class Kind(NamedTuple):
    """What a query is like.

    Attributes:
        length: short, medium or long.
        script: The script of most of its letters, such as latin; none without letters.
        identifiers: Whether it holds digits, paths or names in code's spelling.
        question: Whether it holds a question mark or begins as an English question does.
    """

    length: str
    script: str
    identifiers: bool
    question: bool

    @property
    def tags(self) -> tuple[str, ...]:
        """The same as words."""
        words = (f"length:{self.length}", f"script:{self.script}")
        return words + ("identifiers",) * self.identifiers + ("question",) * self.question


def kind_of(text: str) -> Kind:
    """Tell what a query is like."""
    size = len(text)
    return Kind(
        length="short" if size < SHORT else "long" if size >= LONG else "medium",
        script=_script(text),
        identifiers=_IDENTIFIER.search(text) is not None,
        question=_QUESTION.search(text) is not None,
    )


def frequency_of(askings: int) -> str:
    """How often a query was asked, as a word."""
    if askings >= OFTEN:
        return "often"
    return "sometimes" if askings >= SOMETIMES else "once"


def _script(text: str) -> str:
    if text.isascii():
        return "latin" if any(map(str.isalpha, text)) else "none"
    counts = Counter(_script_of(letter) for letter in text if letter.isalpha())
    # of two that are as frequent, the one first in the alphabet
    return min(counts, key=lambda name: (-counts[name], name), default="none")


@lru_cache(maxsize=2**14)
def _script_of(letter: str) -> str:
    """The first word of a letter's Unicode name, which is its script's; Han stays ``cjk``."""
    return unicodedata.name(letter, "other").split()[0].lower()
