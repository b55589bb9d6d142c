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
        ends = [v for s in (*self.candidates, *self.context) for v in (s.least, s.most)]
        low, high = around([*ends, 1.0], least=0.02)
        frame = rows(
            [s.factor for s in self.candidates], low, high, width=width, right=16, row=38, top=24
        )
        marks: list[Mark] = list(frame.marks)
        named = [("all candidates", "muted", "square"), ("in the context", "first", "circle")]
        marks += legend(named, x=4, y=14)  # type: ignore[arg-type]
        marks.append(
            Line(frame.x(1), 24, frame.x(1), 24 + 38 * len(frame.ys), "muted", 1, dashed=True)
        )
        for strips, apart in ((self.candidates, -8.0), (self.context, 8.0)):
            inside = strips is self.context
            for s, y in zip(strips, frame.ys, strict=False):
                role, middle = ("first" if inside else "muted"), y + apart
                x = frame.x
                marks += [
                    Line(x(s.least), middle, x(s.most), middle, role, 0.8),  # type: ignore[arg-type]
                    Line(x(s.p5), middle, x(s.p95), middle, role, 2.5),  # type: ignore[arg-type]
                    Box(x(s.p25), middle - 5, max(x(s.p75) - x(s.p25), 2), 10, role),  # type: ignore[arg-type]
                    Dot(x(s.median), middle, 3.5, "ink", "circle" if inside else "square"),
                ]
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
    return Spread(factor, *quantiles, float((values == 1.0).mean()), len(values))
