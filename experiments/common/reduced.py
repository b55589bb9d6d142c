"""A set made small enough for a test: fewer tenants with all they remember, fewer questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comis_eval.datasets import Dataset


def reduced(dataset: Dataset, limit: int, seed: int) -> Dataset:
    """Keep about so many queries.

    Whole tenants are taken by name, the last first, until they ask so many questions, with
    their memories; of those questions whole groups in a random order until there are enough.
    What another tenant remembers reaches no answer but through statistics of the whole table
    and rows that scope is enforced on too late. Embeddings that came along are left aside.

    Args:
        dataset: At full size.
        limit: Least number of queries, >= 1; all are kept when there are no more.
        seed: Of the order of the groups.
    """
    if limit >= len(dataset.queries):
        return dataset
    asked: dict[str, int] = {}
    for query in dataset.queries:
        tenant = query.tenancy.tenant_id
        asked[tenant] = asked.get(tenant, 0) + 1
    tenants: set[str] = set()
    for tenant in sorted(asked, reverse=True):
        if sum(asked[one] for one in tenants) >= limit:
            break
        tenants.add(tenant)
    return _of_tenants(dataset, tenants, _some(dataset, tenants, limit, seed))


def _some(dataset: Dataset, tenants: set[str], limit: int, seed: int) -> list[int]:
    members: dict[str, list[int]] = {}
    for position, query in enumerate(dataset.queries):
        if query.tenancy.tenant_id in tenants:
            members.setdefault(query.group or query.id, []).append(position)
    names = sorted(members)
    chosen: list[int] = []
    for place in np.random.default_rng(seed).permutation(len(names)).tolist():
        if len(chosen) >= limit:
            break
        chosen += members[names[place]]
    return sorted(chosen)


def _of_tenants(dataset: Dataset, tenants: set[str], positions: list[int]) -> Dataset:
    """The queries at some positions over the memories of some tenants."""
    part = dataset.subset(positions)
    kept = part.keeping(lambda memory: memory.tenancy.tenant_id in tenants)
    return replace(kept, embeddings={}, folder=None)
