"""Neighbours of the best memories in the knowledge graph, and the slots they take.

Source: specification of the recall tool, sections 0 (Pages) and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edges(NamedTuple):
    """Edges between memory rows, followed in both directions.

    Attributes:
        a, b: The two rows of each edge, shape (e,).
        weights: In [0, 1], shape (e,).
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    weights: NDArray[np.float64]


class Node(NamedTuple):
    """A memory that the walk reached: its score, and how many edges away from a seed."""

    score: float
    hops: int


def walk(
    seeds: Mapping[int, float],
    edges: Edges,
    allowed: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    *,
    hops: int,
    min_weight: float,
    edges_per_hop: int,
) -> dict[int, Node]:
    """Follow edges from the seeds; a score is the way's best seed times its weights.

    Args:
        seeds: Score by row.
        edges: The graph.
        allowed: Which of some rows may be reached. One that may not is neither returned nor
            passed through.
        hops: How many edges a way may have, >= 1.
        min_weight: Edges below it are not followed.
        edges_per_hop: How many edges are looked at in one hop, the heaviest first.

    Returns:
        Seeds and what was reached, score descending, then row. A row reached again on a
        better way has that way's score and hops, a seed too; it is not left from again.
    """
    found = {row: Node(score, 0) for row, score in seeds.items()}
    heaviest = np.argsort(-edges.weights, kind="stable")
    heaviest = heaviest[edges.weights[heaviest] >= min_weight]
    a, b, weights = edges.a[heaviest], edges.b[heaviest], edges.weights[heaviest]
    frontier = dict(found)
    for hop in range(1, hops + 1):
        standing = np.fromiter(frontier, dtype=np.int64, count=len(frontier))
        near = np.flatnonzero(np.isin(a, standing) | np.isin(b, standing))[:edges_per_hop]
        ends = np.unique(np.concatenate((a[near], b[near])))
        open_ = set(ends[allowed(ends)].tolist()) | found.keys()
        reached: dict[int, Node] = {}
        ways = zip(
            np.concatenate((a[near], b[near])).tolist(),
            np.concatenate((b[near], a[near])).tolist(),
            np.concatenate((weights[near], weights[near])).tolist(),
            strict=True,
        )
        for row, other, weight in ways:
            if row not in frontier or other not in open_:
                continue
            score = frontier[row].score * weight
            known = reached.get(other, found.get(other))
            if known is None or score > known.score:
                reached[other] = Node(score, hop)
        frontier = {row: node for row, node in reached.items() if row not in found}
        found |= reached
    return dict(sorted(found.items(), key=lambda item: (-item[1].score, item[0])))


def reserve(limit: int, share: float) -> int:
    """Return how many slots of a page neighbours may take: one of two rows, none of one."""
    return 0 if limit < 2 else max(1, int(limit * share))


def picks(reached: Iterable[tuple[int, int]], page: Set[int], slots: int) -> list[int]:
    """Return the neighbours that take slots: reached over an edge and not on the page.

    Args:
        reached: Row and hops, best first.
        page: Rows that have a place already.
        slots: How many there are.
    """
    fresh = dict.fromkeys(row for row, hops in reached if hops > 0 and row not in page)
    return list(fresh)[:slots]


def merged(base: Sequence[int], picked: Sequence[int], limit: int) -> list[int]:
    """Put neighbours at the tail of the first page; what they displace comes right behind.

    Slots are a ceiling: rows give way only where the page would be longer than its limit.
    """
    taken = frozenset(picked)
    kept = list(base[: limit - len(picked)])
    rest = [row for row in base[limit - len(picked) :] if row not in taken]
    return [*kept, *picked, *rest]
