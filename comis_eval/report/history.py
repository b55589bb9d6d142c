"""How a search went: every trial, the best so far, and what luck alone would have given."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from comis_eval.report.direction import lower_is_better
from comis_eval.report.drawing import (
    WIDE,
    Box,
    Dot,
    Drawing,
    Entry,
    Label,
    Line,
    Mark,
    Role,
    Shape,
    Trail,
    around,
    legend,
    number,
    plane,
)
from comis_eval.report.study import Study

_FEASIBLE: tuple[Role, Shape] = ("muted", "circle")
_INFEASIBLE: tuple[Role, Shape] = ("bad", "down")


class Step(NamedTuple):
    """One trial on the first objective.

    Attributes:
        number: Of the trial.
        value: Its figure.
        feasible: Whether it could win.
        best: The best figure of a feasible trial up to here; NaN before the first.
    """

    number: int
    value: float
    feasible: bool
    best: float


@dataclass(frozen=True)
class History:
    """The first objective, trial by trial.

    Attributes:
        objective: Its name.
        steps: By rising number; failed trials are left out, and counted in ``failed``.
        current: Figure of the current configuration, trial 0; NaN when unknown.
        luck: Figure that the best of as many trials would reach by luck alone, at most, in
            95 of 100 searches; NaN when the floor was not measured.
        failed: Trials without a figure.
    """

    objective: str
    steps: tuple[Step, ...]
    current: float
    luck: float
    failed: int

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a dot a trial, the running best above them, the band of luck behind."""
        span = around([*(step.value for step in self.steps), self.current, self.luck])
        titles = {"x_title": "trial", "y_title": self.objective}
        last = max(self.steps[-1].number, 1)
        frame = plane((0, last), span, width=width, height=300, top=44, **titles)
        x, y = frame.x, frame.y
        marks: list[Mark] = []
        named: list[Entry] = [("trial", *_FEASIBLE), ("best so far", "first", "square")]
        if not isnan(self.luck):
            top, bottom = sorted((y(self.current), y(self.luck)))
            marks.append(Box(x.start, top, x.end - x.start, bottom - top, "band"))
            named.append(("luck", "band", "square"))
        if any(not step.feasible for step in self.steps):
            named.append(("infeasible", *_INFEASIBLE))
        marks += [*frame.marks, *legend(named, x=4, y=30)]
        if not isnan(self.current):
            here = y(self.current)
            marks.append(Line(x.start, here, x.end, here, "muted", 1, dashed=True))
            told = f"dashed: current {number(self.current)}"
            marks.append(Label(x.end, 12, told, "muted", "end"))
        # One dot is drawn where several would lie on each other.
        places = {(round(x(s.number)), round(y(s.value)), s.feasible) for s in self.steps}
        for left, top, feasible in sorted(places):
            look = _FEASIBLE if feasible else _INFEASIBLE
            marks.append(Dot(left, top, 2.2, *look, hollow=not feasible))
        best_so_far = [(x(s.number), y(s.best)) for s in self.steps if not isnan(s.best)]
        if best_so_far:  # there is none while no trial is feasible
            marks.append(Trail(_stairs(best_so_far), "first", 2))
        best = self.steps[-1].best
        return Drawing(
            width,
            frame.height,
            f"{self.objective} of every trial",
            f"{len(self.steps)} trials; current {number(self.current)}, best feasible "
            f"{number(best)}, luck alone up to {number(self.luck)}",
            tuple(marks),
        )


def history(study: Study) -> History | None:
    """Follow the first objective; None when there are no trials to follow."""
    trials, result = study.trials, study.result
    if trials is None or not result.objectives or not trials.usable.any():
        return None
    objective = result.objectives[0]
    values, sign = trials.figures[objective], -1.0 if lower_is_better(objective) else 1.0
    kept = np.where(trials.feasible, sign * values, -np.inf)
    best = sign * np.maximum.accumulate(kept)
    best[~np.isfinite(best)] = nan
    columns = (trials.numbers, values, trials.feasible, best)
    steps = tuple(map(Step, *(column[trials.usable].tolist() for column in columns)))
    first = steps[0]
    current = first.value if first.number == 0 else nan
    gained = None if result.floor is None else result.floor.percentile_95
    luck = nan if gained is None else current + sign * gained
    return History(objective, steps, current, luck, int((~trials.usable).sum()))


def _stairs(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """A best holds until the next: corners of the steps, none twice."""
    corners: list[tuple[float, float]] = []
    for at, (x, y) in enumerate(points):
        if at and y != points[at - 1][1]:
            corners += [(x, points[at - 1][1]), (x, y)]
        elif at in (0, len(points) - 1):
            corners.append((x, y))
    return tuple(corners)
