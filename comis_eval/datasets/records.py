"""The tables that say how each record stands in its file; reading and writing share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

from comis_eval.datasets.fields import (
    Field,
    Fields,
    any_text,
    choice,
    count,
    flag,
    identifier,
    integer,
    listing,
    memory_key,
    nested,
    number,
    one_of,
    ordinal,
    share,
    text,
    time,
    write_fields,
)
from comis_eval.datasets.labels import Attack, Edge, Link
from comis_eval.types import (
    Filters,
    Memory,
    MemoryType,
    Query,
    Source,
    Tenancy,
    TrustLevel,
    Turn,
)

PARAMETERS: dict[str, Field] = {
    key: Field(key, check)
    for key, check in {
        "limit": integer,
        "offset": integer,
        "full": flag,
        "tags_any": listing(text),
        "scope": text,
        "project_id": text,
        "created_by": text,
        "since": text,
        "until": text,
        "relevance_min": number,
        "min_importance": number,
        "order_by": text,
        "recall_profile": text,
        "apply_recency_decay": flag,
        "include_expired": flag,
        "include_archived": flag,
    }.items()
}
"""The recall tool's parameters besides query and tags; their ranges are the tool's to judge."""


def _record_defaults(kind: type[Memory] | type[Query] | type[Filters]) -> dict[str, object]:
    known = {field.name: field.default for field in fields(kind)}
    return {name: value for name, value in known.items() if value is not MISSING}


def _object(table: Fields, defaults: Mapping[str, object]) -> partial[dict[str, Any]]:
    return partial(write_fields, fields=table, defaults=defaults)


def _filters(**values: Any) -> Filters:
    own = {key: values.pop(key) for key in list(values) if key in PARAMETERS}
    return Filters(**values, parameters=own)


def _filters_object(filters: Filters) -> dict[str, Any]:
    return write_fields(filters, _FILTERS, _record_defaults(Filters)) | dict(filters.parameters)


_SOURCE: Fields = {
    "who": Field("who", text),
    "channel": Field("channel", text),
    "sessionKey": Field("session_key", text),
}
_TENANCY: Fields = {
    "tenantId": Field("tenant_id", identifier),
    "agentId": Field("agent_id", identifier),
}
_TURN: Fields = {
    "role": Field("role", text, required=True),
    "text": Field("text", any_text, required=True),
}
_FILTERS: Fields = {
    "memoryType": Field("memory_type", choice(MemoryType)),
    "trustLevel": Field("trust_level", choice(TrustLevel)),
    "tags": Field("tags", listing(text)),
}

MEMORY: Fields = {
    "id": Field("id", identifier, required=True),
    "content": Field("content", text, required=True),
    "tenantId": Field("tenant_id", identifier),
    "agentId": Field("agent_id", identifier),
    "trustLevel": Field("trust_level", choice(TrustLevel), required=True),
    "memoryType": Field("memory_type", choice(MemoryType)),
    "source": Field("source", nested(_SOURCE, Source), encode=_object(_SOURCE, Source()._asdict())),
    "sourceType": Field("source_type", text),
    "taintLevel": Field("taint_level", text),
    "createdAt": Field("created_at", time, required=True),
    "occurredAt": Field("occurred_at", time),
    "expiresAt": Field("expires_at", time),
    "proofCount": Field("proof_count", count),
    "confidence": Field("confidence", share),
    "sourceIds": Field("source_ids", listing(identifier)),
    "entities": Field("entities", listing(text)),
    "tags": Field("tags", listing(text)),
    "key": Field("key", memory_key),
    "scope": Field("scope", one_of("workspace", "project", "agent")),
    "projectId": Field("project_id", text),
    "createdBy": Field("created_by", text),
    "authorType": Field("author_type", one_of("agent", "human", "system")),
    "relevance": Field("relevance", share),
    "importance": Field("importance", share),
    "archived": Field("archived", flag),
    "status": Field(
        "status", one_of("active", "stale", "superseded", "archived", "conflicted", "review_needed")
    ),
    "updatedAt": Field("updated_at", time),
    "version": Field("version", ordinal),
    "duplicateOf": Field("duplicate_of", identifier),
}

QUERY: Fields = {
    "id": Field("id", identifier, required=True),
    "text": Field("text", any_text, required=True),
    "turns": Field(
        "turns",
        listing(nested(_TURN, Turn)),
        encode=lambda turns: [turn._asdict() for turn in turns],
    ),
    "now": Field("now", time),
    "category": Field("category", text),
    "group": Field("group", text),
    "tags": Field("tags", listing(text)),
    "tenancy": Field(
        "tenancy", nested(_TENANCY, Tenancy), encode=_object(_TENANCY, Tenancy()._asdict())
    ),
    "filters": Field(
        "filters", nested({**_FILTERS, **PARAMETERS}, _filters), encode=_filters_object
    ),
    "answerable": Field("answerable", flag),
    "superseded": Field("superseded", identifier),
}

ATTACK: Fields = {
    "query": Field("query_id", identifier, required=True),
    "poison": Field("poison_ids", listing(identifier), required=True),
    "kind": Field("kind", text, required=True),
}

LINK: Fields = {
    "from": Field("from_id", identifier, required=True),
    "to": Field("to_id", identifier, required=True),
    "confidence": Field("confidence", share, required=True),
}

EDGE: Fields = {
    "from": Field("from_id", identifier, required=True),
    "to": Field("to_id", identifier, required=True),
    "kind": Field("kind", text, required=True),
    "weight": Field("weight", share, required=True),
}


def memory_of(values: dict[str, Any]) -> Memory:
    """Build a memory from checked values."""
    tenancy = Tenancy(
        values.pop("tenant_id", Tenancy().tenant_id), values.pop("agent_id", Tenancy().agent_id)
    )
    return Memory(**values, tenancy=tenancy)


def memory_row(memory: Memory) -> dict[str, Any]:
    """Turn a memory into the object of its line: what equals a default is left out."""
    flat = {key: field for key, field in MEMORY.items() if key not in _TENANCY}
    row = write_fields(memory, flat, _MEMORY_DEFAULTS)
    return row | write_fields(memory.tenancy, _TENANCY, Tenancy()._asdict())


def query_row(query: Query) -> dict[str, Any]:
    """Turn a query into the object of its line: what equals a default is left out."""
    return write_fields(query, QUERY, {**_QUERY_DEFAULTS, "group": query.id})


def attack_row(attack: Attack) -> dict[str, Any]:
    """Turn an attack into the object of its line."""
    return write_fields(attack, ATTACK, {})


def link_row(link: Link) -> dict[str, Any]:
    """Turn a causal link into the object of its line."""
    return write_fields(link, LINK, {})


def edge_row(edge: Edge) -> dict[str, Any]:
    """Turn a graph edge into the object of its line."""
    return write_fields(edge, EDGE, {})


_MEMORY_DEFAULTS = _record_defaults(Memory)
_QUERY_DEFAULTS = _record_defaults(Query)
