"""How the recall tool reads text: lower case and words, one code point at a time."""

from __future__ import annotations

import regex

_WORD = regex.compile(r"[\p{L}\p{Nd}]+")
_SPACE = regex.compile(r"\p{White_Space}+")


def lowered(text: str) -> str:
    """Lower each code point by itself, so that lengths and word ends stay what they were.

    Example: ``"BASELİNE"`` -> ``"baseline"``, where ``str.lower`` adds a combining dot.
    """
    return text.lower() if text.isascii() else "".join(c.lower()[0] for c in text)


def words(text: str, *, least: int = 1) -> list[str]:
    """Return the runs of letters and decimal digits, in lower case, in order, repeats kept.

    Args:
        text: Anything.
        least: Code points a word must have.
    """
    return [word for word in _WORD.findall(lowered(text)) if len(word) >= least]


def fields(text: str) -> list[str]:
    """Return what stands between runs of Unicode white space."""
    return [part for part in _SPACE.split(text) if part]
