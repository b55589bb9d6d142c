"""The trace record of the shipped system, as ``recall-trace.jsonl`` holds it.

Source: specification of MemoryRecall, section 14 and its appendix ("Trace").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from comis_eval.candidates import Rankings
from comis_eval.pipelines.explain import candidates
from comis_eval.stages.rerank import Outcome, Reason
from comis_eval.text import sha256_text
from comis_eval.types import Candidate, Fate

_REASONS = {Fate.TRUST_FILTERED: "trust_filtered", Fate.DEDUPED: "deduped"}
_OUTCOMES = {Outcome.RAN: "ran", Outcome.TIMED_OUT: "timed_out"}


def trace_record(rankings: Rankings, query: int, *, duration_ms: float = 0) -> dict[str, Any]:
    """What the shipped system would have written of one recall; ids and a digest, no text.

    The first maxResults survivors are ``included`` whatever the budget did; later ones are
    ``below_budget`` although they are returned. The keyword lane counts the hits of the
    fused search, the vector lane counts none.
    """
    table = rankings.table
    text = table.batch.texts[query]
    blank = not text.strip()
    searched = rankings.searched[query]
    entity = rankings.ranks.get("entity")
    order = rankings.fused_order[query]
    fused = order[rankings.presence["fuse"][query, order]]
    record: dict[str, Any] = {
        "queryDigest": sha256_text(text),
        "lanes": {
            "fts": int(searched.sum()),
            "vector": 0,
            "entity": 0 if entity is None else int((entity[query] > 0).sum()),
        },
        "vectorLaneActive": not blank,
        "fusedOrder": [table.corpus.memories[row].id for row in table.rows[query, fused]],
        "rerank": _rerank(rankings, query),
        "ranked": _ranked(rankings, query),
        "durationMs": duration_ms,
    }
    degradations = _degradations(rankings, query, blank=blank)
    if degradations:
        record["degradations"] = degradations
    return record


def _rerank(rankings: Rankings, query: int) -> dict[str, Any]:
    outcome = _OUTCOMES.get(Outcome(rankings.rerank_outcome[query]), "fell_back")
    order = rankings.fused_order[query]
    pool = order[rankings.rerank_pool[query, order]]
    told: dict[str, Any] = {"outcome": outcome, "candidateCount": len(pool)}
    if len(pool):
        told["preScores"] = rankings.fused[query, pool].tolist()
    if outcome == "ran":
        told["postScores"] = np.nan_to_num(rankings.reranker[query, pool], nan=0.0).tolist()
    return told


def _ranked(rankings: Rankings, query: int) -> list[dict[str, Any]]:
    survivors = int(rankings.length[query])
    told: list[dict[str, Any]] = []
    for place, candidate in enumerate(candidates(rankings, query)):
        if place < survivors:
            if place < rankings.config.rag.max_results:
                told.append(_included(candidate))
            else:
                told.append({"id": candidate.memory.id, "reason": "below_budget"})
        elif candidate.fate in _REASONS:
            told.append({"id": candidate.memory.id, "reason": _REASONS[candidate.fate]})
    return told


def _included(candidate: Candidate) -> dict[str, Any]:
    breakdown = {"base": candidate.base, **candidate.factors, "final": candidate.final}
    return {"id": candidate.memory.id, "reason": "included", "breakdown": breakdown}


def _degradations(rankings: Rankings, query: int, *, blank: bool) -> list[dict[str, str]]:
    told = []
    if blank and rankings.searched[query].any():
        told.append({"kind": "vec_unavailable", "errorKind": "dependency"})
    reason = rankings.rerank_reason[query]
    if reason == Reason.TIMEOUT:
        told.append({"kind": "rerank_timeout", "errorKind": "timeout"})
    if reason == Reason.ERROR:
        told.append({"kind": "reranker_unavailable", "errorKind": "dependency"})
    return told
