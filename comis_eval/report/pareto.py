"""What quality costs: the trials that no other beats on every objective at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from comis_eval.report.drawing import WIDE, Dot, Drawing, Mark, around, legend, number, plain, plane
from comis_eval.report.study import Study


class Trade(NamedTuple):
    """One feasible trial on two objectives.

    Attributes:
        number: Of the trial.
        quality: The first objective.
        cost: The other one.
        front: Whether no trial beats it on every objective of the study.
    """

    number: int
    quality: float
    cost: float
    front: bool


@dataclass(frozen=True)
class Pareto:
    """Two objectives of a study against each other.

    Attributes:
        objectives: The first one of the study, and the other.
        trades: By rising trial number; feasible trials, each point once.
        current: Trial 0, when it is among them.
        winner: The trial that won, when there is one.
    """

    objectives: tuple[str, str]
    trades: tuple[Trade, ...]
    current: Trade | None
    winner: Trade | None

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a dot a trial, those of the front filled and larger."""
        quality, cost = self.objectives
        frame = plane(
            around([t.cost for t in self.trades]),
            around([t.quality for t in self.trades]),
            width=width, height=320, x_title=cost, y_title=quality, top=44,
        )  # fmt: skip
        marks: list[Mark] = list(frame.marks)
        named = [
            ("trial", "muted", "circle"), ("front", "first", "square"),
            ("current", "second", "diamond"), ("winner", "good", "up"),
        ]  # fmt: skip
        marks += legend(named, x=4, y=30)  # type: ignore[arg-type]
        for trade in sorted(self.trades, key=lambda t: t.front):
            at = frame.x(trade.cost), frame.y(trade.quality)
            tip = f"trial {trade.number}: {quality} {number(trade.quality)}, {cost} {plain(trade.cost)}"
            look = (4.5, "first", "square") if trade.front else (2.2, "muted", "circle")
            marks.append(Dot(*at, *look, tip=tip))  # type: ignore[arg-type]
        for standing_out, role, shape in (
            (self.current, "second", "diamond"), (self.winner, "good", "up"),
        ):  # fmt: skip
            if standing_out is not None:
                at = frame.x(standing_out.cost), frame.y(standing_out.quality)
                marks.append(Dot(*at, 6, role, shape))  # type: ignore[arg-type]
        front = [t for t in self.trades if t.front]
        return Drawing(
            width,
            frame.height,
            f"{quality} against {cost}",
            f"{len(front)} of {len(self.trades)} trials on the front: "
            + "; ".join(f"{number(t.quality)} at {plain(t.cost)}" for t in front[:20]),
            tuple(marks),
        )


def pareto(study: Study) -> tuple[Pareto, ...]:
    """Set the first objective against each of the others; nothing for a single objective."""
    trials, result = study.trials, study.result
    if trials is None or result.pareto is None or len(result.objectives) < 2:
        return ()
    front = set(result.pareto)
    first = result.objectives[0]
    chosen = np.flatnonzero(trials.feasible & ~trials.repeats).tolist()
    found = []
    for other in result.objectives[1:]:
        trades = tuple(
            Trade(int(trials.numbers[t]), float(trials.figures[first][t]),
                  float(trials.figures[other][t]), int(trials.numbers[t]) in front)
            for t in chosen
        )  # fmt: skip
        if not trades:
            continue
        by_number = {trade.number: trade for trade in trades}
        won = None if result.winner is None else by_number.get(result.winner.number)
        found.append(Pareto((first, other), trades, by_number.get(0), won))
    return tuple(found)
