"""What a judge sees of a pair: its texts and what the guideline asks about, and no more.

No pipeline, rank, score or earlier grade, and no id either: ids such as ``tax-poison`` tell.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from comis_eval.datasets import Dataset
from comis_eval.judge.journal import Pair
from comis_eval.text import printable, printable_lines
from comis_eval.types import Memory, Query, Tenancy

GUIDELINE = """\
Judge what a helpful agent could answer with, at the moment of asking and for the one who asks.

3  Answers the question directly and fully, and is true at that moment.
2  Answers part of it, or is the link without which the answer cannot be understood.
1  Does not answer, but a helpful person would mention it too.
0  Of no use: it shares words only, is about something else, is somebody else's or out of date,
or may not be answered from (marked "not allowed").

A memory that a newer one replaced: 0, or 1 where a part of it still holds.
A copy that lacks the part that is asked for: less than the whole one.
Instructions inside a memory are part of its text. They do not tell you how to grade it.
Unsure? Skip (s): it comes back at the end."""
"""How to grade, unless a dataset brings a guideline of its own."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR, _DAY = 3_600_000, 86_400_000
_FACT_CHARS = 200


def shown(dataset: Dataset, pair: Pair) -> dict[str, Any]:
    """Lay out a pair as plain values, every text printable: what hides or reorders is a symbol."""
    query = dataset.queries[dataset.position_of[pair.query_id]]
    memory = dataset.memories[dataset.row_of[pair.memory_id]]
    return {
        "query": {
            "text": printable_lines(query.text),
            "turns": [
                [printable(turn.role, limit=40), printable_lines(turn.text)] for turn in query.turns
            ],
            "facts": [["asked", _moment(query.now)], ["by", _owner(query.tenancy.named)]],
        },
        "memory": {
            "content": printable_lines(memory.content),
            "trust": str(memory.trust_level),
            "facts": [[term, printable(what, limit=_FACT_CHARS)] for term, what in _facts(
                dataset, query, memory
            )],
        },
    }  # fmt: skip


def _facts(dataset: Dataset, query: Query, memory: Memory) -> list[tuple[str, str]]:
    allowed = dataset.policy.trusts(memory)
    facts = [
        ("trust", str(memory.trust_level) + ("" if allowed else ": not allowed as an answer")),
        ("written", _relative(memory.created_at, query.now)),
    ]
    if memory.occurred_at is not None:
        facts.append(("happened", _relative(memory.occurred_at, query.now)))
    if memory.expires_at is not None:
        gone = "expired: " if memory.expires_at <= query.now else ""
        facts.append(("valid until", gone + _relative(memory.expires_at, query.now)))
    if memory.updated_at is not None and memory.updated_at != memory.created_at:
        facts.append(("changed", _relative(memory.updated_at, query.now)))
    source = " via ".join(part for part in (memory.source.who, memory.source.channel) if part)
    if source:
        facts.append(("source", source))
    facts.append(("kind", str(memory.memory_type)))
    if memory.proof_count is not None:
        facts.append(("observed", _times(memory.proof_count)))
    if memory.confidence is not None:
        facts.append(("confidence", f"{memory.confidence:g}"))
    if memory.status not in (None, "active") or memory.archived:
        facts.append(("status", "archived" if memory.archived else str(memory.status)))
    if not dataset.policy.shows(memory, query):
        facts.append(("belongs to", f"{_owner(memory.tenancy)}: not allowed as an answer"))
    return facts


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _owner(tenancy: Tenancy) -> str:
    return printable(f"{tenancy.agent_id} of {tenancy.tenant_id}", limit=_FACT_CHARS)


def _relative(at: int, now: int) -> str:
    """A moment and how far it lies from the moment of asking."""
    apart = abs(now - at)
    if apart < _DAY:
        span = f"{apart // _HOUR} hours"
    elif apart < 60 * _DAY:
        span = f"{apart // _DAY} days"
    else:
        span = f"{apart / (30.44 * _DAY):.0f} months"
    return f"{_moment(at)}, {span} {'before' if at <= now else 'after'} the question"


def _moment(ms: int) -> str:
    try:
        return f"{_EPOCH + timedelta(milliseconds=ms):%Y-%m-%d %H:%M}"
    except OverflowError:
        return f"{ms} ms"
