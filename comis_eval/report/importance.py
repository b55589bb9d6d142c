"""Which knobs a search found to matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from comis_eval.report.drawing import WIDE, Box, Drawing, Label, Mark, rows
from comis_eval.report.study import Study


class Share(NamedTuple):
    """How much of the spread of good trials one knob explains, in [0, 1] of all knobs."""

    knob: str
    share: float


@dataclass(frozen=True)
class Importance:
    """Knobs by what they explain, the largest first."""

    shares: tuple[Share, ...]

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a bar a knob."""
        most = max((share.share for share in self.shares), default=0.0) or 1.0
        frame = rows([s.knob for s in self.shares], (0, most), width=width, right=56, axis=False)
        marks: list[Mark] = list(frame.marks)
        for share, y in zip(self.shares, frame.ys, strict=True):
            end = frame.x(share.share)
            marks.append(Box(frame.x.start, y - 7, end - frame.x.start, 14, "first"))
            marks.append(Label(width - 4, y + 4, f"{share.share:.1%}", anchor="end"))
        return Drawing(
            width,
            frame.height,
            "Importance of each knob",
            "; ".join(f"{s.knob} {s.share:.1%}" for s in self.shares),
            tuple(marks),
        )


def importance(study: Study) -> Importance | None:
    """Sort the importances; None when they were not measured."""
    shares = {k: share for k, share in study.result.importances.items() if share is not None}
    if not shares:
        return None
    largest_first = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return Importance(tuple(Share(*item) for item in largest_first))
