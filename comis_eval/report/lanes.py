"""For how many queries each lane found anything; a lane that found nothing is dead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from comis_eval.evaluation import Evaluation
from comis_eval.report.drawing import LOOKS, WIDE, Box, Drawing, Label, Mark, Role, rows


class Reach(NamedTuple):
    """One lane of one evaluation: queries it found anything for, of how many."""

    evaluation: str
    lane: str
    hits: int
    queries: int

    @property
    def dead(self) -> bool:
        """Whether the lane ran and found nothing at all."""
        return self.hits == 0 and self.queries > 0


@dataclass(frozen=True)
class Lanes:
    """Every lane that ran, in the order they run."""

    reaches: tuple[Reach, ...]

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a bar a lane on the frame of all queries; a dead one says so."""
        names = dict.fromkeys(reach.evaluation for reach in self.reaches)
        looks, several = dict(zip(names, LOOKS, strict=False)), len(names) > 1
        labels = [f"{r.lane}, {r.evaluation}" if several else r.lane for r in self.reaches]
        right = 116 if any(reach.dead for reach in self.reaches) else 84
        frame = rows(labels, (0, 1), width=width, right=right, axis=False)
        marks: list[Mark] = list(frame.marks)
        for reach, y in zip(self.reaches, frame.ys, strict=True):
            start, whole = frame.x.start, frame.x.end - frame.x.start
            share = reach.hits / max(reach.queries, 1)
            marks.append(Box(start, y - 7, whole, 14, "band"))
            marks.append(Box(start, y - 7, whole * share, 14, looks[reach.evaluation][0]))
            if reach.dead:
                marks.append(Box(start, y - 7, whole, 14, "bad", hollow=True))
            told = f"{reach.hits} of {reach.queries}"
            role: Role = "bad" if reach.dead else "ink"
            said = f"DEAD, {told}" if reach.dead else told
            marks.append(Label(width - 4, y + 4, said, role, "end", reach.dead))
        return Drawing(
            width,
            frame.height,
            "Queries for which each lane found anything",
            "; ".join(
                f"{label}: {r.hits} of {r.queries}{', dead' if r.dead else ''}"
                for label, r in zip(labels, self.reaches, strict=True)
            ),
            tuple(marks),
        )


def lanes(evaluations: Mapping[str, Evaluation]) -> Lanes | None:
    """Count each lane's queries; None when no lane ran."""
    reaches = tuple(
        Reach(label, lane, hits, evaluation.counts["queries"])
        for label, evaluation in evaluations.items()
        for lane, hits in evaluation.lanes.items()
    )
    return Lanes(reaches) if reaches else None
