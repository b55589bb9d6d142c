"""What changes between two configurations; needs no labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import nan
from typing import NamedTuple

from comis_eval.candidates import Rankings
from comis_eval.comparison import STAGES, Parting, context_ids, first_parting, ranking_ids
from comis_eval.errors import EvaluationError

PERSISTENCE = 0.9
"""The p of rank-biased overlap: the first ten ranks then carry 86% of the weight."""


class QueryDifference(NamedTuple):
    """What changed for one query.

    Attributes:
        query_id: The query.
        overlap: Rank-biased overlap of the two rankings, in [0, 1]; 1: the same order.
        entered: Memories that only the second context holds, in its order.
        left: Memories that only the first context holds, in its order.
        changed: Whether the contexts differ, be it in order alone.
        parting: The first stage at which the two part; None when they never do.
    """

    query_id: str
    overlap: float
    entered: tuple[str, ...]
    left: tuple[str, ...]
    changed: bool
    parting: Parting | None


class Moved(NamedTuple):
    """How many contexts a memory entered and left from the first to the second."""

    memory_id: str
    entered: int
    left: int


@dataclass(frozen=True)
class Difference:
    """What changed between two configurations.

    Attributes:
        queries: One a query, in the order asked.
    """

    queries: tuple[QueryDifference, ...]

    @property
    def changed_share(self) -> float:
        """Share of queries whose contexts differ, in [0, 1]; NaN without queries."""
        return _mean([float(query.changed) for query in self.queries])

    @property
    def mean_overlap(self) -> float:
        """Mean rank-biased overlap, in [0, 1]; NaN without queries."""
        return _mean([query.overlap for query in self.queries])

    @cached_property
    def partings(self) -> dict[str, int]:
        """For how many queries the two first part at each stage, in stage order."""
        counts = Counter(query.parting.stage for query in self.queries if query.parting)
        return {stage: counts[stage] for stage in STAGES if counts[stage]}

    @cached_property
    def moved(self) -> tuple[Moved, ...]:
        """Memories that entered or left a context, most often first, then by id."""
        entered = Counter(memory for query in self.queries for memory in query.entered)
        left = Counter(memory for query in self.queries for memory in query.left)
        moved = (Moved(memory, entered[memory], left[memory]) for memory in entered | left)
        return tuple(sorted(moved, key=lambda m: (-m.entered - m.left, m.memory_id)))

    @cached_property
    def worst(self) -> tuple[QueryDifference, ...]:
        """Queries by rising overlap; of equals, changed contexts first, then as asked."""
        return tuple(sorted(self.queries, key=lambda query: (query.overlap, not query.changed)))


def difference(a: Rankings, b: Rankings) -> Difference:
    """Compare what two configurations make of the same queries.

    Raises:
        EvaluationError: If the two do not hold the same queries in the same order.
    """
    if len(a.table.queries) != len(b.table.queries):
        raise EvaluationError(
            f"the first ranking holds {len(a.table.queries)} queries, the second "
            f"{len(b.table.queries)}; rank the same queries with both configurations"
        )
    return Difference(tuple(_of_query(a, b, query) for query in range(len(a.table.queries))))


def _of_query(a: Rankings, b: Rankings, query: int) -> QueryDifference:
    parting = first_parting(a, b, query)  # first: it checks that the queries are the same
    before, after = (context_ids(rankings, query) for rankings in (a, b))
    return QueryDifference(
        query_id=a.table.queries[query].id,
        overlap=rank_biased_overlap(ranking_ids(a, query), ranking_ids(b, query)),
        entered=tuple(memory for memory in after if memory not in before),
        left=tuple(memory for memory in before if memory not in after),
        changed=before != after,
        parting=parting,
    )


def rank_biased_overlap(one: Sequence[str], two: Sequence[str], *, p: float = PERSISTENCE) -> float:
    """Return the extrapolated rank-biased overlap of two rankings.

    The agreement at a depth is the share of the two heads that both hold. The overlap is
    the mean agreement over all depths, depth d weighing ``p ^ d``; beyond the end of the
    lists the agreement is taken to go on as it was.

    Example: ``["a", "b"]`` and ``["b", "a"]`` agree 0 at depth 1 and 1 from depth 2 on, so
    the overlap is p.

    Args:
        one: Ids, best first, without repeats.
        two: Ids, best first, without repeats; may be longer or shorter.
        p: How likely a reader is to go on to the next rank, in (0, 1).

    Returns:
        A value in [0, 1]: 1 when one list is a head of the other, 0 when they share
        nothing. Two empty lists are the same; one empty list shares nothing.

    Raises:
        EvaluationError: If p lies outside (0, 1).

    Source:
        Webber, Moffat and Zobel, "A similarity measure for indefinite rankings", TOIS
        28(4), 2010, equation 32.
    """
    if not 0.0 < p < 1.0:
        raise EvaluationError(f"rank-biased overlap needs p in (0, 1), got {p!r}")
    short, long = sorted((one, two), key=len)
    if not short:
        return 0.0 if long else 1.0
    common = _overlaps(short, long)
    s, end = len(short), len(long)
    at_s, at_end = common[s - 1], common[-1]
    total = sum(x / d * p**d for d, x in enumerate(common, start=1))
    total += sum(at_s * (d - s) / (s * d) * p**d for d in range(s + 1, end + 1))
    # min: sums of exact shares of 1 may exceed it in the last bit
    return min(1.0, (1 - p) / p * total + ((at_end - at_s) / end + at_s / s) * p**end)


def _overlaps(short: Sequence[str], long: Sequence[str]) -> list[int]:
    """How many ids the heads of both share, at each depth down to the longer's end."""
    place = {item: depth for depth, item in enumerate(short)}
    shared_from = Counter(
        max(depth, place[item]) for depth, item in enumerate(long) if item in place
    )
    return list(accumulate(shared_from[depth] for depth in range(len(long))))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
