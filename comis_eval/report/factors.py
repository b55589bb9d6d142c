"""How far each boost moves scores: the spread of every factor over the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.report.drawing import (
    WIDE,
    Box,
    Dot,
    Drawing,
    Line,
    Mark,
    Role,
    Scale,
    Shape,
    around,
    legend,
    number,
    rows,
)
from comis_eval.report.trace import FACTORS, Trace
from comis_eval.types import Fate

_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


class Spread(NamedTuple):
    """How a factor is spread over some candidates.

    Attributes:
        factor: Which boost.
        least, p5, p25, median, p75, p95, most: Of the factor; 1 moves nothing.
        neutral: Share of the candidates that it does not move.
        n: Candidates.
    """

    factor: str
    least: float
    p5: float
    p25: float
    median: float
    p75: float
    p95: float
    most: float
    neutral: float
    n: int


@dataclass(frozen=True)
class Factors:
    """Every boost's factor over the scored candidates.

    Attributes:
        candidates: Over all of them.
        context: Over those that reached the context.
    """

    candidates: tuple[Spread, ...]
    context: tuple[Spread, ...]

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out two strips a factor: all candidates above, those in the context below."""
        strips = (*self.candidates, *self.context)
        span = around([1.0, *(end for s in strips for end in (s.least, s.most))], least=0.02)
        labels = [s.factor for s in self.candidates]
        frame = rows(labels, span, width=width, right=20, row=38, top=24)
        marks: list[Mark] = list(frame.marks)
        marks += legend([("all candidates", *_ALL), ("in the context", *_CONTEXT)], x=4, y=14)
        here = frame.x(1)
        marks.append(Line(here, 24, here, frame.bottom, "muted", 1, dashed=True))
        for spreads, look, apart in ((self.candidates, _ALL, -8), (self.context, _CONTEXT, 8)):
            for spread, y in zip(spreads, frame.ys, strict=False):
                marks += _strip(spread, frame.x, y + apart, *look)
        return Drawing(
            width,
            frame.height,
            "Score factors: what each boost multiplies scores by",
            "; ".join(
                f"{s.factor}: median {number(s.median)}, from {number(s.least)} to "
                f"{number(s.most)}, {s.neutral:.0%} unmoved"
                for s in self.candidates
            ),
            tuple(marks),
        )


_ALL: tuple[Role, Shape] = ("muted", "square")
_CONTEXT: tuple[Role, Shape] = ("first", "circle")


def _strip(spread: Spread, x: Scale, y: float, role: Role, shape: Shape) -> list[Mark]:
    start, end = x(spread.p25), x(spread.p75)
    return [
        Line(x(spread.least), y, x(spread.most), y, role, 0.8),
        Line(x(spread.p5), y, x(spread.p95), y, role, 2.5),
        Box(start, y - 5, max(end - start, 2), 10, role),
        Dot(x(spread.median), y, 3.5, "ink", shape),
    ]


def factors(trace: Trace) -> Factors | None:
    """Spread the factors of a trace; None when it holds no candidate."""
    if not trace.fates:
        return None
    inside = np.array([fate == Fate.INCLUDED for fate in trace.fates])
    everything = np.ones(len(inside), dtype=bool)
    return Factors(*(_spreads(trace, chosen) for chosen in (everything, inside)))


def _spreads(trace: Trace, chosen: NDArray[np.bool_]) -> tuple[Spread, ...]:
    if not chosen.any():
        return ()
    return tuple(_spread(factor, trace.numbers[factor][chosen]) for factor in FACTORS)


def _spread(factor: str, values: NDArray[np.float64]) -> Spread:
    quantiles = np.quantile(values, _QUANTILES).tolist()
    least, p5, p25, median, p75, p95, most = quantiles
    neutral = float((values == 1.0).mean())
    return Spread(factor, least, p5, p25, median, p75, p95, most, neutral, len(values))
