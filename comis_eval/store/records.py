"""A memory as a row of the ``memories`` table, and back."""

from __future__ import annotations

import json
from typing import Any

from comis_eval.types import Memory, MemoryType, Source, Tenancy, TrustLevel

COLUMNS = (
    "id",
    "tenant_id",
    "agent_id",
    "content",
    "trust_level",
    "memory_type",
    "source_who",
    "source_channel",
    "source_session_key",
    "source_type",
    "taint_level",
    "created_at",
    "occurred_at",
    "expires_at",
    "proof_count",
    "confidence",
    "source_ids",
    "entities",
    "tags",
    "key",
    "scope",
    "project_id",
    "created_by",
    "author_type",
    "relevance",
    "importance",
    "archived",
    "status",
    "updated_at",
    "version",
    "duplicate_of",
)
"""Columns a memory fills, in the order of :func:`to_row` and :func:`from_row`."""

_TRUST_LEVELS = {str(level): level for level in TrustLevel}
_MEMORY_TYPES = {str(kind): kind for kind in MemoryType}


def to_row(memory: Memory) -> tuple[Any, ...]:
    """Return a memory's values in the order of COLUMNS."""
    return (
        memory.id,
        *memory.tenancy,
        memory.content,
        memory.trust_level.value,
        memory.memory_type.value,
        *memory.source,
        memory.source_type,
        memory.taint_level,
        memory.created_at,
        memory.occurred_at,
        memory.expires_at,
        memory.proof_count,
        memory.confidence,
        _to_json(memory.source_ids),
        _to_json(memory.entities),
        _to_json(memory.tags),
        memory.key,
        memory.scope,
        memory.project_id,
        memory.created_by,
        memory.author_type,
        memory.relevance,
        memory.importance,
        memory.archived,
        memory.status,
        memory.updated_at,
        memory.version,
        memory.duplicate_of,
    )


def from_row(row: tuple[Any, ...]) -> Memory:
    """Return the memory that :func:`to_row` was given."""
    values = dict(zip(COLUMNS, row, strict=True))
    tenancy = Tenancy(values.pop("tenant_id"), values.pop("agent_id"))
    source = Source(
        values.pop("source_who"), values.pop("source_channel"), values.pop("source_session_key")
    )
    values["trust_level"] = _TRUST_LEVELS[values["trust_level"]]
    values["memory_type"] = _MEMORY_TYPES[values["memory_type"]]
    for name in ("source_ids", "entities", "tags"):
        values[name] = tuple(json.loads(values[name])) if values[name] != "[]" else ()
    if values["archived"] is not None:
        values["archived"] = bool(values["archived"])
    return Memory(tenancy=tenancy, source=source, **values)


def _to_json(texts: tuple[str, ...]) -> str:
    return json.dumps(texts) if texts else "[]"
