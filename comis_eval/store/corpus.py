"""What is read from the store once and then only indexed: memories as columns.

A memory's *row* is its position here, from 0, in the order in which memories were inserted
and are still there. Lanes, candidates and metrics speak in rows; ids and texts come back in
only at the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from comis_eval.store.entities import Resolver
from comis_eval.types import Filters, Memory, MemoryType, Tenancy, TrustLevel

NEVER = np.iinfo(np.int64).max
"""Stands for an expiry that never comes."""

UNKNOWN = np.iinfo(np.int64).min
"""Stands for an event time that nobody knows."""

MEMORY_TYPES = tuple(MemoryType)
TRUST_LEVELS = tuple(sorted(TrustLevel, key=lambda level: level.rank))
"""By rank: external, learned, system."""


class Entities(NamedTuple):
    """Which memory mentions which entity, one pair an element, sorted by row then entity.

    Attributes:
        rows: Memory rows, shape (n,), int32.
        entities: Entity numbers, shape (n,), int32; an entity belongs to one tenancy.
        names: Canonical name of each entity.
    """

    rows: NDArray[np.int32]
    entities: NDArray[np.int32]
    names: tuple[str, ...]


class Holders(NamedTuple):
    """Which memories mention each entity.

    Attributes:
        starts: Entity e's memories are ``rows[starts[e]:starts[e + 1]]``, shape (e + 1,).
        rows: Memory rows, ascending within an entity, shape (n,).
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Memories as columns, in insertion order.

    Attributes:
        memories: The records, one a row.
        entities: Entity incidence, resolved by the store's writing rules.
        tenancies: Every tenancy that has a memory; ``scope`` indexes it.
    """

    memories: tuple[Memory, ...]
    entities: Entities
    tenancies: tuple[Tenancy, ...]

    @classmethod
    def from_memories(cls, memories: Iterable[Memory]) -> Self:
        """Return the columns of memories that are in no store.

        Their entity mentions are resolved as the store would, in the order given; the
        store's writing rules are not checked, ids must be unique.
        """
        kept = tuple(memories)
        resolver = Resolver()
        links = {
            (row, resolver.resolve(memory.tenancy, name))
            for row, memory in enumerate(kept)
            for name in memory.entities
        }
        pairs = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
        return cls(kept, entities_of(pairs[:, 0], pairs[:, 1], resolver.names), tenancies_of(kept))

    def __len__(self) -> int:
        return len(self.memories)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each memory id."""
        return {memory.id: row for row, memory in enumerate(self.memories)}

    @cached_property
    def scope_of(self) -> dict[Tenancy, int]:
        """Number of each tenancy."""
        return {tenancy: number for number, tenancy in enumerate(self.tenancies)}

    @cached_property
    def scope(self) -> NDArray[np.int32]:
        """Tenancy number of each memory, shape (m,)."""
        return np.array([self.scope_of[m.tenancy] for m in self.memories], dtype=np.int32)

    @cached_property
    def trust(self) -> NDArray[np.int8]:
        """Trust rank of each memory, shape (m,): 2 system, 1 learned, 0 external."""
        return np.array([m.trust_level.rank for m in self.memories], dtype=np.int8)

    @cached_property
    def memory_type(self) -> NDArray[np.int8]:
        """Index into MEMORY_TYPES of each memory, shape (m,)."""
        numbers = {kind: number for number, kind in enumerate(MEMORY_TYPES)}
        return np.array([numbers[m.memory_type] for m in self.memories], dtype=np.int8)

    @cached_property
    def created_at(self) -> NDArray[np.int64]:
        """When each memory was written, ms, shape (m,)."""
        return np.array([m.created_at for m in self.memories], dtype=np.int64)

    @cached_property
    def expires_at(self) -> NDArray[np.int64]:
        """When each memory expires, ms, shape (m,); NEVER when it does not."""
        expiries = [NEVER if m.expires_at is None else m.expires_at for m in self.memories]
        return np.array(expiries, dtype=np.int64)

    @cached_property
    def occurred_at(self) -> NDArray[np.int64]:
        """When what each memory tells happened, ms, shape (m,); UNKNOWN when not known."""
        times = [UNKNOWN if m.occurred_at is None else m.occurred_at for m in self.memories]
        return np.array(times, dtype=np.int64)

    @cached_property
    def tagged(self) -> dict[str, NDArray[np.bool_]]:
        """Which memories carry each tag, shape (m,)."""
        carriers: dict[str, NDArray[np.bool_]] = {}
        for row, memory in enumerate(self.memories):
            for tag in memory.tags:
                carriers.setdefault(tag, np.zeros(len(self), dtype=bool))[row] = True
        return carriers

    @cached_property
    def holders(self) -> Holders:
        """The entity incidence by entity instead of by row."""
        rows, entities, names = self.entities
        counts = np.bincount(entities, minlength=len(names))
        order = np.argsort(entities, kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return Holders(starts, rows[order].astype(np.int64))

    @cached_property
    def id_rank(self) -> NDArray[np.int32]:
        """Position of each memory's id in ascending code point order, shape (m,)."""
        order = sorted(range(len(self)), key=lambda row: self.memories[row].id)
        ranks = np.empty(len(self), dtype=np.int32)
        ranks[order] = np.arange(len(self), dtype=np.int32)
        return ranks


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """What the lanes need of a query set, one element a query.

    Attributes:
        texts: The search strings, already formulated.
        tenancies: Whose memories each query may see.
        scope: The tenancy's number in the corpus, shape (q,); -1 when it has no memory.
        now: The moment of asking, ms, shape (q,).
        filters: What each query asks besides its text.
        vectors: Embedded texts, shape (q, dim); None when no embedder runs.
        allowed: Says which (query, memory) pairs may meet, both shape (n,), instead of
            tenancy, expiry and filters; rows are still searched by ``scope``.
    """

    texts: tuple[str, ...]
    tenancies: tuple[Tenancy, ...]
    scope: NDArray[np.int32]
    now: NDArray[np.int64]
    filters: tuple[Filters, ...]
    vectors: NDArray[np.float32] | None = None
    allowed: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def askers(self) -> tuple[tuple[Filters, NDArray[np.bool_]], ...]:
        """Every distinct filter that asks something, with which queries ask it, shape (q,)."""
        askers: dict[tuple[object, ...], tuple[Filters, list[int]]] = {}
        for query, filters in enumerate(self.filters):
            asked = (filters.memory_type, filters.trust_level, frozenset(filters.tags))
            if any(asked):
                askers.setdefault(asked, (filters, []))[1].append(query)
        numbers = np.arange(len(self))
        return tuple((filters, np.isin(numbers, asking)) for filters, asking in askers.values())


def entities_of(
    rows: NDArray[np.int64], numbers: NDArray[np.int64], names: Sequence[str]
) -> Entities:
    """Return the incidence of (row, entity) pairs that are sorted and distinct."""
    return Entities(rows.astype(np.int32), numbers.astype(np.int32), tuple(names))


def tenancies_of(memories: Sequence[Memory]) -> tuple[Tenancy, ...]:
    """Return the tenancies of memories, in order of first appearance."""
    return tuple(dict.fromkeys(memory.tenancy for memory in memories))


def eligible(
    corpus: Corpus, batch: QueryBatch, queries: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which (query, memory) pairs may meet: same tenancy, not expired, filters met.

    Args:
        corpus: The memories.
        batch: The queries.
        queries: Query positions, shape (n,).
        rows: Memory rows, shape (n,).

    Returns:
        One answer a pair, shape (n,). ``expires_at <= now`` is expired.
    """
    if batch.allowed is not None:
        return batch.allowed(queries, rows)
    ok: NDArray[np.bool_] = corpus.scope[rows] == batch.scope[queries]
    ok &= corpus.expires_at[rows] > batch.now[queries]
    for filters, askers in batch.askers:
        mine = askers[queries]
        ok[mine] &= meets(corpus, filters, rows[mine])
    return ok


def meets(corpus: Corpus, filters: Filters, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which memories have the type, the trust level and all the tags asked for."""
    ok = np.ones(len(rows), dtype=bool)
    if filters.memory_type is not None:
        ok &= corpus.memory_type[rows] == MEMORY_TYPES.index(filters.memory_type)
    if filters.trust_level is not None:
        ok &= corpus.trust[rows] == filters.trust_level.rank
    for tag in filters.tags:
        ok &= corpus.tagged[tag][rows] if tag in corpus.tagged else False
    return ok
