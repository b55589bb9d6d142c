"""Score plain lists of ids: the same metrics for whoever has a run and judgments at hand.

The order given is the order scored. Nothing is sorted again, dropped, retyped or filled
in unseen: what other tools settle silently is an error here, or is counted and listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets.judgments import MAX_GRADE, Judgments
from comis_eval.errors import MetricError
from comis_eval.metrics.judgments import Ideal
from comis_eval.metrics.lists import Inputs, Ranked

Run = Mapping[str, Sequence[str] | Sequence[tuple[str, float]]]
"""Query id to memory ids, best first; or to (id, score) pairs in the same order."""

Qrels = Mapping[str, Mapping[str, int]]
"""Query id to the grade of every judged memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RunInputs:
    """A run made ready for the metrics, and what had to be noted on the way.

    Attributes:
        query_ids: The judged queries, in the order of the judgments; arrays follow it.
        inputs: What :func:`comis_eval.metrics.score` takes.
        missing: Judged queries that the run does not answer: counted as failed, so they
            score 0 and stay in every mean.
        unanswerable: Queries with no memory of grade >= 1, outside relevance means.
        unknown_ids: Ids in the run's lists that the corpus does not hold.
        tied: Memories in the ranking that share their score with a neighbour; 0 without
            scores.
        tie_groups: Number of the tie each rank belongs to, rising with rank, shape (q, r).
    """

    query_ids: tuple[str, ...]
    inputs: Inputs
    missing: tuple[str, ...]
    unanswerable: tuple[str, ...]
    unknown_ids: int
    tied: int
    tie_groups: NDArray[np.int32]


class _Listed(NamedTuple):
    """One query's list: its ids, and for each the number of the tie it belongs to."""

    ids: Sequence[str] = ()
    ties: Sequence[int] = ()


def from_run(
    run: Run,
    qrels: Qrels,
    *,
    context: Run | None = None,
    known: Collection[str] | None = None,
    live: bool = False,
    relevance_level: int = 1,
) -> RunInputs:
    """Check a run against its judgments and lay both out for the metrics.

    Example::

        judged = from_run({"q1": ["m2", "m1"]}, {"q1": {"m1": 3}})
        score(["ndcg@10", "recall@5"], judged.inputs)

    Args:
        run: The ranking of each query. Scores, when given, never change the order; they
            only tell which neighbours are tied.
        qrels: Grades 0..127 by query and memory; a query without grade >= 1 is
            unanswerable.
        context: What was injected for each query; None: metrics of the context are
            refused. A query left out of it got nothing.
        known: Every id of the corpus; None: ids are not checked.
        live: Whether the run comes from a live system, where an id outside the corpus is
            counted instead of refused.
        relevance_level: Lowest grade that counts as relevant.

    Returns:
        The inputs of every metric, with missing and unanswerable queries listed.

    Raises:
        MetricError: If run or qrels are empty, an id is not a string, a grade is not a
            whole number in 0..127, a score is not finite, a memory is listed twice, a
            query is not judged, or an id is outside the corpus.
    """
    _refuse_empty(run, qrels)
    ranking = _read("run", run, qrels)
    injected = None if context is None else _read("context", context, qrels)
    listed_ids = [ids for lists in (ranking, injected or {}) for ids, _ in lists.values()]
    unanswered = [query for query in injected or {} if query not in ranking]
    if unanswered:
        raise MetricError(
            f"the context holds {len(unanswered)} queries that the run does not answer, first "
            f"{unanswered[:5]}; give each its ranking, or leave it out of both as failed"
        )
    rows = _number(known, [*qrels.values(), *listed_ids])
    if not live:
        for what, lists in (("run", ranking), ("context", injected or {})):
            _refuse_unknown(what, ((query, ids) for query, (ids, _) in lists.items()), rows)
    judgments = _judgments(qrels, rows)
    ideal = Ideal.of(judgments)
    missing = [query for query in qrels if query not in ranking]
    return RunInputs(
        query_ids=tuple(qrels),
        inputs=Inputs(
            ideal=ideal,
            ranking=_ranked(ranking, qrels, rows, judgments),
            context=None if injected is None else _ranked(injected, qrels, rows, judgments),
            failed=np.array([query not in ranking for query in qrels]),
            relevance_level=relevance_level,
        ),
        missing=tuple(missing),
        unanswerable=tuple(q for q, ok in zip(qrels, ideal.answerable, strict=True) if not ok),
        unknown_ids=sum(memory not in rows for ids in listed_ids for memory in ids),
        tied=sum(_in_ties(ties) for _, ties in ranking.values()),
        tie_groups=_padded([ranking.get(query, _Listed()).ties for query in qrels]),
    )


def _refuse_empty(run: Run, qrels: Qrels) -> None:
    for what, part in (("run", run), ("qrels", qrels)):
        if not part:
            raise MetricError(f"the {what} is empty: nothing to score; check what was loaded")


def _read(what: str, run: Run, qrels: Qrels) -> dict[str, _Listed]:
    """Check every list and split ids from scores."""
    _refuse_other_types(f"{what} query", run, "qrels query", qrels)
    extra = [query for query in run if query not in qrels]
    if extra:
        raise MetricError(
            f"the {what} answers {len(extra)} queries without judgments, first {extra[:5]}; "
            f"{len(run) - len(extra)} of {len(run)} query ids are in the qrels. Judge them, "
            "give them an empty mapping if nothing answers them, or leave them out of the run"
        )
    split = {query: _split(what, query, listed) for query, listed in run.items()}
    judged = chain.from_iterable(qrels.values())
    listed = chain.from_iterable(ids for ids, _ in split.values())
    _refuse_other_types(f"{what} memory", listed, "qrels memory", judged)
    for query, (ids, _) in split.items():
        _refuse_repeats(what, query, ids)
    return split


def _split(what: str, query: str, listed: Any) -> _Listed:
    """Split one list into ids and ties; pairs carry scores, plain ids do not."""
    if isinstance(listed, (str, Mapping)) or not isinstance(listed, Sequence):
        raise MetricError(
            f"{what}, query {query!r}: expected a list of ids, best first, got "
            f"{type(listed).__name__}, which has no rank; sort it by score first"
        )
    paired = [isinstance(item, (tuple, list)) and len(item) == 2 for item in listed]
    if not any(paired):
        return _Listed(listed, range(len(listed)))
    if not all(paired):
        raise MetricError(f"{what}, query {query!r}: some entries carry a score and some do not")
    ties: list[int] = []
    for at, (memory, score) in enumerate(listed):
        if not isinstance(score, (int, float, np.number)) or not isfinite(score):
            raise MetricError(
                f"{what}, query {query!r}, memory {memory!r}: the score is {score!r}; "
                "scores are finite numbers"
            )
        tied = at > 0 and score == listed[at - 1][1]
        ties.append(ties[-1] if tied else at)
    return _Listed([memory for memory, _ in listed], ties)


def _refuse_other_types(
    what: str, ids: Iterable[Any], other: str, other_ids: Iterable[Any]
) -> None:
    """Ids are strings on both sides; say which types met and how many ids are shared."""
    listed, other_listed = list(ids), list(other_ids)
    kinds, other_kinds = _kinds(listed), _kinds(other_listed)
    if kinds | other_kinds <= {"str"}:
        return
    # as written, since what is no string may not be hashable
    mine, theirs = ({repr(one) for one in side} for side in (listed, other_listed))
    raise MetricError(
        f"ids are strings: {what} ids are {' and '.join(sorted(kinds)) or 'none'}, {other} ids "
        f"are {' and '.join(sorted(other_kinds)) or 'none'}, and {len(mine & theirs)} of "
        f"{len(mine)} are in both; convert with str() on the side that is not"
    )


def _kinds(ids: Iterable[Any]) -> set[str]:
    return {"str" if isinstance(one, str) else type(one).__name__ for one in ids}


def _refuse_repeats(what: str, query: str, ids: Sequence[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for rank, memory in enumerate(ids, start=1):
        if memory in first:
            raise MetricError(
                f"{what}, query {query!r}: memory {memory!r} stands at rank {first[memory]} "
                f"and again at {rank}; a memory counts once"
            )
        first[memory] = rank


def _number(known: Collection[str] | None, used: Iterable[Iterable[str]]) -> dict[str, int]:
    """Number the corpus's ids, or without a corpus every id that occurs."""
    ids = chain.from_iterable(used) if known is None else known
    return {memory: row for row, memory in enumerate(dict.fromkeys(ids))}


def _refuse_unknown(
    what: str, lists: Iterable[tuple[str, Iterable[str]]], rows: Mapping[str, int]
) -> None:
    for query, ids in lists:
        for memory in ids:
            if memory not in rows:
                raise MetricError(
                    f"{what}, query {query!r}: memory {memory!r} is not in the corpus of "
                    f"{len(rows)}; check that both come from the same dataset"
                )


def _judgments(qrels: Qrels, rows: Mapping[str, int]) -> Judgments:
    _refuse_unknown("qrels", qrels.items(), rows)
    pairs = [
        (number, rows[memory], _grade(query, memory, grade))
        for number, (query, grades) in enumerate(qrels.items())
        for memory, grade in grades.items()
    ]
    return Judgments.of(pairs, n_queries=len(qrels))


def _grade(query: str, memory: str, grade: Any) -> int:
    whole = isinstance(grade, (int, np.integer)) and not isinstance(grade, bool)
    if not whole or not 0 <= grade <= MAX_GRADE:
        raise MetricError(
            f"qrels, query {query!r}, memory {memory!r}: a grade is a whole number in "
            f"0..{MAX_GRADE}, got {grade!r} of type {type(grade).__name__}"
        )
    return int(grade)


def _ranked(
    lists: Mapping[str, _Listed], qrels: Qrels, rows: Mapping[str, int], judgments: Judgments
) -> Ranked:
    ordered = [lists.get(query, _Listed()).ids for query in qrels]
    numbers = _padded([[rows.get(memory, -1) for memory in ids] for ids in ordered])
    return Ranked.of_rows(numbers, np.array([len(ids) for ids in ordered]), judgments)


def _padded(lists: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Lay lists of different lengths out as one table, padded with -1."""
    lengths = np.array([len(one) for one in lists])
    table = np.full((len(lists), int(lengths.max())), -1, dtype=np.int32)
    table[np.arange(table.shape[1]) < lengths[:, None]] = list(chain.from_iterable(lists))
    return table


def _in_ties(ties: Sequence[int]) -> int:
    """Count the members of ties, which are the repeats of a number and their first."""
    repeated = len(ties) - len(set(ties))
    groups = len({tie for at, tie in enumerate(ties) if tie != at})
    return repeated + groups
