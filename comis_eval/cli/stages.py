"""One recall, stage by stage: as tables for people, and as JSON for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from comis_eval.candidates import Rankings
from comis_eval.cli.terminal import WRONG, cell, line, more, table, titled
from comis_eval.cli.why import line_length, why
from comis_eval.comparison import lane_ids, scored_order
from comis_eval.stages import present
from comis_eval.stages.score import Signals
from comis_eval.types import Candidate, Fate, Memory, RecallResult

_ID_CHARS = 32
_TEXT_CHARS = 60


def show_recall(
    rankings: Rankings,
    result: RecallResult,
    *,
    grades: Mapping[str, int],
    limit: int,
    out: Console,
) -> None:
    """Print every stage of a recall, and why each candidate is in the context or out of it.

    Args:
        rankings: A ranking of one query.
        result: The recall made of it.
        grades: Judgments of the query's memories by id; empty when nobody judged.
        limit: Rows of a stage's table; the last one, of fates, is whole.
        out: Where to.
    """
    show_search(rankings, result, limit, out)
    _show_fused(rankings, result, limit, out)
    _show_rerank(result, limit, out)
    _show_scores(rankings, result, limit, out)
    _show_fates(rankings, result, limit, out)
    _show_section(rankings, result, out)
    _show_candidates(rankings, result, grades, out)


def show_search(rankings: Rankings, result: RecallResult, limit: int, out: Console) -> None:
    """Print the search string, and what each lane returned for it."""
    line(out, "1 formulate", "bold")
    line(out, f"search string: {result.text or '(blank)'}")
    out.print()
    if not rankings.ranks:
        line(out, "2 search: no lane ran (rag.enabled is false)", WRONG)
    for lane in rankings.ranks:
        hits = lane_hits(rankings, lane)
        memories = {c.memory.id: c.memory for c in result.candidates}
        show_rows(
            f"2 search: {lane}, {len(hits)} hits",
            ["rank", "memory", "own score", "content"],
            [
                (
                    str(hit["rank"]),
                    id_cell(hit["id"]),
                    hit["score"],
                    content_cell(memories[hit["id"]]),
                )
                for hit in hits
            ],
            limit=limit,
            out=out,
        )


def _show_fused(rankings: Rankings, result: RecallResult, limit: int, out: Console) -> None:
    order = rankings.fused_order[0]
    by_id = {c.memory.id: c for c in result.candidates}
    listed = [by_id[name] for name in _ids(rankings, order[rankings.presence["fuse"][0, order]])]
    floor = rankings.config.rag.min_score
    show_rows(
        f"3 fuse: {len(listed)} of {len(by_id)} candidates go on (rag.minScore {floor:g})",
        ["place", "memory", *rankings.ranks, "fused"],
        [
            (str(place), id_cell(c.memory.id), *_ranks(c, rankings.ranks), c.fused)
            for place, c in enumerate(listed, start=1)
        ],
        limit=limit,
        out=out,
    )


def _show_rerank(result: RecallResult, limit: int, out: Console) -> None:
    outcome, reason = result.rerank
    because = "" if reason == "none" else f" ({reason})"
    title = f"4 rerank: {outcome}{because}, {result.rerank_candidates} candidates in the pool"
    answered = [c for c in result.candidates if c.reranker is not None]
    if not answered:
        line(out, title, "bold")
        out.print()
        return
    answered.sort(key=lambda c: -(c.reranker or 0.0))
    rows = [
        (str(place), id_cell(c.memory.id), c.reranker, c.fused, content_cell(c.memory))
        for place, c in enumerate(answered, start=1)
    ]
    show_rows(
        title, ["place", "memory", "reranker", "fused", "content"], rows, limit=limit, out=out
    )


def _show_scores(rankings: Rankings, result: RecallResult, limit: int, out: Console) -> None:
    by_id = {c.memory.id: c for c in result.candidates}
    scored = [by_id[name] for name in _ids(rankings, scored_order(rankings, 0))]
    rows = [
        (
            str(place),
            id_cell(c.memory.id),
            c.base,
            *(c.factors[s] for s in Signals._fields),
            c.final,
        )
        for place, c in enumerate(scored, start=1)
    ]
    columns = ["place", "memory", "base", *Signals._fields, "final"]
    show_rows("5 score: base x factors = final", columns, rows, limit=limit, out=out)


def _show_fates(rankings: Rankings, result: RecallResult, limit: int, out: Console) -> None:
    """Show what trust filter, dedup and budget took out, and what the budget let in."""
    levels = ", ".join(rankings.config.rag.include_trust_levels) or "none"
    _show_taken(f"6 trust: {levels} may pass", Fate.TRUST_FILTERED, rankings, result, limit, out)
    _show_taken("7 dedup", Fate.DEDUPED, rankings, result, limit, out)
    used = 0 if not result.section else present.length(
        present.HEADER, rankings.config.semantics.length_units
    )  # fmt: skip
    rows = []
    for place, memory in enumerate(result.memories, start=1):
        length = line_length(rankings, memory)
        used += length
        rows.append((str(place), id_cell(memory.id), str(length), str(used), content_cell(memory)))
    rag = rankings.config.rag
    title = (
        f"8 budget: {len(result.memories)} of at most {rag.max_results} memories, "
        f"{result.context_chars} of at most {rag.max_context_chars} characters"
    )
    columns = ["place", "memory", "characters", "so far", "content"]
    show_rows(title, columns, rows, limit=len(rows), out=out)


def _show_taken(
    title: str,
    fate: Fate,
    rankings: Rankings,
    result: RecallResult,
    limit: int,
    out: Console,
) -> None:
    taken = [c for c in result.candidates if c.fate is fate]
    rows = [
        (id_cell(c.memory.id), cell(why(rankings, result, c)), content_cell(c.memory))
        for c in taken
    ]
    columns = ["memory", "why", "content"]
    show_rows(f"{title}; {len(taken)} taken out", columns, rows, limit=limit, out=out)


def _show_section(rankings: Rankings, result: RecallResult, out: Console) -> None:
    line(out, f"9 present: what is injected, {result.context_chars} characters", "bold")
    for text in result.section.split("\n")[:-1]:
        line(out, f"| {text}")
    if result.inline is not None:
        line(out, f"beside the message: {result.inline}")
    if not result.memories:
        because = "" if rankings.config.rag.enabled else " (rag.enabled is false)"
        line(out, f"nothing{because}")
    out.print()


def _show_candidates(
    rankings: Rankings,
    result: RecallResult,
    grades: Mapping[str, int],
    out: Console,
) -> None:
    judged = ["grade"] if grades else []
    rows = [
        (
            cell("in" if c.fate is Fate.INCLUDED else "out"),
            id_cell(c.memory.id),
            *([str(grades[c.memory.id]) if c.memory.id in grades else None] if grades else []),
            str(c.fate),
            cell(why(rankings, result, c)),
        )
        for c in result.candidates
    ]
    columns = ["", "memory", *judged, "fate", "why"]
    title = f"Every candidate: {len(result.memories)} in, {len(rows) - len(result.memories)} out"
    show_rows(title, columns, rows, limit=len(rows), out=out)
    found = {c.memory.id for c in result.candidates}
    for memory_id, grade in grades.items():
        if grade and memory_id not in found:
            line(out, f"relevant (grade {grade}), but no lane returned it: {memory_id}", WRONG)


def recall_json(
    rankings: Rankings, result: RecallResult, *, grades: Mapping[str, int]
) -> dict[str, Any]:
    """Return everything :func:`show_recall` prints, and more digits of it."""
    query, outcome = result.query, result.rerank
    order = rankings.fused_order[0]
    return {
        "query": {
            "id": query.id,
            "text": query.text,
            "turns": [turn._asdict() for turn in query.turns],
            "now": query.now,
            "tenancy": query.tenancy._asdict(),
        },
        "formulated": result.text,
        "lanes": {lane: lane_hits(rankings, lane) for lane in rankings.ranks},
        "fused": list(_ids(rankings, order[rankings.presence["fuse"][0, order]])),
        "rerank": {
            "outcome": outcome[0],
            "reason": outcome[1],
            "candidates": result.rerank_candidates,
        },
        "scored": list(_ids(rankings, scored_order(rankings, 0))),
        "ranking": [c.memory.id for c in result.ranking],
        "context": [memory.id for memory in result.memories],
        "context_chars": result.context_chars,
        "section": result.section,
        "inline": result.inline,
        "candidates": [_candidate_json(rankings, result, c, grades) for c in result.candidates],
    }


def _candidate_json(
    rankings: Rankings, result: RecallResult, candidate: Candidate, grades: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "id": candidate.memory.id,
        "ranks": dict(candidate.ranks),
        "fused": candidate.fused,
        "reranker": candidate.reranker,
        "base": candidate.base,
        "factors": dict(candidate.factors),
        "final": candidate.final,
        "fate": str(candidate.fate),
        "deduped_by": candidate.deduped_by,
        "why": why(rankings, result, candidate),
        "grade": grades.get(candidate.memory.id),
    }


def lane_hits(rankings: Rankings, lane: str) -> list[dict[str, Any]]:
    """What a lane returned for the first query, best first: rank, id and its own score."""
    ids = lane_ids(rankings, 0, lane)
    held = rankings.table.lanes.get(lane)
    scores: Iterable[float | None] = [None] * len(ids)
    if held is not None:
        by_rank = held.scores[0][
            np.argsort(_last_if_absent(rankings.ranks[lane][0]), kind="stable")
        ]
        scores = by_rank[: len(ids)].tolist()
    return [
        {"rank": rank, "id": memory_id, "score": score}
        for rank, (memory_id, score) in enumerate(zip(ids, scores, strict=True), start=1)
    ]


def _last_if_absent(ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(ranks > 0, ranks, np.iinfo(np.int32).max)


def show_rows(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    limit: int,
    out: Console,
) -> None:
    """Print the head of a table, and how much more there is."""
    if not rows:
        line(out, title, "bold")
        out.print()
        return
    words = ("", "memory", "content", "why", "fate")
    numbers = [column for column in columns if column not in words]
    titled(out, title, table(columns, rows[:limit], numbers=numbers), rest=more(limit, len(rows)))


def _ids(rankings: Rankings, columns: NDArray[np.integer]) -> tuple[str, ...]:
    memories = rankings.table.corpus.memories
    return tuple(memories[row].id for row in rankings.table.rows[0, columns].tolist())


def _ranks(candidate: Candidate, lanes: Iterable[str]) -> list[str | None]:
    ranks = candidate.ranks
    return [str(ranks[lane]) if lane in ranks else None for lane in lanes]


def id_cell(memory_id: str) -> Text:
    """Return the id of a memory as a table shows it."""
    return cell(memory_id, limit=_ID_CHARS)


def content_cell(memory: Memory) -> Text:
    """Return the head of a memory's content as a table shows it."""
    return cell(memory.content, limit=_TEXT_CHARS)
