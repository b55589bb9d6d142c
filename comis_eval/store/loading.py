"""Memories as the recall tool would have them had it written them itself.

What a record leaves open is filled in, what may not be written is left out and named, and
of two writes to one key the later stands. Memories keep their places, so that labels stay
with the texts they were given for. Source: specification of the recall tool, sections 0
(mapping), 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from comis_eval.errors import StoreError
from comis_eval.stages.recall_tool import expiry, importance, screening, tags, twins
from comis_eval.stages.recall_tool.writing import DEFAULT_SCOPE
from comis_eval.text import sha256_text, simhash
from comis_eval.types import Memory, Tenancy

_RETIRED = frozenset(("superseded", "archived"))


class Loaded(NamedTuple):
    """Memories with every field of the recall tool.

    Attributes:
        memories: In the order given, one for each that was given.
        left_out: Why a memory is not to be shown, by place; the others are.
    """

    memories: tuple[Memory, ...]
    left_out: dict[int, str]


def load(
    memories: Sequence[Memory], workspace: Callable[[Tenancy], Tenancy], *, default_expiry: bool
) -> Loaded:
    """Write memories one after the other, by time of writing, as ``remember`` would.

    Args:
        memories: Any.
        workspace: Which workspace a tenancy is.
        default_expiry: Whether rows that name no expiry get the default one.

    Raises:
        StoreError: If a row of agent scope has no author.
    """
    kept = [filled(memory, default_expiry=default_expiry) for memory in memories]
    left_out: dict[int, str] = {}
    current: dict[Hashable, int] = {}
    for place in sorted(range(len(kept)), key=lambda place: kept[place].created_at):
        memory = kept[place]
        fault = refusal(memory)
        if fault is not None:
            left_out[place] = fault
            continue
        if memory.archived or memory.status in _RETIRED:
            continue
        name = (workspace(memory.tenancy), *identity(memory))
        before = current.get(name)
        if before is not None:
            left_out[before] = f"overwritten by {memory.id!r}, which has its key"
            kept[place] = updated(memory, kept[before], memories[place].importance)
        current[name] = place
    return Loaded(tuple(kept), left_out)


def near_duplicates(
    memories: Sequence[Memory], workspace: Callable[[Tenancy], Tenancy]
) -> dict[int, int]:
    """Report memories that say nearly what an older one of their workspace says.

    It is only reported: nothing is refused or merged.

    Returns:
        By place of a memory, the place of the first older one that it is near.
    """
    hashes = np.array([simhash(memory.content) for memory in memories], dtype=np.int64)
    homes: dict[Tenancy, list[int]] = {}
    found: dict[int, int] = {}
    for place in sorted(range(len(memories)), key=lambda place: memories[place].created_at):
        older = homes.setdefault(workspace(memories[place].tenancy), [])
        near = twins.first_near(int(hashes[place]), hashes[older])
        if near is not None:
            found[place] = older[near]
        older.append(place)
    return found


def filled(memory: Memory, *, default_expiry: bool = True) -> Memory:
    """Return a memory with every field of the recall tool.

    Raises:
        StoreError: If it is of agent scope and has no author.
    """
    scope = memory.scope or DEFAULT_SCOPE
    author = memory.created_by or memory.tenancy.agent_id
    if scope == "agent" and not author:
        raise StoreError(
            f"memory {memory.id!r}: scope is agent, but nobody wrote it; give createdBy or agentId"
        )
    days = expiry.days_to_live(scope, memory.tags) if default_expiry else None
    default = None if days is None else memory.created_at + days * expiry.DAY_MS
    return replace(
        memory,
        key=memory.key or key_of(memory.id),
        scope=scope,
        project_id=memory.project_id if scope == "project" else None,
        created_by=author,
        relevance=memory.relevance or 1.0,
        importance=memory.importance or importance.importance(memory.content, memory.tags),
        archived=bool(memory.archived),
        status=memory.status or "active",
        version=memory.version or 1,
        updated_at=memory.created_at if memory.updated_at is None else memory.updated_at,
        expires_at=default if memory.expires_at is None else memory.expires_at,
    )


def updated(memory: Memory, before: Memory, given_importance: float | None) -> Memory:
    """Return what stands after a write to a key that a current row had.

    Place in time and author stay those of the first write. The importance is computed
    anew, with a little more where the tags say the same again, unless the write gave one.
    """
    weight = importance.importance(memory.content, memory.tags)
    return replace(
        memory,
        created_at=before.created_at,
        created_by=before.created_by,
        author_type=before.author_type,
        importance=given_importance or importance.reinforced(weight, memory.tags, before.tags),
    )


def identity(memory: Memory) -> tuple[Hashable, ...]:
    """Return what makes two writes one memory, within a workspace: scope, owner and key."""
    owner = {"project": memory.project_id, "agent": memory.created_by}.get(memory.scope or "")
    return memory.scope, owner, memory.key


def refusal(memory: Memory) -> str | None:
    """Say why a memory may not be written; None: it may."""
    if memory.key is not None and not tags.is_key(memory.key):
        return f"key {memory.key[:40]!r} is none: {tags.KEY_RULE}"
    fault = tags.tag_fault(memory.tags)
    if fault is not None:
        return fault
    found = screening.screen(memory.content)
    return None if found is None else f"{found}; memory was not written"


def key_of(memory_id: str) -> str:
    """Return the key of a memory that has none: ``m-`` and 12 hex digits of its id's hash."""
    return f"m-{sha256_text(memory_id)[:12]}"
