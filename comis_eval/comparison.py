"""Where two rankings of the same query first part, and in what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Rankings
from comis_eval.config import LANES
from comis_eval.errors import EvaluationError
from comis_eval.pipelines.rank import style_of
from comis_eval.stages import present, score
from comis_eval.stages.rerank import Outcome, Reason
from comis_eval.text import printable

_SHOWN = 5
_ANY_DELIMITER = "0" * present.DELIMITER_LENGTH


class Parting(NamedTuple):
    """The first stage that gave two different things.

    Attributes:
        stage: One of STAGES.
        what: What differs, in a sentence that is safe to print.
        first: Ids of the memories that stand there in the first ranking, in its order.
        second: The same of the second.
    """

    stage: str
    what: str
    first: tuple[str, ...]
    second: tuple[str, ...]


def first_parting(a: Rankings, b: Rankings, query: int) -> Parting | None:
    """Find the first stage at which two rankings of one query part.

    Memories are compared by id, so the two may come from different tables. Scores count
    only where a model gave them: two configurations that order alike do not part.

    Args:
        a: The first ranking.
        b: The second, of the same queries.
        query: Position of the query in both.

    Returns:
        The stage and what differs there; None when all is the same to the last character.

    Raises:
        EvaluationError: If the two do not hold the same query there.
    """
    one, two = a.table.queries[query].id, b.table.queries[query].id
    if one != two:
        raise EvaluationError(
            f"query {query} is {printable(one)!r} in the first ranking and {printable(two)!r} in "
            "the second; rank the same queries, in the same order, with both configurations"
        )
    found = (compare(a, b, query) for compare in _COMPARED.values())
    return next((parting for parting in found if parting is not None), None)


def context_ids(rankings: Rankings, query: int) -> tuple[str, ...]:
    """Ids of the memories in a context, best first."""
    return _ids(rankings, query, _listed(rankings.included[query], rankings.order[query]))


def ranking_ids(rankings: Rankings, query: int) -> tuple[str, ...]:
    """Ids of a ranking (the survivors of trust filter and dedup), best first."""
    return _ids(rankings, query, rankings.order[query, : int(rankings.length[query])])


def lane_ids(rankings: Rankings, query: int, lane: str) -> tuple[str, ...]:
    """Ids that a lane returned, best first; empty when it did not run."""
    if lane not in rankings.ranks:
        return ()
    ranks = rankings.ranks[lane][query]
    columns = np.argsort(ranks, kind="stable")
    return _ids(rankings, query, columns[ranks[columns] > 0])


def scored_order(rankings: Rankings, query: int) -> NDArray[np.intp]:
    """Columns of a query as scoring left them, before trust filter, diversity and dedup."""
    listed = rankings.fused_order[query]
    reranked = rankings.rerank_outcome[query] == Outcome.RAN
    order = score.order(
        rankings.final[query, listed][None, :],
        rankings.table.trust[query, listed][None, :],
        ~rankings.rerank_pool[query, listed][None, :] & reranked,
        rankings.presence["fuse"][query, listed][None, :],
    )
    return _listed(rankings.presence["score"][query], listed[order[0]])


def _formulate(a: Rankings, b: Rankings, query: int) -> Parting | None:
    one, two = a.table.batch.texts[query], b.table.batch.texts[query]
    if one == two:
        return None
    shown = " | ".join(f"'{printable(text, limit=80)}'" for text in (one, two))
    return Parting("formulate", f"the search strings differ: {shown}", (), ())


def _search(a: Rankings, b: Rankings, query: int) -> Parting | None:
    for lane in LANES:
        parting = _part("search", f"{lane}: ", lane_ids(a, query, lane), lane_ids(b, query, lane))
        if parting is not None:
            return parting
    return None


def _fuse(a: Rankings, b: Rankings, query: int) -> Parting | None:
    return _part("fuse", "", *(_fused(r, query) for r in (a, b)))


def _fused(rankings: Rankings, query: int) -> tuple[str, ...]:
    columns = _listed(rankings.presence["fuse"][query], rankings.fused_order[query])
    return _ids(rankings, query, columns)


def _rerank(a: Rankings, b: Rankings, query: int) -> Parting | None:
    outcomes = [Outcome(r.rerank_outcome[query]) for r in (a, b)]
    answers = [_answers(r, query) for r in (a, b)]
    ids = [tuple(memory_id for memory_id, _ in answered) for answered in answers]
    if outcomes[0] != outcomes[1]:
        told = " | ".join(
            f"{outcome.name.lower()} ({Reason(r.rerank_reason[query]).name.lower()})"
            for outcome, r in zip(outcomes, (a, b), strict=True)
        )
        return Parting("rerank", f"the outcomes differ: {told}", *ids)
    if outcomes[0] != Outcome.RAN or answers[0] == answers[1]:
        return None
    return _part("rerank", "pool by score: ", *ids) or Parting(
        "rerank", "the same order of the pool, other scores", *ids
    )


def _answers(rankings: Rankings, query: int) -> list[tuple[str, float]]:
    """The pool with the reranker's scores (none counts as 0), best first."""
    columns = np.flatnonzero(rankings.rerank_pool[query])
    scores = np.nan_to_num(rankings.reranker[query, columns], nan=0.0).tolist()
    named = zip(_ids(rankings, query, columns), scores, strict=True)
    return sorted(named, key=lambda answer: (-answer[1], answer[0]))


def _score(a: Rankings, b: Rankings, query: int) -> Parting | None:
    return _part("score", "", *(_ids(r, query, scored_order(r, query)) for r in (a, b)))


def _trust(a: Rankings, b: Rankings, query: int) -> Parting | None:
    return _part("trust", "filtered: ", *(_filtered(r, query) for r in (a, b)))


def _filtered(rankings: Rankings, query: int) -> tuple[str, ...]:
    columns = scored_order(rankings, query)
    return _ids(rankings, query, columns[~rankings.presence["trust"][query, columns]])


def _dedup(a: Rankings, b: Rankings, query: int) -> Parting | None:
    return _part("dedup", "", *(ranking_ids(r, query) for r in (a, b)))


def _budget(a: Rankings, b: Rankings, query: int) -> Parting | None:
    return _part("budget", "context: ", *(context_ids(r, query) for r in (a, b)))


def _present(a: Rankings, b: Rankings, query: int) -> Parting | None:
    ids = [context_ids(r, query) for r in (a, b)]
    inline = [_ids(r, query, np.flatnonzero(r.inline[query])) for r in (a, b)]
    if inline[0] != inline[1]:
        told = " | ".join(", ".join(_shown(placed)) or "nothing" for placed in inline)
        return Parting("present", f"placed beside the message: {told}", *ids)
    lines = [_lines(r, query) for r in (a, b)] if style_of(a.config) != style_of(b.config) else []
    if not lines or lines[0] == lines[1]:
        return None
    chars = " | ".join(str(int(r.context_chars[query])) for r in (a, b))
    return Parting("present", f"the same memories, written otherwise: {chars} characters", *ids)


def _lines(rankings: Rankings, query: int) -> list[str]:
    style, memories = style_of(rankings.config), rankings.table.corpus.memories
    columns = _listed(rankings.included[query], rankings.order[query])
    rows = rankings.table.rows[query, columns].tolist()
    return [present.line(memories[row], style, _ANY_DELIMITER) for row in rows]


_COMPARED: dict[str, Callable[[Rankings, Rankings, int], Parting | None]] = {
    "formulate": _formulate,
    "search": _search,
    "fuse": _fuse,
    "rerank": _rerank,
    "score": _score,
    "trust": _trust,
    "dedup": _dedup,
    "budget": _budget,
    "present": _present,
}

STAGES = tuple(_COMPARED)
"""Every stage that two rankings can part at, in the order they run."""


def _part(
    stage: str, about: str, first: tuple[str, ...], second: tuple[str, ...]
) -> Parting | None:
    """Compare two lists; None when they are the same."""
    if first == second:
        return None
    gone, new = (_without(*pair) for pair in ((first, second), (second, first)))
    told = [
        f"{len(ids)} only in the {which} ({', '.join(_shown(ids))})"
        for which, ids in (("first", gone), ("second", new))
        if ids
    ]
    place, one, two = next(
        (place, one, two)
        for place, (one, two) in enumerate(zip_longest(first, second), start=1)
        if one != two
    )
    sides = " | ".join("nothing" if x is None else printable(x, limit=40) for x in (one, two))
    told.append(f"from place {place} on: {sides}")
    return Parting(stage, about + "; ".join(told), first, second)


def _without(ids: Sequence[str], others: Iterable[str]) -> list[str]:
    known = set(others)
    return [memory_id for memory_id in ids if memory_id not in known]


def _shown(ids: Sequence[str]) -> list[str]:
    """The first ids of a list, safe to print, and how many more there are."""
    shown = [printable(memory_id, limit=40) for memory_id in ids[:_SHOWN]]
    return shown + ([f"and {len(ids) - _SHOWN} more"] if len(ids) > _SHOWN else [])


def _listed(wanted: NDArray[np.bool_], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """The wanted ones of a query's columns, in an order of its columns."""
    columns: NDArray[np.intp] = order[wanted[order]]
    return columns


def _ids(rankings: Rankings, query: int, columns: NDArray[np.integer]) -> tuple[str, ...]:
    memories, rows = rankings.table.corpus.memories, rankings.table.rows[query, columns]
    return tuple(memories[row].id for row in rows.tolist())
