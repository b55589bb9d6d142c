"""What is searched for: the message, with the turns that give it meaning."""

from __future__ import annotations

from collections.abc import Sequence

from comis_eval.types import Turn


def formulate(text: str, turns: Sequence[Turn], *, context_turns: int) -> str:
    """Return the one string that every lane, the reranker and the trace use.

    With no context asked for it is the message untouched, as the shipped system sends it.
    Otherwise the message is followed by the last earlier user turns, oldest first:
    texts are trimmed, blanks and repeats (of the message or of a later turn) are dropped
    before the last ``context_turns`` are taken, and what remains is joined by newlines.

    Args:
        text: The current user message.
        turns: Earlier turns, oldest first. Only those of the role ``user`` count.
        context_turns: How many to add, >= 0.
    """
    if context_turns == 0:
        return text
    seen = {text.strip(), ""}
    latest_first: list[str] = []
    for turn in reversed(turns):
        trimmed = turn.text.strip()
        if turn.role == "user" and trimmed not in seen:
            seen.add(trimmed)
            latest_first.append(trimmed)
    context = latest_first[:context_turns][::-1]
    return "\n".join(part for part in (text.strip(), *context) if part)
