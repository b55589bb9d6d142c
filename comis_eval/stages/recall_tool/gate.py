"""When the best of an answer is too weak to be shown, and why.

Source: specification of the recall tool, sections 0 (the gate) and 4.4b.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from comis_eval.stages.recall_tool.words import words

Reason = Literal["", "unscored", "noise", "threshold"]
REASONS: tuple[Reason, ...] = ("", "unscored", "noise", "threshold")
"""A reason's number in arrays is its position here."""

_WORD_CHARS = 4


def query_words(query: str) -> frozenset[str]:
    """Return the words of a query that count as evidence: four code points or more."""
    return frozenset(words(query, least=_WORD_CHARS))


def overlaps(wanted: frozenset[str], texts: Iterable[str]) -> bool:
    """Tell whether a word of the query occurs, whole, in any text of the answer.

    A query without such a word overlaps whatever there is.
    """
    if not wanted:
        return True
    return any(not wanted.isdisjoint(words(text, least=_WORD_CHARS)) for text in texts)


def reason(
    best: float | None, *, of_both: float, arms: bool, overlap: bool, noise: float, floor: float
) -> Reason:
    """Say why an answer is withheld; ``""``: it is not.

    Args:
        best: The best score; None: nothing was retrieved, or nothing has a score.
        of_both: The best as a share of the most that both arms together can give.
        arms: Whether the vector arm returned rows. What the text arm alone found is there
            because words agree, and is never noise.
        overlap: Whether a query word occurs in any row.
        noise: The share below which some word must occur.
        floor: The score below which nothing is shown.
    """
    if best is None:
        return "unscored"
    if arms and of_both < noise and not overlap:
        return "noise"
    return "threshold" if best < floor else ""
