"""From candidates to rankings: every stage after retrieval, over a whole query set.

A pure function of a table and a configuration. Both semantics run through the same code;
where they differ, a switch of the configuration says so. Arrays are shape (q, c) in column
space; ``order`` alone says how the columns stand in the list.
"""

from __future__ import annotations

import numpy as np

from comis_eval.candidates import Candidates, Rankings
from comis_eval.config import Config
from comis_eval.pipelines.fusing import exempt, fuse_lanes, no_list
from comis_eval.pipelines.injecting import inject, line_lengths
from comis_eval.pipelines.planes import NUMBER, along
from comis_eval.pipelines.scoring import (
    alphas_of,
    asked_about,
    deduplicated,
    diversified,
    reranked_scores,
)
from comis_eval.stages import score, trust
from comis_eval.types import Fate


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
    fused = fuse_lanes(table, config) if rag.enabled else no_list(table)
    table, fate = fused.table, fused.fate.copy()

    asked = asked_about(fused, config)
    answers = table.rerank_plane(asked)
    reranked = reranked_scores(fused, config, asked, answers)
    final = score.boost(reranked.base, table.signals, alphas_of(config))
    listed = fused.order
    ranked = score.order(
        along(final, listed),
        along(table.trust, listed),
        along(reranked.tail, listed),
        along(fused.alive, listed),
    )
    order = along(listed, ranked)

    scored = fused.alive
    if semantics.min_score_on == "final":
        low = scored & (final < rag.min_score) & ~exempt(fused, config)
        fate[low] = NUMBER[Fate.BELOW_MIN_SCORE]
        scored = scored & ~low

    trusted = scored & trust.allowed(table.trust, rag.include_trust_levels)
    filtered = scored & ~trusted
    np.copyto(fate, NUMBER[Fate.TRUST_FILTERED], where=filtered)
    if rag.mmr.enabled:
        order = diversified(table, order, final, trusted, weight=rag.mmr.lambda_)

    kept, deduped_by = deduplicated(table, config, order, trusted)
    fate[trusted & ~kept] = NUMBER[Fate.DEDUPED]
    # Numbers of one byte: the ranking, then what the trust filter took, then the doubles.
    group = np.full(kept.shape, 3, dtype=np.int8)
    for first, number in ((trusted, 2), (filtered, 1), (kept, 0)):
        np.copyto(group, np.int8(number), where=first)
    order = along(order, np.argsort(along(group, order), axis=1, kind="stable"))

    inline, section, over, chars = inject(table, config, order, kept, final)
    included = section | inline
    np.copyto(fate, NUMBER[Fate.BEYOND_MAX_RESULTS], where=kept)
    np.copyto(fate, NUMBER[Fate.OVER_BUDGET], where=over)
    np.copyto(fate, NUMBER[Fate.INCLUDED], where=included)

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
        context_chars=chars + line_lengths(table, config, np.where(inline, table.rows, -1)),
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
