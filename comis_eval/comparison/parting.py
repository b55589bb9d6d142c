"""Where two ways through the stages first part, and in what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from comis_eval.candidates import Rankings
from comis_eval.comparison.way import RankedWay, Way
from comis_eval.config import LANES
from comis_eval.errors import EvaluationError
from comis_eval.pipelines.injecting import style_of
from comis_eval.stages import present
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
    ways = RankedWay(a, query), RankedWay(b, query)
    return _formulate(*ways) or parting_of(*ways) or _present(*ways)


def parting_of(a: Way, b: Way) -> Parting | None:
    """Find the first stage, from search to budget, at which two ways of one query part."""
    found = (compared(a, b) for compared in _COMPARED.values())
    return next((parting for parting in found if parting is not None), None)


def _formulate(a: RankedWay, b: RankedWay) -> Parting | None:
    one, two = (way.rankings.table.batch.texts[way.query] for way in (a, b))
    if one == two:
        return None
    shown = " | ".join(f"'{printable(text, limit=80)}'" for text in (one, two))
    return Parting("formulate", f"the search strings differ: {shown}", (), ())


def _search(a: Way, b: Way) -> Parting | None:
    for lane in LANES:
        parting = _part("search", f"{lane}: ", a.lane(lane), b.lane(lane))
        if parting is not None:
            return parting
    return None


def _fuse(a: Way, b: Way) -> Parting | None:
    return _part("fuse", "", a.fused(), b.fused())


def _rerank(a: Way, b: Way) -> Parting | None:
    one, two = a.reranked(), b.reranked()
    ids = [tuple(memory_id for memory_id, _ in way.answers) for way in (one, two)]
    if one.outcome != two.outcome:
        told = " | ".join(f"{way.outcome} ({way.reason})" for way in (one, two))
        return Parting("rerank", f"the outcomes differ: {told}", *ids)
    if one.outcome != "ran" or one.answers == two.answers:
        return None
    return _part("rerank", "pool by score: ", *ids) or Parting(
        "rerank", "the same order of the pool, other scores", *ids
    )


def _score(a: Way, b: Way) -> Parting | None:
    return _part("score", "", a.scored(), b.scored())


def _trust(a: Way, b: Way) -> Parting | None:
    return _part("trust", "filtered: ", a.filtered(), b.filtered())


def _dedup(a: Way, b: Way) -> Parting | None:
    return _part("dedup", "", a.ranking(), b.ranking())


def _budget(a: Way, b: Way) -> Parting | None:
    return _part("budget", "context: ", a.context(), b.context())


def _present(a: RankedWay, b: RankedWay) -> Parting | None:
    ids = [way.context() for way in (a, b)]
    inline = [way.inline() for way in (a, b)]
    if inline[0] != inline[1]:
        told = " | ".join(", ".join(_shown(placed)) or "nothing" for placed in inline)
        return Parting("present", f"placed beside the message: {told}", *ids)
    in_sections = a.rankings.line_chars is None and b.rankings.line_chars is None
    alike = in_sections and style_of(a.rankings.config) == style_of(b.rankings.config)
    if alike or _lines(a) == _lines(b):
        return None
    chars = " | ".join(str(int(way.rankings.context_chars[way.query])) for way in (a, b))
    return Parting("present", f"the same memories, written otherwise: {chars} characters", *ids)


def _lines(way: RankedWay) -> list[str]:
    lengths = way.rankings.context_lines()
    if lengths is not None:  # no section: items, which differ as far as their lengths do
        return [str(length) for length in lengths[way.query].tolist() if length]
    style, corpus = style_of(way.rankings.config), way.rankings.table.corpus
    memories = (corpus.memories[corpus.row_of[memory_id]] for memory_id in way.context())
    return [present.line(memory, style, _ANY_DELIMITER) for memory in memories]


_COMPARED: dict[str, Callable[[Way, Way], Parting | None]] = {
    "search": _search,
    "fuse": _fuse,
    "rerank": _rerank,
    "score": _score,
    "trust": _trust,
    "dedup": _dedup,
    "budget": _budget,
}

STAGES = ("formulate", *_COMPARED, "present")
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
