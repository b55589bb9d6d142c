"""The second half of ranking: who stands where in the list, and who leaves it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates, no_faults
from comis_eval.config import Config
from comis_eval.pipelines.fusing import Fused
from comis_eval.stages import dedup, diversify, fuse, rerank, score
from comis_eval.stages.planes import Floats, Mask, Order, along, back, mark, position


def asked_about(fused: Fused, config: Config) -> Mask:
    """The candidates that the reranker was asked about: nobody where it was not there."""
    held = fused.table.rerank
    if not config.rag.rerank.enabled or held is None:
        return np.zeros(fused.alive.shape, dtype=bool)
    asked = rerank_pool(fused, config)
    if held.fault is not None:
        asked &= (held.fault != rerank.Reason.UNAVAILABLE)[:, None]
    return asked


def rerank_pool(fused: Fused, config: Config) -> Mask:
    """The candidates that a reranker is asked about when the configuration turns it on."""
    settings = config.rag.rerank
    return rerank.pool(
        position(fused.order),
        fused.alive,
        max_candidates=settings.max_candidates,
        min_results=settings.min_results,
    )


def reranked_scores(fused: Fused, config: Config, asked: Mask, answers: Floats) -> rerank.Reranked:
    """The scores that the boosts multiply: the reranker's where it answered in time."""
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


def by_score(fused: Fused, final: Floats, tail: Mask) -> Order:
    """Columns by boosted score, those in the fused list first.

    Ties go by trust and then by place in the fused list, which is made for the queries that
    have some only.
    """
    trust, alive = fused.table.trust, fused.alive
    if final is fused.scores:  # neither reranked nor boosted: all but ties stand in order
        return _settled(final, trust, tail, alive, fused.order)
    order, tied = score.order_by_score(final, tail, alive, fused.behind)
    if len(tied):
        listed = fuse.listed(fused.scores[tied], fused.ordinal[tied], alive[tied])
        order[tied] = _settled(final[tied], trust[tied], tail[tied], alive[tied], listed)
    return order


def _settled(
    final: Floats, trust: NDArray[np.int8], tail: Mask, alive: Mask, listed: Order
) -> Order:
    ranked = score.order(
        along(final, listed), along(trust, listed), along(tail, listed), along(alive, listed)
    )
    return along(listed, ranked)


def diversified(
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


def deduplicated(
    table: Candidates, config: Config, order: Order, alive: Mask
) -> tuple[Mask, NDArray[np.int32]]:
    """Who stays, and the column of who stays in the others' stead."""
    semantics = config.semantics
    by = np.full(order.shape, -1, dtype=np.int32)
    some = table.with_repeats(semantics.dedup_units)
    if not len(some):
        return alive, by
    order = order[some]
    rows = along(table.rows[some], order)
    deduped = dedup.drop(
        table.facts.prints(semantics.dedup_units)[rows],
        along(alive[some], order),
        table.corpus.created_at[rows],
        keep=semantics.dedup_keep,
    )
    dropped = deduped.by >= 0
    keeper = np.where(dropped, along(order, np.maximum(deduped.by, 0)), -1)
    by[some] = back(keeper.astype(np.int32), order)
    kept = alive.copy()
    kept[some] = back(deduped.kept, order)
    return kept, by


def grouped(order: Order, kept: Mask, filtered: Mask, trusted: Mask) -> Order:
    """The ranking first, then what the trust filter took, then the doubles, then the others."""
    group = np.full(kept.shape, 3, dtype=np.int8)
    for first, number in ((trusted, 2), (filtered, 1), (kept, 0)):
        mark(group, first, np.int8(number))
    # Numbers of one byte are sorted by counting.
    return along(order, np.argsort(along(group, order), axis=1, kind="stable"))
