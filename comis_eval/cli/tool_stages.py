"""One call of the recall tool, stage by stage: as tables for people, and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console

from comis_eval.cli.stages import content_cell, id_cell, lane_hits, show_rows, show_search
from comis_eval.cli.terminal import WRONG, cell, line
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.recall_tool.answer import WITHHELD, envelope
from comis_eval.pipelines.recall_tool.pages import Paged
from comis_eval.text import printable
from comis_eval.types import Candidate, Fate

_ARM = {"fts": "text", "vector": "vector"}


def show_call(paged: Paged, *, grades: Mapping[str, int], limit: int, out: Console) -> None:
    """Print every stage of a call, and why each candidate is on the page or off it.

    Args:
        paged: The answer to one query.
        grades: Judgments of the query's memories by id; empty when nobody judged.
        limit: Rows of a stage's table; the last one, of every candidate, is whole.
        out: Where to.
    """
    told = result(paged.rankings, 0)
    line(out, "0 call: what was asked, and what profile and defaults fill in", "bold")
    for name, value in _call(paged).items():
        line(out, f"{name}: {printable(json.dumps(value, ensure_ascii=False), limit=200)}")
    out.print()
    show_search(paged.rankings, told, limit, out)
    _show_scores(paged, told.candidates, limit, out)
    _show_gate(paged, told.candidates, out)
    _show_list(paged, limit, out)
    _show_answer(paged, out)
    _show_candidates(paged, told.candidates, grades, out)


def call_json(paged: Paged, *, grades: Mapping[str, int]) -> dict[str, Any]:
    """Return everything :func:`show_call` prints, and more digits of it."""
    told, listed = result(paged.rankings, 0), paged.lists[0]
    memories = paged.table.corpus.memories
    return {
        "query": {
            "id": told.query.id,
            "text": told.query.text,
            "now": told.query.now,
            "tenancy": told.query.tenancy._asdict(),
        },
        "call": _call(paged),
        "lanes": {lane: lane_hits(paged.rankings, lane) for lane in paged.rankings.ranks},
        "withheld": listed.withheld or None,
        "list": [memories[row].id for row in listed.rows],
        "context": [memory.id for memory in told.memories],
        "context_chars": told.context_chars,
        "answer": envelope(paged, 0),
        "candidates": [
            {
                "id": one.memory.id,
                "ranks": dict(one.ranks),
                "score": one.fused,
                "rank_score": one.final,
                "fate": str(one.fate),
                "why": _why(paged, one),
                "grade": grades.get(one.memory.id),
            }
            for one in told.candidates
        ],
    }


def _call(paged: Paged) -> dict[str, Any]:
    """The call with every default filled in; what restricts nothing is left out."""
    asked = asdict(paged.table.requests[0])
    return {name: value for name, value in asked.items() if value not in (None, (), False)}


def _show_scores(paged: Paged, candidates: tuple[Candidate, ...], limit: int, out: Console) -> None:
    corpus, arms = paged.table.corpus, list(paged.rankings.ranks)
    found = sorted((c for c in candidates if c.ranks), key=lambda c: -c.fused)
    rows = [
        (
            str(place),
            id_cell(c.memory.id),
            *(str(c.ranks[arm]) if arm in c.ranks else None for arm in arms),
            c.fused,
            float(corpus.freshness[corpus.row_of[c.memory.id]]),
            _decay(paged, c),
            c.final,
        )
        for place, c in enumerate(found, start=1)
    ]
    columns = ["place", "memory", *(_ARM.get(arm, arm) for arm in arms)]
    columns += ["score", "freshness", "decay", "rank score"]
    title = "3 fuse: score is the share of what the arms that answered can give"
    show_rows(title, columns, rows, limit=limit, out=out)


def _show_gate(paged: Paged, candidates: tuple[Candidate, ...], out: Console) -> None:
    withheld, gate = paged.lists[0].withheld, paged.rankings.config.harness.recall_tool.gate
    best = max((c.fused for c in candidates if c.ranks), default=None)
    told = f"withheld, {WITHHELD[withheld]}" if withheld else "passes"
    score = "nothing scored" if best is None else f"best score {best:.4g}"
    line(out, f"4 gate: {told} ({score}, noise {gate.noise:g}, floor {gate.floor:g})", "bold")
    out.print()


def _show_list(paged: Paged, limit: int, out: Console) -> None:
    listed, request = paged.lists[0], paged.table.requests[0]
    memories, page = (
        paged.table.corpus.memories,
        range(request.offset, request.offset + request.limit),
    )
    rows = [
        (
            str(place + 1),
            id_cell(memories[row].id),
            cell(_mark(paged, row)),
            cell("on the page" if place in page else ""),
            content_cell(memories[row]),
        )
        for place, row in enumerate(listed.rows)
    ]
    order = request.order_by or "rank: key matches, then bands of score"
    title = f"5 list: {len(rows)} memories by {order}; the page starts behind {request.offset}"
    show_rows(title, ["place", "memory", "mark", "page", "content"], rows, limit=limit, out=out)


def _show_answer(paged: Paged, out: Console) -> None:
    answer = envelope(paged, 0)
    line(out, f"6 answer: what the caller gets, {len(answer['items'])} items", "bold")
    for item in answer.pop("items"):
        line(out, f"| {json.dumps(item, ensure_ascii=False)}")
    line(out, json.dumps(answer, ensure_ascii=False))
    out.print()


def _show_candidates(
    paged: Paged, candidates: tuple[Candidate, ...], grades: Mapping[str, int], out: Console
) -> None:
    rows = [
        (
            cell("in" if c.fate is Fate.INCLUDED else "out"),
            id_cell(c.memory.id),
            *([str(grades[c.memory.id]) if c.memory.id in grades else None] if grades else []),
            cell(_why(paged, c)),
        )
        for c in candidates
    ]
    inside = sum(c.fate is Fate.INCLUDED for c in candidates)
    columns = ["", "memory", *(["grade"] if grades else []), "why"]
    title = f"Every candidate: {inside} in, {len(rows) - inside} out"
    show_rows(title, columns, rows, limit=len(rows), out=out)
    known = {c.memory.id for c in candidates}
    for memory_id, grade in grades.items():
        if grade and memory_id not in known:
            line(out, f"relevant (grade {grade}), but no arm returned it: {memory_id}", WRONG)


def _why(paged: Paged, candidate: Candidate) -> str:
    """Say what became of a candidate, and by which rule."""
    listed, request = paged.lists[0], paged.table.requests[0]
    row = paged.table.corpus.row_of[candidate.memory.id]
    if row in listed.rows:
        place, mark = 1 + listed.rows.index(row), _mark(paged, row)
        if candidate.fate is Fate.INCLUDED:
            return f"place {place}{f', {mark}' if mark else ''}"
        ends = f"{request.offset + 1} to {request.offset + request.limit}"
        return f"place {place} of the list, the page is {ends}"
    if listed.withheld:
        return f"withheld: {WITHHELD[listed.withheld]}"
    stored = paged.rankings.config.harness.recall_tool.relevance_source == "stored"
    value = candidate.memory.relevance if stored else candidate.fused
    return f"relevance {value:.4g} < relevance_min {request.relevance_min:g}"


def _mark(paged: Paged, row: int) -> str:
    listed = paged.lists[0]
    if row in listed.pinned:
        return "pinned"
    if row in listed.neighbours:
        return f"graph, {listed.neighbours[row].hops} hops"
    return ""


def _decay(paged: Paged, candidate: Candidate) -> float:
    rows = paged.rankings.table.rows[0].tolist()
    return float(paged.decay[0, rows.index(paged.table.corpus.row_of[candidate.memory.id])])
