"""What is read from the store once and then only indexed: memories as columns.

A memory's *row* is its position here: insertion order, ``rowid - 1``. Lanes, candidates
and metrics speak in rows; ids and texts come back in only at the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.types import Filters, Memory, MemoryType, Tenancy, TrustLevel

NEVER = np.iinfo(np.int64).max
"""Stands for an expiry that never comes."""

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
        return self._column([self.scope_of[m.tenancy] for m in self.memories], np.int32)

    @cached_property
    def trust(self) -> NDArray[np.int8]:
        """Trust rank of each memory, shape (m,): 2 system, 1 learned, 0 external."""
        return self._column([m.trust_level.rank for m in self.memories], np.int8)

    @cached_property
    def memory_type(self) -> NDArray[np.int8]:
        """Index into MEMORY_TYPES of each memory, shape (m,)."""
        numbers = {kind: number for number, kind in enumerate(MEMORY_TYPES)}
        return self._column([numbers[m.memory_type] for m in self.memories], np.int8)

    @cached_property
    def created_at(self) -> NDArray[np.int64]:
        """When each memory was written, ms, shape (m,)."""
        return self._column([m.created_at for m in self.memories], np.int64)

    @cached_property
    def expires_at(self) -> NDArray[np.int64]:
        """When each memory expires, ms, shape (m,); NEVER when it does not."""
        expiries = [NEVER if m.expires_at is None else m.expires_at for m in self.memories]
        return self._column(expiries, np.int64)

    @cached_property
    def id_rank(self) -> NDArray[np.int32]:
        """Position of each memory's id in ascending code point order, shape (m,)."""
        order = sorted(range(len(self)), key=lambda row: self.memories[row].id)
        ranks = np.empty(len(self), dtype=np.int32)
        ranks[order] = np.arange(len(self), dtype=np.int32)
        return ranks

    def _column(self, values: list[int], dtype: type[np.generic]) -> NDArray[np.generic]:
        return np.array(values, dtype=dtype)


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
    """

    texts: tuple[str, ...]
    tenancies: tuple[Tenancy, ...]
    scope: NDArray[np.int32]
    now: NDArray[np.int64]
    filters: tuple[Filters, ...]
    vectors: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.texts)


def eligible(
    corpus: Corpus, batch: QueryBatch, queries: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which (query, memory) pairs may meet: same tenancy, not expired, filters met.

    Args:
        queries: Query positions, shape (n,).
        rows: Memory rows, shape (n,).

    Returns:
        One answer a pair, shape (n,). ``expires_at <= now`` is expired.
    """
    ok = corpus.scope[rows] == batch.scope[queries]
    ok &= corpus.expires_at[rows] > batch.now[queries]
    for query in {int(q) for q in queries if _asks(batch.filters[q])}:
        mine = queries == query
        ok[mine] &= meets(corpus, batch.filters[query], rows[mine])
    return ok


def meets(corpus: Corpus, filters: Filters, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which memories have the type, the trust level and all the tags asked for."""
    ok = np.ones(len(rows), dtype=bool)
    if filters.memory_type is not None:
        ok &= corpus.memory_type[rows] == MEMORY_TYPES.index(filters.memory_type)
    if filters.trust_level is not None:
        ok &= corpus.trust[rows] == filters.trust_level.rank
    if filters.tags:
        asked = set(filters.tags)
        ok &= np.array([asked <= set(corpus.memories[row].tags) for row in rows], dtype=bool)
    return ok


def _asks(filters: Filters) -> bool:
    return bool(filters.tags) or filters.memory_type is not None or filters.trust_level is not None
