"""How a caller says in which order memories come.

Source: specification of the recall tool, sections 0 (Ordering) and 3.6.
"""

from __future__ import annotations


def canonical(order_by: str) -> str:
    """Return the spelling that rules compare: a bare name means its ``:desc`` form.

    Anything else stays as it is, so that whoever checks it can show what was given.
    """
    return f"{order_by}:desc" if order_by in _BARE else order_by


_BARE = ("created_at", "relevance", "decayed_relevance")


def decays(order_by: str) -> bool:
    """Tell whether an order switches decay on by itself."""
    return canonical(order_by) == "decayed_relevance:desc"
