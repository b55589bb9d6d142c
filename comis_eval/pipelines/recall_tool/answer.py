"""What a call gets back: items whole or short, and what is to be known of the whole answer.

Source: specification of the recall tool, sections 0, 3.8 and 4.4.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.pipelines.recall_tool.pages import Paged
from comis_eval.pipelines.recall_tool.table import ToolTable
from comis_eval.stages.recall_tool.graph import Node
from comis_eval.stages.recall_tool.view import KEPT, compact, moment
from comis_eval.store.tool_corpus import ToolCorpus
from comis_eval.types import Memory

_ADVICE = "ask more specifically, or widen scope, project or tags"
WITHHELD = {
    "unscored": "no memory that you may see matches the query and the filters",
    "noise": "the best match is weak and holds no word of the query",
    "threshold": "the best match scores below the least that is shown",
}
"""Why an answer is withheld, in words."""


def envelope(paged: Paged, query: int) -> dict[str, Any]:
    """Return the answer to one query as the tool's callers get it."""
    table, listed, request = paged.table, paged.lists[query], paged.table.requests[query]
    ranks = paged.rankings.ranks
    items = [
        item(paged, query, column)
        for column in paged.rankings.order[query, : int(paged.rankings.length[query])].tolist()
        if paged.rankings.included[query, column]
    ]
    answer: dict[str, Any] = {
        "items": items,
        "total": len(items),
        "limit": request.limit,
        "offset": request.offset,
        "next_offset": listed.next_offset(request.offset, request.limit),
        "recall_profile": request.profile,
        "search_mode": "hybrid" if "vector" in table.candidates.lanes else "bm25-only",
        "degraded": "vector" not in table.candidates.lanes,
    }
    for name, lane in (("sparse_rows", "fts"), ("dense_rows", "vector")):
        answer[name] = int((ranks[lane][query] > 0).sum()) if lane in ranks else 0
    boosted = sum("graph_boost" in one for one in items)
    if boosted:
        answer["graph_boost_count"] = boosted
    if listed.withheld:
        answer["explanation"] = f"{WITHHELD[listed.withheld]}; {_ADVICE}"
    return answer


def item(paged: Paged, query: int, column: int) -> dict[str, Any]:
    """Return one row of an answer, short or whole as the call asks."""
    row = int(paged.rankings.table.rows[query, column])
    whole = stored(paged.table.corpus, row) | _marks(paged, query, column)
    return whole if paged.table.requests[query].full else compact(whole)


def _marks(paged: Paged, query: int, column: int) -> dict[str, Any]:
    """What an answer says of a row beside what is stored of it."""
    request, listed = paged.table.requests[query], paged.lists[query]
    row = int(paged.rankings.table.rows[query, column])
    marks: dict[str, Any] = {}
    if paged.rankings.searched[query, column]:
        marks["score"] = float(paged.rankings.final[query, column])
    if request.decay:
        marks["recency_score"] = float(paged.decay[query, column])
    if row in listed.pinned:
        marks |= {"score": marks.get("score", 0.0), "pinned": True}
    if row in listed.neighbours:
        marks |= _way(listed.neighbours[row])
    return marks


def _way(node: Node) -> dict[str, Any]:
    return {
        "graph_boost": True,
        "provenance": "via:graph",
        "composite_score": node.score,
        "hop_distance": node.hops,
    }


def stored(corpus: ToolCorpus, row: int) -> dict[str, Any]:
    """Return every stored field of a memory that has a value, by the tool's names."""
    memory: Memory = corpus.memories[row]
    fields: dict[str, Any] = {
        "id": memory.id,
        "workspace_id": memory.tenancy.tenant_id,
        "project_id": memory.project_id,
        "created_by": memory.created_by,
        "author_type": memory.author_type,
        "key": memory.key,
        "content": memory.content,
        "scope": memory.scope,
        "tags": list(memory.tags),
        "trust": memory.trust_level.value,
        "memory_type": memory.memory_type.value,
        "relevance": memory.relevance,
        "importance_score": memory.importance,
        "status": memory.status,
        "freshness_score": float(corpus.freshness[row]),
        "archived": memory.archived,
        "version": memory.version,
        "proof_count": memory.proof_count,
        "confidence": memory.confidence,
    }
    times = {
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "occurred_at": memory.occurred_at,
        "expires_at": memory.expires_at,
    }
    fields |= {name: moment(ms) for name, ms in times.items() if ms is not None}
    return {name: value for name, value in fields.items() if value is not None}


def line_lengths(paged: Paged, included: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many characters each shown item takes as JSON; 0 for what is not shown.

    Args:
        paged: What was ranked.
        included: Who is on the page, shape (q, c) of the rankings' table.
    """
    lengths = np.zeros(included.shape, dtype=np.int64)
    for query, column in np.argwhere(included).tolist():
        row, full = int(paged.rankings.table.rows[query, column]), paged.table.requests[query].full
        marks = _marks(paged, query, column)
        if not full:
            marks = {name: marks[name] for name in KEPT if name in marks}
        # Without its braces, and with a comma: what the marks add to what is stored.
        lengths[query, column] = _stored_length(paged.table, row, full) + len(json.dumps(marks))
        lengths[query, column] -= 0 if marks else len("{}")
    return lengths


def _stored_length(table: ToolTable, row: int, full: bool) -> int:
    """How many characters a row takes as JSON without marks; trials share it."""
    if (row, full) not in table.lengths:
        whole = stored(table.corpus, row)
        shown = json.dumps(whole if full else compact(whole), ensure_ascii=False)
        table.lengths[row, full] = len(shown)
    return table.lengths[row, full]
