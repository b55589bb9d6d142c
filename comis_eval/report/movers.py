"""The queries that moved most from one evaluation to another, and the stage their ways part at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from comis_eval.comparison import Parting, parting_of, ways_of
from comis_eval.evaluation import Evaluation
from comis_eval.report.direction import lower_is_better


class Moved(NamedTuple):
    """One query whose value changed.

    Attributes:
        query: Its position.
        first, second: The two values.
    """

    query: int
    first: float
    second: float


@dataclass(frozen=True)
class Movers:
    """The queries that lost and gained most, the largest first; ties in file order."""

    metric: str
    lost: tuple[Moved, ...]
    gained: tuple[Moved, ...]


def movers(first: Evaluation, second: Evaluation, metric: str, *, most: int = 10) -> Movers:
    """Find the queries that moved most.

    Args:
        first: One evaluation.
        second: Another, of the same queries in the same order.
        metric: By which.
        most: At most so many of each kind.
    """
    a, b = first.values[metric], second.values[metric]
    gain = np.nan_to_num(a - b if lower_is_better(metric) else b - a, nan=0.0)

    def listed(towards: float) -> tuple[Moved, ...]:
        order = np.argsort(-towards * gain, kind="stable").tolist()
        moved = [query for query in order if towards * gain[query] > 0][:most]
        return tuple(Moved(query, float(a[query]), float(b[query])) for query in moved)

    return Movers(metric, listed(-1.0), listed(1.0))


def partings(
    first: Evaluation, second: Evaluation, paths: tuple[Path | None, Path | None]
) -> tuple[Parting | None, ...]:
    """Where each query's two ways part; None where search to budget gave the same.

    Args:
        first: One evaluation, with a trace.
        second: Another, of the same queries in the same order, with a trace.
        paths: The files they were read from.
    """
    ids = first.query_ids
    one, two = (
        ways_of(evaluation, path, ids)
        for evaluation, path in zip((first, second), paths, strict=True)
    )
    return tuple(parting_of(one[query_id], two[query_id]) for query_id in ids)
