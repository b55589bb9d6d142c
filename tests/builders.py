"""Small records for tests, and golden entries as records."""

from collections.abc import Mapping, Sequence
from typing import Any

from comis_eval.types import Memory, Query, Source, Tenancy, TrustLevel

NOW = 1_780_000_000_000
DAY = 86_400_000


def memory(id_: str, content: str | None = None, **fields: Any) -> Memory:
    """A memory, learned and one day old unless said otherwise."""
    fields.setdefault("trust_level", TrustLevel.LEARNED)
    fields.setdefault("created_at", NOW - DAY)
    return Memory(id=id_, content=content or f"content of {id_}", **fields)


def query(text: str = "", id_: str = "q", **fields: Any) -> Query:
    fields.setdefault("now", NOW)
    return Query(id=id_, text=text, **fields)


def golden_memory(entry: Mapping[str, Any], tenancy: Tenancy | None = None) -> Memory:
    """A memory as the golden files write it."""
    source = entry.get("source") or {}
    return Memory(
        id=entry["id"],
        content=entry["content"],
        trust_level=TrustLevel(entry["trustLevel"]),
        created_at=entry["createdAt"],
        occurred_at=entry.get("occurredAt"),
        expires_at=entry.get("expiresAt"),
        proof_count=entry.get("proofCount"),
        confidence=entry.get("confidence"),
        source=Source(source.get("who"), source.get("channel")),
        source_type=entry.get("sourceType"),
        taint_level=entry.get("taintLevel"),
        tags=tuple(entry.get("tags") or ()),
        tenancy=tenancy or Tenancy(entry.get("tenantId", "t1"), entry.get("agentId", "a1")),
    )


def ids(memories: Sequence[Memory]) -> list[str]:
    return [memory.id for memory in memories]
