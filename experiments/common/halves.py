"""A half to choose settings on, and a half that they never saw."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets import split_of
from experiments.common.scene import Scene

MANY = 10
"""From so many tenancies on, whole tenancies (conversations) are kept apart."""


class Halves(NamedTuple):
    """Positions of queries."""

    tune: NDArray[np.intp]
    unseen: NDArray[np.intp]


def halves(scene: Scene, seed: int) -> Halves:
    """Split by group within categories; by conversation where a set is made of many."""
    queries = scene.dataset.queries
    tenancies = sorted({(q.tenancy.tenant_id, q.tenancy.agent_id or "") for q in queries})
    if len(tenancies) >= MANY and len({tenant for tenant, _ in tenancies}) == len(tenancies):
        first = set(tenancies[: len(tenancies) // 2])
        mine = np.array([(q.tenancy.tenant_id, q.tenancy.agent_id or "") in first for q in queries])
    else:
        mine = split_of(scene.dataset, seed) == "tune"
    return Halves(np.flatnonzero(mine), np.flatnonzero(~mine))
