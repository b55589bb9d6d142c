"""Every query's value in one evaluation against the other: who gains and who loses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from comis_eval.evaluation import Evaluation
from comis_eval.report.direction import lower_is_better
from comis_eval.report.drawing import (
    WIDE,
    Dot,
    Drawing,
    Line,
    Mark,
    Role,
    Shape,
    around,
    legend,
    number,
    plane,
)
from comis_eval.text import printable

_TIPS = 3


class Point(NamedTuple):
    """Queries whose two values are the same pair, to three decimals.

    Attributes:
        x, y: Value in the first and in the second evaluation.
        queries: Their ids.
    """

    x: float
    y: float
    queries: tuple[str, ...]


@dataclass(frozen=True)
class Scatter:
    """Two evaluations of the same queries, query by query.

    Attributes:
        metric: What was measured.
        names: What the two are called.
        points: By rising x, then y.
        better, worse, same: How many queries moved which way.
        undefined: Queries without a value in one or both.
        lower_is_better: Which side of the diagonal is good.
    """

    metric: str
    names: tuple[str, str]
    points: tuple[Point, ...]
    better: int
    worse: int
    same: int
    undefined: int
    lower_is_better: bool

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a dot a pair of values, larger for more queries; the diagonal is no change."""
        most = min(width, 460.0)
        span = around([value for p in self.points for value in (p.x, p.y)])
        first, second = self.names
        frame = plane(
            span, span, width=most, height=most, x_title=f"{self.metric}, {first}",
            y_title=f"{self.metric}, {second}", top=44,
        )  # fmt: skip
        marks: list[Mark] = list(frame.marks)
        x, y = frame.x, frame.y
        marks += legend(
            [("better", "good", "up"), ("worse", "bad", "down"), ("same", "muted", "circle")],
            x=4, y=30,
        )  # fmt: skip
        marks.append(Line(x(span[0]), y(span[0]), x(span[1]), y(span[1]), "muted", 1, dashed=True))
        for point in self.points:
            role, shape = self._look(point)
            radius = min(3 + 1.2 * sqrt(len(point.queries) - 1), 12)
            marks.append(
                Dot(x(point.x), y(point.y), radius, role, shape, hollow=True, tip=_tip(point))
            )
        return Drawing(
            most,
            frame.height,
            f"{self.metric} of each query, {printable(first)} against {printable(second)}",
            f"{self.better} queries better, {self.worse} worse, {self.same} the same, "
            f"{self.undefined} without a value in both",
            tuple(marks),
        )

    def _look(self, point: Point) -> tuple[Role, Shape]:
        if point.x == point.y:
            return "muted", "circle"
        up = (point.y > point.x) != self.lower_is_better
        return ("good", "up") if up else ("bad", "down")


def scatter(first: Evaluation, second: Evaluation, metric: str, names: tuple[str, str]) -> Scatter:
    """Pair two evaluations of the same queries in the same order."""
    a, b = first.values[metric], second.values[metric]
    defined = ~(np.isnan(a) | np.isnan(b))
    flip = lower_is_better(metric)
    moved = np.where(defined, (a - b) if flip else (b - a), np.nan)
    at: dict[tuple[float, float], list[str]] = {}
    for place in np.flatnonzero(defined).tolist():
        pair = round(float(a[place]), 3), round(float(b[place]), 3)
        at.setdefault(pair, []).append(first.query_ids[place])
    ways = Counter(np.sign(moved[defined]).tolist())
    return Scatter(
        metric=metric,
        names=names,
        points=tuple(Point(*pair, tuple(at[pair])) for pair in sorted(at)),
        better=ways[1.0],
        worse=ways[-1.0],
        same=ways[0.0],
        undefined=int((~defined).sum()),
        lower_is_better=flip,
    )


def _tip(point: Point) -> str:
    listed = ", ".join(printable(query, limit=40) for query in point.queries[:_TIPS])
    more = f" and {len(point.queries) - _TIPS} more" if len(point.queries) > _TIPS else ""
    return f"{listed}{more}: {number(point.x)} to {number(point.y)}"
