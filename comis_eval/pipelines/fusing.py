"""The first half of ranking: the lanes become one list, cut to what may be scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import NO_FATE, NUMBER, SEARCH_LANES, Candidates
from comis_eval.config import Config
from comis_eval.pipelines.spreading import any_spread, spread_lanes
from comis_eval.stages import fuse
from comis_eval.stages.planes import Floats, Mask, Order, Ranks, grown, mark, position
from comis_eval.store.corpus import meets
from comis_eval.types import Fate, Filters

_AFTER = np.int64(1) << 48
"""Above every ordinal that first_seen gives."""


@dataclass(frozen=True, eq=False)
class Fused:
    """The list as it stands after fusion and minScore.

    Attributes:
        table: The table, widened by the spread lanes.
        ranks: Each lane's ranks, cut to its depth.
        scores: Normalised fused scores.
        ordinal: In which order candidates were first seen.
        behind: Sort keys of those who are not in the list.
        alive: Who is in the list.
        fate: What became of the others; -1 for the living and for padding.
        found: Who was found by any lane.
        searched: Who came through the search lanes and their cuts.
    """

    table: Candidates
    ranks: dict[str, Ranks]
    scores: Floats
    ordinal: NDArray[np.int64]
    behind: Floats
    alive: Mask
    fate: NDArray[np.int8]
    found: Mask
    searched: Mask

    @cached_property
    def order(self) -> Order:
        """Columns by score, the living first; most trials never ask."""
        return fuse.listed(self.scores, self.ordinal, self.alive)


def fuse_lanes(table: Candidates, config: Config) -> Fused:
    """Fuse the lanes, let the spread lanes join, and cut to what may be scored.

    In flat fusion every lane enters one fusion. In nested fusion the search lanes are fused
    and cut first, and their list enters a second fusion beside the spread lanes.
    """
    rag, semantics, nested = config.rag, config.semantics, config.semantics.fusion == "nested"
    ranks, found, ordinal, behind = table.searched(config.lane_depth)
    inner = _search_scores(table, config, ranks)
    fate = np.full(table.rows.shape, NO_FATE)

    alive = found
    if semantics.scope_filter == "after_fusion":
        foreign = alive & ~_visible(table)
        mark(fate, foreign, NUMBER[Fate.SCOPE_FILTERED])
        alive = alive & ~foreign
    if nested and not semantics.trust_refill:
        order = fuse.listed(inner, ordinal, alive)
        late = alive & (position(order) >= config.limit)
        mark(fate, late, NUMBER[Fate.BEYOND_LIMIT])
        alive = alive & ~late
    if semantics.scope_filter == "after_fusion":
        alive = alive & ~_expired_or_untagged(table, alive, fate)
    if nested and semantics.min_score_on == "fused":
        low = alive & (inner < rag.min_score)
        mark(fate, low, NUMBER[Fate.BELOW_MIN_SCORE])
        alive = alive & ~low
    searched = alive

    if not any_spread(table, config):
        return _cut(
            Fused(table, ranks, inner, ordinal, behind, searched, fate, found, searched), config
        )

    order = fuse.listed(inner, ordinal, searched)
    table, spread = spread_lanes(table, config, order, searched)
    width = table.rows.shape[1]
    inner = grown(inner, width, 0.0)
    searched, found = grown(searched, width, False), grown(found, width, False)
    fate = grown(fate, width, NO_FATE)
    ranks = {name: grown(lane, width, 0) for name, lane in ranks.items()}
    joined = _any_rank(spread, table)
    mark(fate, joined, NO_FATE)
    lanes = {**ranks, **spread}
    if nested or table.recorded is not None:
        place = np.where(searched, position(_grown_order(order, width)) + 1, 0).astype(np.int32)
        lists = {"search": place, **spread}
        scores = _joined(inner, lists, config)
    else:
        lists = lanes
        total = _weights_with_hits(lanes, config, len(table.rows))
        scores = _fusion(table, config, lanes, total)
    # What the searched list lost is in none of the lists; it keeps its place in the search.
    lost = grown(ordinal, width, 0) + _AFTER
    ordinal = np.where(_any_rank(lists, table), fuse.first_seen(list(lists.values())), lost)
    alive = searched | joined
    behind = fuse.behind(ordinal)
    return _cut(
        Fused(table, lanes, scores, ordinal, behind, alive, fate, found | joined, searched), config
    )


def no_list(table: Candidates) -> Fused:
    """What ``rag.enabled: false`` leaves of a table: nobody was found."""
    shape = table.rows.shape
    nobody = np.zeros(shape, dtype=bool)
    ordinal = np.broadcast_to(np.arange(shape[1]), shape)
    fate = np.full(shape, NO_FATE)
    scores, behind = np.zeros(shape), fuse.behind(ordinal)
    return Fused(table, {}, scores, ordinal, behind, nobody, fate, nobody, nobody)


def _search_scores(table: Candidates, config: Config, ranks: dict[str, Ranks]) -> Floats:
    """The fusion of the search lanes alone."""
    if table.recorded is not None:
        return table.recorded
    if config.semantics.fusion == "nested":
        # The shipped system normalises by both weights even when a lane is empty.
        both = sum(config.lane_weight(name) for name in SEARCH_LANES)
        total = np.full(len(table.rows), both)
        return _fusion(table, config, ranks, total)
    return _fusion(table, config, ranks, _weights_with_hits(ranks, config, len(table.rows)))


def _joined(inner: Floats, lists: dict[str, Ranks], config: Config) -> Floats:
    weights = [1.0 if name == "search" else config.lane_weight(name) for name in lists]
    return fuse.join(inner, list(lists.values()), weights, k=config.harness.fusion.k)


def _fusion(table: Candidates, config: Config, lanes: dict[str, Ranks], total: Floats) -> Floats:
    if not lanes:
        return np.zeros(table.rows.shape)
    weights = [config.lane_weight(name) for name in lanes]
    if config.harness.fusion.kind == "convex":
        scores = [
            table.lanes[name].scores if name in table.lanes else _falling(lane)
            for name, lane in lanes.items()
        ]
        return fuse.convex(scores, list(lanes.values()), weights, total)
    return fuse.rrf(list(lanes.values()), weights, total, k=config.harness.fusion.k)


def _falling(lane: Ranks) -> Floats:
    """A score for lanes whose own is not comparable between queries: their rank, turned."""
    return np.where(lane > 0, -lane.astype(np.float64), 0.0)


def _weights_with_hits(lanes: dict[str, Ranks], config: Config, queries: int) -> Floats:
    total = np.zeros(queries)
    for name, lane in lanes.items():
        total += np.where((lane > 0).any(axis=1), config.lane_weight(name), 0.0)
    return total


def _visible(table: Candidates) -> Mask:
    """Who passes the shipped system's scope filter: tenant, agent when one is named, trust."""
    visible = np.ones(table.rows.shape, dtype=bool)
    tenancies = table.corpus.tenancies
    sees: dict[object, Mask] = {}
    for number, asker in enumerate(table.batch.tenancies):
        if asker not in sees:
            sees[asker] = np.array(
                [
                    tenancy.tenant_id == asker.tenant_id
                    and asker.agent_id in (None, tenancy.agent_id)
                    for tenancy in tenancies
                ],
                dtype=bool,
            )
        visible[number] = sees[asker][table.corpus.scope[table.rows[number]]]
        level = table.batch.filters[number].trust_level
        if level is not None:
            visible[number] &= table.trust[number] == level.rank
    return visible


def _expired_or_untagged(table: Candidates, alive: Mask, fate: NDArray[np.int8]) -> Mask:
    """Who the shipped system drops after its limit, without refill."""
    expired = alive & (table.corpus.expires_at[table.rows] <= table.batch.now[:, None])
    mark(fate, expired, NUMBER[Fate.EXPIRED])
    gone = expired
    for number, filters in enumerate(table.batch.filters):
        if filters.tags:
            tagged = meets(table.corpus, Filters(tags=filters.tags), table.rows[number])
            lacking = alive[number] & ~expired[number] & ~tagged
            fate[number, lacking] = NUMBER[Fate.SCOPE_FILTERED]
            gone[number] |= lacking
    return gone


def _cut(fused: Fused, config: Config) -> Fused:
    """The cuts that come after the last fusion: production's limit, and minScore."""
    rag, semantics, alive = config.rag, config.semantics, fused.alive
    nested = semantics.fusion == "nested"
    if not nested and not semantics.trust_refill:
        late = alive & (position(fused.order) >= config.limit)
        late &= ~_any_rank(_spread_ranks(fused), fused.table)
        mark(fused.fate, late, NUMBER[Fate.BEYOND_LIMIT])
        alive = alive & ~late
    if semantics.min_score_on == "fused":
        low = alive & (fused.scores < rag.min_score) & ~exempt(fused, config)
        if nested:
            low &= ~fused.searched  # these were compared before the second fusion
        mark(fused.fate, low, NUMBER[Fate.BELOW_MIN_SCORE])
        alive = alive & ~low
    if alive is fused.alive or (alive == fused.alive).all():
        return fused
    return replace(fused, alive=alive)


def exempt(fused: Fused, config: Config) -> Mask:
    """Hits that only spread lanes returned, when the semantics spares them minScore."""
    if not config.semantics.min_score_exempts_entity:
        return np.zeros(fused.alive.shape, dtype=bool)
    return _any_rank(_spread_ranks(fused), fused.table) & ~fused.searched


def _spread_ranks(fused: Fused) -> dict[str, Ranks]:
    return {name: lane for name, lane in fused.ranks.items() if name not in SEARCH_LANES}


def _any_rank(lanes: dict[str, Ranks], table: Candidates) -> Mask:
    some = np.zeros(table.rows.shape, dtype=bool)
    for lane in lanes.values():
        some |= lane > 0
    return some


def _grown_order(order: Order, width: int) -> Order:
    behind = np.arange(order.shape[1], width)
    return np.concatenate([order, np.broadcast_to(behind, (len(order), len(behind)))], axis=1)
