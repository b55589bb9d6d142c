"""How far configurations may reach, so that one table answers for all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates
from comis_eval.lanes import causal, entity, temporal

_EVERYONE = np.iinfo(np.int32).max


class Coverage(NamedTuple):
    """What a table must hold for every configuration that will be asked about.

    Attributes:
        depth: The deepest rank to which a search lane is read.
        rerank: Whether every candidate is put to the reranker.
        entity: Whether the entity lane may run: its neighbours then count as candidates.
        window_days: The widest window of the temporal lane; 0 when it never runs.
        causal: Whether the causal lane may run.
    """

    depth: int
    rerank: bool = False
    entity: bool = False
    window_days: int = 0
    causal: bool = False


def reachable(table: Candidates, coverage: Coverage) -> Candidates:
    """The table with everything that some seeds could bring in through the spread lanes.

    Any candidate may be a seed under some weights, so all of them are taken as seeds, and
    no cap applies.
    """
    corpus, scope = table.corpus, table.batch.scope
    seeds = table.rows

    def anyone(_: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.ones(len(rows), dtype=bool)

    wide = table
    if coverage.entity:
        hits = entity.spread(seeds, corpus, scope, cap=_EVERYONE, reenter=True, allowed=anyone)
        wide, _ = wide.extended(hits)
    if coverage.window_days:
        hits = temporal.spread(
            seeds,
            corpus,
            scope,
            window_days=coverage.window_days,
            cap=_EVERYONE,
            allowed=anyone,
            with_seeds=True,
        )
        wide, _ = wide.extended(hits)
    if coverage.causal and table.links is not None:
        hits = causal.spread(seeds, corpus, scope, links=table.links, cap=_EVERYONE, allowed=anyone)
        wide, _ = wide.extended(hits)
    return wide
