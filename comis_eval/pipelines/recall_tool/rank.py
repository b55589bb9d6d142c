"""From what the arms found to the lists and pages of the recall tool, for a whole query set.

A pure function of a table and a configuration: fuse, filter by relevance, gate, fade, order,
lead with what is pinned, let the graph's neighbours in, cut pages. Arrays are shape (q, c)
in column space. Source: specification of the recall tool, section 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES, Rankings
from comis_eval.config import Config, RecallToolConfig
from comis_eval.errors import CoverageError
from comis_eval.pipelines.recall_tool.answer import line_lengths
from comis_eval.pipelines.recall_tool.pages import Listed, Paged, hits_of
from comis_eval.pipelines.recall_tool.table import ToolTable
from comis_eval.stages import fuse
from comis_eval.stages.planes import Floats, Mask, Order, grown
from comis_eval.stages.recall_tool import bands, fade, gate, graph
from comis_eval.stages.rerank import Outcome, Reason
from comis_eval.types import Fate

_DAY_MS = 86_400_000
_ROUNDING = 1e-12
"""First in both arms is 1 but for the last bit, and has to pass a relevance_min of 1."""


class Judged(NamedTuple):
    """Every candidate's scores, and who survives.

    Attributes:
        score: The query's relevance, in [0, 1].
        of_both: The same as a share of the most that both arms can give.
        relevance: What ``relevance_min`` and ``order_by`` look at: the score, or the stored.
        decay: What age leaves, in [0, 1]; 1 without decay.
        fading: What status and age leave together.
        found: Who was found by an arm.
        alive: Who is relevant enough.
        reasons: Why a query's answer is withheld, numbers of gate.REASONS, shape (q,).
    """

    score: Floats
    of_both: Floats
    relevance: Floats
    decay: Floats
    fading: Floats
    found: Mask
    alive: Mask
    reasons: NDArray[np.int8]

    @property
    def final(self) -> Floats:
        """The score that is shown, and by which the omitted order ranks."""
        return self.score * self.fading


def rank(table: ToolTable, config: Config) -> Paged:
    """Answer every query of a table.

    Raises:
        CoverageError: If the arms were read less deep than the configuration asks.
    """
    settings = config.harness.recall_tool
    candidates = table.candidates
    if settings.arm_depth > candidates.retrieval.depth:
        raise CoverageError(
            f"the arms were read to rank {candidates.retrieval.depth}, "
            f"harness.recallTool.armDepth is {settings.arm_depth}; search again"
        )
    judged = judge(table, settings)
    order = ordered(table, judged, settings)
    lists = tuple(
        _listed(table, judged, settings, query, order[query]) for query in range(len(order))
    )
    return _paged(table, config, judged, lists)


def judge(table: ToolTable, settings: RecallToolConfig) -> Judged:
    """Score every candidate, and tell who survives the filter and the gate."""
    candidates, corpus, requests = table.candidates, table.corpus, table.requests
    ranks, found, *_ = candidates.searched(settings.arm_depth)
    weights = _weights(tuple(ranks), settings)
    lanes = list(ranks.values())
    active = np.zeros(len(requests))
    for lane, weight in zip(lanes, weights, strict=True):
        active += np.where((lane > 0).any(axis=1), weight, 0.0)
    both = np.full(len(requests), settings.fusion.text_weight + settings.fusion.vector_weight)
    score = fuse.rrf(lanes, weights, active, k=settings.fusion.k)
    of_both = fuse.rrf(lanes, weights, both, k=settings.fusion.k)

    rows = candidates.rows
    queries = np.arange(len(requests))[:, None]
    # Whatever an arm says, nobody else's row is shown.
    found = found & table.views.allow(queries, rows.astype(np.int64))
    least = np.array([request.relevance_min for request in requests])[:, None]
    if settings.relevance_source == "stored":
        relevance = corpus.relevance[rows].astype(np.float64)
        alive = found & (corpus.relevance[rows] >= least.astype(np.float32))
    else:
        relevance = score
        alive = found & (score >= least - _ROUNDING)

    decay = _decay(table, settings, rows)
    fading = corpus.freshness[rows] * decay
    reasons = _gate(table, settings, score, of_both, alive)
    return Judged(score, of_both, relevance, decay, fading, found, alive, reasons)


def _decay(table: ToolTable, settings: RecallToolConfig, rows: NDArray[np.int32]) -> Floats:
    """What age leaves of each memory's score, 1 for calls without decay, shape (q, c)."""
    age = (table.candidates.batch.now[:, None] - table.corpus.created_at[rows]) / _DAY_MS
    decaying = np.array([request.decay for request in table.requests], dtype=bool)[:, None]
    return np.where(decaying, fade.decay(age, settings.decay_base), 1.0)


def ordered(table: ToolTable, judged: Judged, settings: RecallToolConfig) -> Order:
    """Order each query's columns, survivors first, as the call asks.

    Returns:
        A permutation of the columns, shape (q, c).
    """
    corpus, rows = table.corpus, table.candidates.rows
    created = corpus.created_at[rows].astype(np.float64)
    planes = {
        "created_at:desc": created,
        "created_at:asc": -created,
        "relevance:desc": judged.relevance,
        "decayed_relevance:desc": judged.relevance * judged.fading,
    }
    first, second = judged.final.copy(), np.zeros(rows.shape)
    for query, request in enumerate(table.requests):
        if request.order_by is not None:
            first[query] = planes[request.order_by][query]
            second[query] = judged.score[query]
    order = _by(table, judged.alive, first, second)
    for query, request in enumerate(table.requests):
        if request.order_by is not None:
            continue
        count = int(judged.alive[query].sum())
        start, stop = 0, count
        if settings.rerank_scope == "page":
            start, stop = request.offset, min(request.offset + request.limit, count)
        columns = order[query, start:stop]
        # Who is listed has the project and the scope that were asked for, if any were.
        same = (request.project_id is not None) + (request.scope is not None)
        again = bands.rerank(
            table.boost[query, columns] + same,
            judged.final[query, columns],
            corpus.importance[rows[query, columns]].astype(np.float64),
            band=settings.band,
        )
        order[query, start:stop] = columns[again]
    return order


def _listed(
    table: ToolTable, judged: Judged, settings: RecallToolConfig, query: int, order: Order
) -> Listed:
    """Put one query's list together: pinned rows, survivors, neighbours in the tail slots."""
    withheld = gate.REASONS[judged.reasons[query]]
    if withheld:
        return Listed((), frozenset(), {}, withheld)
    request = table.requests[query]
    columns = order[: int(judged.alive[query].sum())]
    pinned = table.corpus.pinned(table.callers[query], request).tolist()
    leading = frozenset(pinned)
    survivors = table.candidates.rows[query, columns].tolist()
    rows = [*pinned, *(row for row in survivors if row not in leading)]
    if not settings.graph.enabled:
        return Listed(tuple(rows), leading, {}, "")
    reached = _neighbours(table, judged, settings, query)
    slots = graph.reserve(request.limit, settings.graph.share)
    page = frozenset(rows[: request.limit])
    picked = graph.picks(((row, node.hops) for row, node in reached.items()), page, slots)
    return Listed(
        tuple(graph.merged(rows, picked, request.limit)),
        leading,
        {row: reached[row] for row in picked},
        "",
    )


def _neighbours(
    table: ToolTable, judged: Judged, settings: RecallToolConfig, query: int
) -> dict[int, graph.Node]:
    """Walk the graph from a query's best rows, over rows that its caller may see."""
    mine = slice(query, query + 1)
    order = _by(table, judged.alive, judged.final, np.zeros(judged.final.shape), mine)[0]
    best = order[: min(settings.graph.seeds, int(judged.alive[query].sum()))]
    rows = table.candidates.rows[query, best].tolist()
    visible, weight = table.views.row(query), table.corpus.importance
    least = np.float32(settings.graph.min_importance)

    def allowed(reached: NDArray[np.int64]) -> Mask:
        ok: Mask = visible[reached] & (weight[reached] >= least)
        return ok

    return graph.walk(
        dict(zip(rows, judged.final[query, best].tolist(), strict=True)),
        table.edges,
        allowed,
        hops=settings.graph.hops,
        min_weight=settings.graph.min_weight,
        edges_per_hop=settings.graph.edges_per_hop,
    )


def _by(
    table: ToolTable, alive: Mask, first: Floats, second: Floats, queries: slice = slice(None)
) -> Order:
    """Columns by two planes, both descending, then newest, then key; survivors lead."""
    rows, corpus = table.candidates.rows[queries], table.corpus
    keys = (
        corpus.key_rank[rows],
        -corpus.created_at[rows],
        -second[queries],
        -first[queries],
        ~alive[queries],
    )
    return np.lexsort(keys, axis=-1)


def _weights(lanes: tuple[str, ...], settings: RecallToolConfig) -> list[float]:
    fusion = settings.fusion
    weights = {"fts": fusion.text_weight, "vector": fusion.vector_weight}
    return [weights[lane] for lane in lanes]


def _gate(
    table: ToolTable, settings: RecallToolConfig, score: Floats, of_both: Floats, alive: Mask
) -> NDArray[np.int8]:
    vectors = table.candidates.searched(settings.arm_depth).ranks.get("vector")
    reasons = np.zeros(len(score), dtype=np.int8)
    for query, survivors in enumerate(alive):
        some = bool(survivors.any())
        best = float(score[query, survivors].max()) if some else None
        share = float(of_both[query, survivors].max()) if some else 0.0
        weak = some and share < settings.gate.noise
        reason = gate.reason(
            best,
            of_both=share,
            arms=vectors is not None and bool((vectors[query] > 0).any()),
            overlap=not weak or table.overlaps(query, survivors),
            noise=settings.gate.noise,
            floor=settings.gate.floor,
        )
        reasons[query] = gate.REASONS.index(reason)
    return reasons


def _paged(table: ToolTable, config: Config, judged: Judged, lists: tuple[Listed, ...]) -> Paged:
    """Lay the lists out as the rest of the package reads rankings."""
    searched = table.candidates.searched(config.harness.recall_tool.arm_depth)
    wide, place = table.candidates.extended(hits_of(lists))
    width = wide.rows.shape[1]
    listed = place > 0
    offset = np.array([request.offset for request in table.requests])[:, None]
    limit = np.array([request.limit for request in table.requests])[:, None]
    included = listed & (place > offset) & (place <= offset + limit)
    found, score = grown(judged.found, width, False), grown(judged.score, width, 0.0)
    final = grown(judged.final, width, 0.0)
    fate = np.full(place.shape, -1, dtype=np.int8)
    for who, what in (
        (found, Fate.BELOW_MIN_SCORE),
        (listed, Fate.BEYOND_MAX_RESULTS),
        (included, Fate.INCLUDED),
    ):
        fate[who] = FATES.index(what)
    last = np.iinfo(np.int32).max
    nobody = np.zeros(place.shape, dtype=bool)
    rankings = Rankings(
        table=wide,
        config=config,
        order=np.argsort(np.where(listed, place, last), axis=1, kind="stable"),
        length=listed.sum(axis=1),
        fate=fate,
        deduped_by=np.full(place.shape, -1, dtype=np.int32),
        ranks={name: grown(lane, width, 0) for name, lane in searched.ranks.items()},
        fused=score,
        ordinal=np.broadcast_to(np.arange(width, dtype=np.int64), place.shape),
        searched=found,
        base=score,
        final=final,
        reranker=np.full(place.shape, np.nan),
        rerank_pool=nobody,
        rerank_outcome=np.full(len(lists), Outcome.SKIPPED, dtype=np.int8),
        rerank_reason=np.full(len(lists), Reason.DISABLED, dtype=np.int8),
        included=included,
        inline=nobody,
        context_chars=np.zeros(len(lists), dtype=np.int64),
        presence={"search": found | listed}
        | dict.fromkeys(("fuse", "rerank", "score", "trust", "dedup"), listed)
        | {"budget": included},
    )
    decay = _decay(table, config.harness.recall_tool, wide.rows)
    paged = Paged(rankings, table, lists, decay)
    lines = line_lengths(paged, included)
    measured = replace(rankings, context_chars=lines.sum(axis=1), line_chars=lines)
    return replace(paged, rankings=measured)
