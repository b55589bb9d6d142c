"""From candidates to rankings: every stage after retrieval, over a whole query set.

A pure function of a table and a configuration. Both semantics run through the same code;
where they differ, a switch of the configuration says so. Arrays are shape (q, c) in column
space; ``order`` alone says how the columns stand in the list.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES, SEARCH_LANES, Candidates, Rankings, no_faults
from comis_eval.config import Config
from comis_eval.lanes import causal, temporal
from comis_eval.stages import budget, dedup, diversify, fuse, present, rerank, score, trust
from comis_eval.store.corpus import eligible, meets
from comis_eval.types import Fate, Filters

Mask = NDArray[np.bool_]
Ranks = NDArray[np.int32]
Floats = NDArray[np.float64]
Order = NDArray[np.intp]
_T = TypeVar("_T", bound=np.generic)

_NUMBER = {fate: np.int8(number) for number, fate in enumerate(FATES)}
_NO_FATE = np.int8(-1)
_AFTER = np.int64(1) << 48
"""Above every ordinal that first_seen gives."""


class Fused(NamedTuple):
    """The list as it stands after fusion and minScore.

    Attributes:
        table: The table, widened by the spread lanes.
        ranks: Each lane's ranks, cut to its depth.
        scores: Normalised fused scores.
        order: Columns by score, the living first.
        alive: Who is in the list.
        fate: What became of the others; -1 for the living and for padding.
        found: Who was found by any lane.
        searched: Who came through the search lanes and their cuts.
    """

    table: Candidates
    ranks: dict[str, Ranks]
    scores: Floats
    order: Order
    alive: Mask
    fate: NDArray[np.int8]
    found: Mask
    searched: Mask


class Injected(NamedTuple):
    """What is put into the prompt.

    Attributes:
        inline: Who goes beside the user message.
        section: Who goes into the section.
        over_budget: Who did not fit.
        chars: Length of the section, shape (q,); 0 when nothing fits.
    """

    inline: Mask
    section: Mask
    over_budget: Mask
    chars: NDArray[np.int64]


def rank(table: Candidates, config: Config) -> Rankings:
    """Run fuse, rerank, score, trust, dedup and budget over the table.

    Args:
        table: Must hold what the configuration reaches.
        config: With ``rag.enabled: false`` every ranking is empty.

    Raises:
        CoverageError: If the configuration reaches outside the table.
    """
    rag, semantics = config.rag, config.semantics
    table.check_covers(config)
    fused = fuse_lanes(table, config) if rag.enabled else _nothing(table)
    table, fate = fused.table, fused.fate.copy()

    asked = _asked(fused, config)
    answers = table.rerank_plane(asked)
    reranked = _rerank(fused, config, asked, answers)
    final = score.boost(reranked.base, table.signals, alphas_of(config))
    listed = fused.order
    ranked = score.order(
        _along(final, listed),
        _along(table.trust, listed),
        _along(reranked.tail, listed),
        _along(fused.alive, listed),
    )
    order = _along(listed, ranked)

    scored = fused.alive
    if semantics.min_score_on == "final":
        low = scored & (final < rag.min_score) & ~_exempt(fused, config)
        fate[low] = _NUMBER[Fate.BELOW_MIN_SCORE]
        scored = scored & ~low

    trusted = scored & trust.allowed(table.trust, rag.include_trust_levels)
    filtered = scored & ~trusted
    np.copyto(fate, _NUMBER[Fate.TRUST_FILTERED], where=filtered)
    if rag.mmr.enabled:
        order = _diversified(table, order, final, trusted, weight=rag.mmr.lambda_)

    kept, deduped_by = _deduplicated(table, config, order, trusted)
    fate[trusted & ~kept] = _NUMBER[Fate.DEDUPED]
    # Numbers of one byte: the ranking, then what the trust filter took, then the doubles.
    group = np.full(kept.shape, 3, dtype=np.int8)
    for first, number in ((trusted, 2), (filtered, 1), (kept, 0)):
        np.copyto(group, np.int8(number), where=first)
    order = _along(order, np.argsort(_along(group, order), axis=1, kind="stable"))

    inline, section, over, chars = inject(table, config, order, kept, final)
    included = section | inline
    np.copyto(fate, _NUMBER[Fate.BEYOND_MAX_RESULTS], where=kept)
    np.copyto(fate, _NUMBER[Fate.OVER_BUDGET], where=over)
    np.copyto(fate, _NUMBER[Fate.INCLUDED], where=included)

    return Rankings(
        table=table,
        config=config,
        order=order,
        length=kept.sum(axis=1),
        fate=fate,
        deduped_by=deduped_by,
        ranks=fused.ranks,
        fused=fused.scores,
        fused_order=fused.order,
        searched=fused.searched,
        base=reranked.base,
        final=final,
        reranker=answers,
        rerank_pool=asked,
        rerank_outcome=reranked.outcome,
        rerank_reason=reranked.reason,
        included=included,
        inline=inline,
        context_chars=chars + _line_lengths(table, config, np.where(inline, table.rows, -1)),
        presence={
            "search": fused.found,
            "fuse": fused.alive,
            "rerank": fused.alive,
            "score": scored,
            "trust": trusted,
            "dedup": kept,
            "budget": included,
        },
    )


def fuse_lanes(table: Candidates, config: Config) -> Fused:
    """Fuse the lanes, let the spread lanes join, and cut to what may be scored.

    In flat fusion every lane enters one fusion. In nested fusion the search lanes are fused
    and cut first, and their list enters a second fusion beside the spread lanes.
    """
    rag, semantics, nested = config.rag, config.semantics, config.semantics.fusion == "nested"
    ranks, found, ordinal = table.searched(config.lane_depth)
    inner = _search_scores(table, config, ranks)
    fate = np.full(table.rows.shape, _NO_FATE)

    alive = found
    if semantics.scope_filter == "after_fusion":
        foreign = alive & ~_visible(table)
        fate[foreign] = _NUMBER[Fate.SCOPE_FILTERED]
        alive = alive & ~foreign
    if nested and not semantics.trust_refill:
        order = _listed(inner, ordinal, alive)
        late = alive & (_position(order) >= config.limit)
        fate[late] = _NUMBER[Fate.BEYOND_LIMIT]
        alive = alive & ~late
    if semantics.scope_filter == "after_fusion":
        alive = alive & ~_expired_or_untagged(table, alive, fate)
    if nested and semantics.min_score_on == "fused":
        low = alive & (inner < rag.min_score)
        fate[low] = _NUMBER[Fate.BELOW_MIN_SCORE]
        alive = alive & ~low
    searched = alive

    order = _listed(inner, ordinal, searched)
    table, spread = _spread(table, config, order, searched)
    if not spread:
        fused = Fused(table, ranks, inner, order, searched, fate, found, searched)
        return _cut(fused, config, ordinal)

    width = table.rows.shape[1]
    inner = _grown(inner, width, 0.0)
    searched, found = _grown(searched, width, False), _grown(found, width, False)
    fate = _grown(fate, width, _NO_FATE)
    ranks = {name: _grown(lane, width, 0) for name, lane in ranks.items()}
    joined = _any_rank(spread, table)
    fate[joined] = _NO_FATE
    lanes = {**ranks, **spread}
    if nested or table.recorded is not None:
        place = np.where(searched, _position(_grown_order(order, width)) + 1, 0).astype(np.int32)
        lists = {"search": place, **spread}
        scores = _joined(inner, lists, config)
    else:
        lists = lanes
        total = _weights_with_hits(lanes, config, len(table.rows))
        scores = _fusion(table, config, lanes, total)
    # What the searched list lost is in none of the lists; it keeps its place in the search.
    lost = _grown(ordinal, width, 0) + _AFTER
    ordinal = np.where(_any_rank(lists, table), fuse.first_seen(list(lists.values())), lost)
    alive = searched | joined
    order = _listed(scores, ordinal, alive)
    fused = Fused(table, lanes, scores, order, alive, fate, found | joined, searched)
    return _cut(fused, config, ordinal)


def rerank_pool(fused: Fused, config: Config) -> Mask:
    """The candidates that a reranker is asked about when the configuration turns it on."""
    settings = config.rag.rerank
    return rerank.pool(
        _position(fused.order),
        fused.alive,
        max_candidates=settings.max_candidates,
        min_results=settings.min_results,
    )


def _asked(fused: Fused, config: Config) -> Mask:
    held = fused.table.rerank
    if not config.rag.rerank.enabled or held is None:
        return np.zeros(fused.alive.shape, dtype=bool)
    asked = rerank_pool(fused, config)
    if held.fault is not None:
        asked &= (held.fault != rerank.Reason.UNAVAILABLE)[:, None]
    return asked


def _rerank(fused: Fused, config: Config, asked: Mask, answers: Floats) -> rerank.Reranked:
    settings, queries = config.rag.rerank, len(asked)
    held = fused.table.rerank
    if not settings.enabled or held is None:
        wanted = settings.enabled and config.rag.enabled
        why = rerank.Reason.ABSENT if wanted else rerank.Reason.DISABLED
        return rerank.Reranked(
            fused.scores,
            np.zeros(asked.shape, dtype=bool),
            np.full(queries, rerank.Outcome.SKIPPED, dtype=np.int8),
            np.full(queries, why, dtype=np.int8),
            asked,
        )
    cost = config.harness.reranker
    modelled = cost.fixed_ms + cost.ms_per_candidate * asked.sum(axis=1)
    return rerank.apply(
        fused.scores,
        asked,
        answers,
        modelled if held.elapsed_ms is None else held.elapsed_ms,
        no_faults(queries) if held.fault is None else held.fault,
        timeout_ms=settings.timeout_ms,
    )


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


def _joined(inner: Floats, lists: dict[str, Ranks], config: Config) -> Floats:
    weights = [1.0 if name == "search" else config.lane_weight(name) for name in lists]
    return fuse.join(inner, list(lists.values()), weights, k=config.harness.fusion.k)


def _weights_with_hits(lanes: dict[str, Ranks], config: Config, queries: int) -> Floats:
    total = np.zeros(queries)
    for name, lane in lanes.items():
        total += np.where((lane > 0).any(axis=1), config.lane_weight(name), 0.0)
    return total


def _spread(
    table: Candidates, config: Config, order: Order, searched: Mask
) -> tuple[Candidates, dict[str, Ranks]]:
    """Ask the spread lanes, starting from the head of the search lanes' fusion."""
    rag, semantics = config.rag, config.semantics
    on = {
        "entity": rag.entity_lane.enabled,
        "temporal": rag.lanes.temporal.enabled,
        "causal": rag.lanes.causal.enabled and table.links is not None,
    }
    if not any(on.values()):
        return table, {}
    count = min(rag.entity_lane.seed_count, order.shape[1])
    head = order[:, :count]
    seeds = np.where(_along(searched, head), _along(table.rows, head), -1).astype(np.int32)

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
    return table, {name: _grown(lane, width, 0) for name, lane in spread.items()}


def _cut(fused: Fused, config: Config, ordinal: NDArray[np.int64]) -> Fused:
    """The cuts that come after the last fusion: production's limit, and minScore."""
    rag, semantics, alive = config.rag, config.semantics, fused.alive
    nested = semantics.fusion == "nested"
    if not nested and not semantics.trust_refill:
        late = alive & (_position(fused.order) >= config.limit)
        late &= ~_any_rank(_spread_ranks(fused), fused.table)
        fused.fate[late] = _NUMBER[Fate.BEYOND_LIMIT]
        alive = alive & ~late
    if semantics.min_score_on == "fused":
        low = alive & (fused.scores < rag.min_score) & ~_exempt(fused, config)
        if nested:
            low &= ~fused.searched  # these were compared before the second fusion
        fused.fate[low] = _NUMBER[Fate.BELOW_MIN_SCORE]
        alive = alive & ~low
    if alive is fused.alive or (alive == fused.alive).all():
        return fused
    return fused._replace(order=_listed(fused.scores, ordinal, alive), alive=alive)


def _exempt(fused: Fused, config: Config) -> Mask:
    """Hits that only spread lanes returned, when the semantics spares them minScore."""
    if not config.semantics.min_score_exempts_entity:
        return np.zeros(fused.alive.shape, dtype=bool)
    return _any_rank(_spread_ranks(fused), fused.table) & ~fused.searched


def _spread_ranks(fused: Fused) -> dict[str, Ranks]:
    return {name: lane for name, lane in fused.ranks.items() if name not in SEARCH_LANES}


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
    fate[expired] = _NUMBER[Fate.EXPIRED]
    gone = expired
    for number, filters in enumerate(table.batch.filters):
        if filters.tags:
            tagged = meets(table.corpus, Filters(tags=filters.tags), table.rows[number])
            lacking = alive[number] & ~expired[number] & ~tagged
            fate[number, lacking] = _NUMBER[Fate.SCOPE_FILTERED]
            gone[number] |= lacking
    return gone


def _diversified(
    table: Candidates, order: Order, final: Floats, alive: Mask, *, weight: float
) -> Order:
    """Reorder the survivors of each query by maximal marginal relevance."""
    vectors = table.vectors
    if vectors is None:
        return order
    diverse = order.copy()
    for query in np.flatnonzero(alive.any(axis=1)):
        places = np.flatnonzero(alive[query, order[query]])
        columns = order[query, places]
        rows = table.rows[query, columns]
        chosen = diversify.mmr(
            final[query, columns],
            vectors.matrix[rows].astype(np.float64),
            vectors.has[rows],
            table.corpus.id_rank[rows],
            weight=weight,
        )
        diverse[query, places] = columns[chosen]
    return diverse


def _deduplicated(
    table: Candidates, config: Config, order: Order, alive: Mask
) -> tuple[Mask, NDArray[np.int32]]:
    """Who stays, and the column of who stays in the others' stead."""
    semantics = config.semantics
    by = np.full(order.shape, -1, dtype=np.int32)
    some = table.with_repeats(semantics.dedup_units)
    if not len(some):
        return alive, by
    order = order[some]
    rows = _along(table.rows[some], order)
    deduped = dedup.drop(
        table.facts.prints(semantics.dedup_units)[rows],
        _along(alive[some], order),
        table.corpus.created_at[rows],
        keep=semantics.dedup_keep,
    )
    dropped = deduped.by >= 0
    keeper = np.where(dropped, _along(order, np.maximum(deduped.by, 0)), -1)
    by[some] = _back(keeper.astype(np.int32), order)
    kept = alive.copy()
    kept[some] = _back(deduped.kept, order)
    return kept, by


def inject(table: Candidates, config: Config, order: Order, kept: Mask, final: Floats) -> Injected:
    """Decide what goes beside the user message and what into the section.

    The first of the list goes inline when its boosted score reaches ``inlineMinScore``; it
    then leaves the section, which has the whole budget for the others.

    Args:
        table: The candidates.
        config: Budget and switches.
        order: Columns of the list; those that are kept lead it.
        kept: Who is in the list.
        final: Boosted scores.
    """
    rag, semantics = config.rag, config.semantics
    queries, width = kept.shape
    inline = np.zeros(kept.shape, dtype=bool)
    if semantics.inline_min_score is not None and width:
        top, every = order[:, 0], np.arange(queries)
        taken = kept[every, top] & (final[every, top] >= semantics.inline_min_score)
        inline[every[taken], top[taken]] = True
    limit = np.full(queries, rag.max_results if semantics.trim_to_max_results else width)
    limit -= inline.any(axis=1)
    section, over = np.zeros(kept.shape, dtype=bool), np.zeros(kept.shape, dtype=bool)
    # Without an overflow only the head of a list can be injected; the whole of it is looked
    # at where a line that does not fit may let a later one in.
    head = min(width, int(limit.max(initial=0)) + 1)
    fitted = _fitted(table, config, order[:, :head], kept & ~inline, limit, None)
    for plane, part in ((section, fitted.included), (over, fitted.over_budget)):
        plane.put(_flat(order[:, :head], width), part)
    chars = fitted.chars
    again = np.flatnonzero(fitted.over_budget.any(axis=1))
    if len(again) and head < width:
        whole = order[again]
        rest = _fitted(table, config, whole, (kept & ~inline)[again], limit[again], again)
        section[again], over[again] = (
            _back(rest.included, whole),
            _back(rest.over_budget, whole),
        )
        chars[again] = rest.chars
    return Injected(inline, section, over, chars)


def _fitted(
    table: Candidates,
    config: Config,
    order: Order,
    kept: Mask,
    limit: NDArray[np.int64],
    queries: NDArray[np.intp] | None,
) -> budget.Fitted:
    """Fit some columns of some queries' lists, in list space; None: of all queries."""
    held = table.rows if queries is None else table.rows[queries]
    listed = _along(kept, order)
    rows = np.where(listed, _along(held, order), -1)
    return budget.fit(
        table.facts.line_lengths(style_of(config), rows),
        listed,
        header=present.length(present.HEADER, config.semantics.length_units),
        max_results=limit,
        max_chars=config.rag.max_context_chars,
        overflow=config.semantics.budget_overflow,
    )


def style_of(config: Config) -> present.Style:
    """How the configuration wants lines written and counted."""
    semantics = config.semantics
    return present.Style(semantics.line_format, semantics.wrap, semantics.length_units)


def _line_lengths(table: Candidates, config: Config, rows: Ranks) -> NDArray[np.int64]:
    total: NDArray[np.int64] = table.facts.line_lengths(style_of(config), rows).sum(axis=1)
    return total


def alphas_of(config: Config) -> score.Alphas:
    """The boosts as configured; usefulness only when feedback is let in."""
    scoring = config.rag.scoring
    return score.Alphas(
        scoring.recency_alpha,
        scoring.temporal_alpha,
        scoring.proof_alpha,
        scoring.trust_alpha,
        scoring.usefulness_alpha if config.rag.feedback.enabled else 0.0,
    )


def _nothing(table: Candidates) -> Fused:
    shape = table.rows.shape
    nobody = np.zeros(shape, dtype=bool)
    order = np.broadcast_to(np.arange(shape[1]), shape)
    fate = np.full(shape, _NO_FATE)
    return Fused(table, {}, np.zeros(shape), order, nobody, fate, nobody, nobody)


def _listed(scores: Floats, ordinal: NDArray[np.int64], alive: Mask) -> Order:
    """Columns by score and first sight, the living before the others."""
    return fuse.order(np.where(alive, scores, -np.inf), ordinal)


def _position(order: Order) -> Order:
    """Where each column stands in the list."""
    return _back(np.broadcast_to(np.arange(order.shape[1]), order.shape), order)


def _any_rank(lanes: dict[str, Ranks], table: Candidates) -> Mask:
    some = np.zeros(table.rows.shape, dtype=bool)
    for lane in lanes.values():
        some |= lane > 0
    return some


def _grown(plane: NDArray[_T], width: int, value: object) -> NDArray[_T]:
    missing = width - plane.shape[1]
    if missing == 0:
        return plane
    return np.pad(plane, ((0, 0), (0, missing)), constant_values=value)  # type: ignore[call-overload,no-any-return]


def _grown_order(order: Order, width: int) -> Order:
    behind = np.arange(order.shape[1], width)
    return np.concatenate([order, np.broadcast_to(behind, (len(order), len(behind)))], axis=1)


def _along(plane: NDArray[_T], order: Order) -> NDArray[_T]:
    """From column space to list space."""
    return plane.take(_flat(order, plane.shape[1]))


def _back(listed: NDArray[_T], order: Order) -> NDArray[_T]:
    """From list space to column space."""
    plane = np.empty_like(listed)
    plane.put(_flat(order, listed.shape[1]), listed)
    return plane


def _flat(order: Order, width: int) -> Order:
    """Places in the flattened plane; what take_along_axis works out dimension by dimension."""
    return order + np.arange(len(order))[:, None] * width
