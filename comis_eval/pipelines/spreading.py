"""The spread lanes: who stands near the head of the search lanes' list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates
from comis_eval.config import Config
from comis_eval.lanes import causal, temporal
from comis_eval.stages.planes import Mask, Order, Ranks, along, grown
from comis_eval.store.corpus import eligible


def any_spread(table: Candidates, config: Config) -> bool:
    """Whether any spread lane is asked."""
    return any(_on(table, config).values())


def spread_lanes(
    table: Candidates, config: Config, order: Order, searched: Mask
) -> tuple[Candidates, dict[str, Ranks]]:
    """Ask the spread lanes, starting from the head of the search lanes' fusion."""
    rag, semantics, on = config.rag, config.semantics, _on(table, config)
    count = min(rag.entity_lane.seed_count, order.shape[1])
    head = order[:, :count]
    seeds = np.where(along(searched, head), along(table.rows, head), -1).astype(np.int32)

    def in_lane(queries: NDArray[np.int64], rows: NDArray[np.int64]) -> Mask:
        return eligible(table.corpus, table.batch, queries, rows)

    def anyone(_: NDArray[np.int64], rows: NDArray[np.int64]) -> Mask:
        return np.ones(len(rows), dtype=bool)

    allowed = in_lane if semantics.scope_filter == "in_lane" else anyone
    corpus, scope = table.corpus, table.batch.scope
    spread: dict[str, Ranks] = {}
    if on["entity"]:
        hits = table.entity_lane(
            seeds,
            corpus,
            scope,
            cap=rag.entity_lane.per_entity_cap,
            reenter=semantics.entity_seeds_reenter,
            allowed=allowed,
        )
        table, spread["entity"] = table.extended(hits)
    if on["temporal"]:
        hits = temporal.spread(
            seeds,
            corpus,
            scope,
            window_days=rag.lanes.temporal.window_days,
            cap=rag.max_results,
            allowed=allowed,
        )
        table, spread["temporal"] = table.extended(hits)
    if on["causal"] and table.links is not None:
        hits = causal.spread(
            seeds, corpus, scope, links=table.links, cap=rag.max_results, allowed=allowed
        )
        table, spread["causal"] = table.extended(hits)
    width = table.rows.shape[1]
    return table, {name: grown(lane, width, 0) for name, lane in spread.items()}


def _on(table: Candidates, config: Config) -> dict[str, bool]:
    rag = config.rag
    return {
        "entity": rag.entity_lane.enabled,
        "temporal": rag.lanes.temporal.enabled,
        "causal": rag.lanes.causal.enabled and table.links is not None,
    }
