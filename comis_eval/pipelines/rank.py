"""From candidates to rankings: every stage after retrieval, over a whole query set.

A pure function of a table and a configuration. Both semantics run through the same code;
where they differ, a switch of the configuration says so. Arrays are shape (q, c) in column
space; ``order`` alone says how the columns stand in the list.
"""

from __future__ import annotations

from comis_eval.candidates import NUMBER, Candidates, Rankings
from comis_eval.config import Config
from comis_eval.pipelines.fusing import exempt, fuse_lanes, no_list
from comis_eval.pipelines.injecting import inject, inline_lengths
from comis_eval.pipelines.scoring import (
    alphas_of,
    asked_about,
    by_score,
    deduplicated,
    diversified,
    grouped,
    reranked_scores,
)
from comis_eval.stages import score, trust
from comis_eval.stages.planes import mark
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
    order = by_score(fused, final, reranked.tail)

    scored = fused.alive
    if semantics.min_score_on == "final":
        low = scored & (final < rag.min_score) & ~exempt(fused, config)
        mark(fate, low, NUMBER[Fate.BELOW_MIN_SCORE])
        scored = scored & ~low

    trusted = scored & trust.allowed(table.trust, rag.include_trust_levels)
    filtered = scored & ~trusted
    mark(fate, filtered, NUMBER[Fate.TRUST_FILTERED])
    if rag.mmr.enabled:
        order = diversified(table, order, final, trusted, weight=rag.mmr.lambda_)

    kept, deduped_by = deduplicated(table, config, order, trusted)
    mark(fate, trusted & ~kept, NUMBER[Fate.DEDUPED])
    order = grouped(order, kept, filtered, trusted)

    inline, section, over, chars = inject(table, config, order, kept, final)
    included = section | inline
    mark(fate, kept, NUMBER[Fate.BEYOND_MAX_RESULTS])
    mark(fate, over, NUMBER[Fate.OVER_BUDGET])
    mark(fate, included, NUMBER[Fate.INCLUDED])

    return Rankings(
        table=table,
        config=config,
        order=order,
        length=kept.sum(axis=1),
        fate=fate,
        deduped_by=deduped_by,
        ranks=fused.ranks,
        fused=fused.scores,
        ordinal=fused.ordinal,
        searched=fused.searched,
        base=reranked.base,
        final=final,
        reranker=answers,
        rerank_pool=asked,
        rerank_outcome=reranked.outcome,
        rerank_reason=reranked.reason,
        included=included,
        inline=inline,
        context_chars=chars + inline_lengths(table, config, inline),
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
