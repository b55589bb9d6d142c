"""What a sweep's winner gains in each category, on queries that the search never saw."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple

from comis_eval.report.direction import lower_is_better
from comis_eval.report.drawing import (
    WIDE,
    Dot,
    Drawing,
    Label,
    Line,
    Mark,
    Role,
    Shape,
    around,
    rows,
    signed,
)
from comis_eval.report.study import Gain, Study


class Change(NamedTuple):
    """One category: both figures, their difference with its 95% interval, and n."""

    category: str
    current: float
    winner: float
    gain: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Gains:
    """Winner minus current by category."""

    objective: str
    changes: tuple[Change, ...]

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a row a category; what is surely better or worse has a triangle."""
        ends = [v for c in self.changes for v in (c.gain, c.low, c.high)]
        frame = rows(
            [f"{c.category} ({c.n})" for c in self.changes], around([*ends, 0.0], least=0.02),
            width=width, right=60,
        )  # fmt: skip
        marks: list[Mark] = list(frame.marks)
        marks.append(Line(frame.x(0), 4, frame.x(0), frame.bottom, "muted", 1, dashed=True))
        for change, y in zip(self.changes, frame.ys, strict=True):
            role, shape = _look(change, flip=lower_is_better(self.objective))
            marks.append(Label(width - 4, y + 4, signed(change.gain), anchor="end"))
            if isnan(change.gain):
                continue
            if not isnan(change.low):
                marks.append(Line(frame.x(change.low), y, frame.x(change.high), y, role, 2))
            marks.append(Dot(frame.x(change.gain), y, 5, role, shape))
        return Drawing(
            width,
            frame.height,
            f"Gain of the winner by category ({self.objective})",
            "; ".join(
                f"{c.category} {signed(c.gain)} [{signed(c.low)}, {signed(c.high)}], n {c.n}"
                for c in self.changes
            ),
            tuple(marks),
        )


def gains(study: Study) -> Gains | None:
    """Take differences by category; None when they were not measured."""
    result = study.result
    if not result.per_category:
        return None
    objective = result.objectives[0] if result.objectives else "the objective"
    return Gains(objective, tuple(_change(*item) for item in result.per_category.items()))


def _change(category: str, gain: Gain) -> Change:
    current, winner, low, high = (
        nan if value is None else value
        for value in (gain.current, gain.winner, gain.low, gain.high)
    )
    return Change(category, current, winner, winner - current, low, high, gain.n)


def _look(change: Change, *, flip: bool) -> tuple[Role, Shape]:
    """Only an interval that does not hold 0 is said to be better or worse."""
    if not (change.low > 0 or change.high < 0):
        return "muted", "circle"
    return ("good", "up") if (change.low > 0) != flip else ("bad", "down")
