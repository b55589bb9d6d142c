"""What quality costs: the trials that no other beats on every objective at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from comis_eval.report.drawing import (
    WIDE,
    Dot,
    Drawing,
    Entry,
    Mark,
    Role,
    Shape,
    around,
    legend,
    number,
    plain,
    plane,
)
from comis_eval.report.study import Study

_ANY: tuple[Role, Shape] = ("muted", "circle")
_FRONT: tuple[Role, Shape] = ("first", "square")
_NAMED: tuple[Entry, ...] = (("current", "second", "diamond"), ("winner", "good", "up"))


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
        spans = [around([getattr(t, axis) for t in self.trades]) for axis in ("cost", "quality")]
        frame = plane(
            spans[0], spans[1], width=width, height=320, x_title=cost, y_title=quality, top=44
        )
        marks: list[Mark] = list(frame.marks)
        marks += legend([("trial", *_ANY), ("front", *_FRONT), *_NAMED], x=4, y=30)
        for trade in sorted(self.trades, key=lambda t: t.front):
            look, radius = (_FRONT, 4.5) if trade.front else (_ANY, 2.2)
            tip = f"trial {trade.number}: {number(trade.quality)} at {plain(trade.cost)}"
            at = frame.x(trade.cost), frame.y(trade.quality)
            marks.append(Dot(*at, radius, *look, tip=tip))
        for named, (_, role, shape) in zip((self.current, self.winner), _NAMED, strict=True):
            if named is not None:
                at = frame.x(named.cost), frame.y(named.quality)
                marks.append(Dot(*at, 6, role, shape))
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
    chosen = trials.feasible & ~trials.repeats
    found = []
    for other in result.objectives[1:]:
        numbers, quality, cost = (
            column[chosen].tolist()
            for column in (trials.numbers, trials.figures[first], trials.figures[other])
        )
        trades = tuple(map(Trade, numbers, quality, cost, [n in front for n in numbers]))
        if not trades:
            continue
        by_number = {trade.number: trade for trade in trades}
        won = None if result.winner is None else by_number.get(result.winner.number)
        found.append(Pareto((first, other), trades, by_number.get(0), won))
    return tuple(found)
