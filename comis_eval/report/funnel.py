"""How many memories that the policy keeps out are still there after each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL, STAGES
from comis_eval.report.drawing import LOOKS, WIDE, Box, Drawing, Label, Mark, Role, legend, rows
from comis_eval.text import printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Funnel:
    """Unwanted memories (of disallowed trust or scope, or poison) by stage, over all queries.

    Attributes:
        stages: Those that were counted, in the order they run.
        counts: By evaluation, one a stage.
    """

    stages: tuple[str, ...]
    counts: Mapping[str, tuple[int, ...]]

    def frame(self) -> pd.DataFrame:
        """The counts as a table: a row a stage, a column an evaluation."""
        import pandas as pd

        names = [printable(name) for name in self.counts]
        columns = dict(zip(names, self.counts.values(), strict=True))
        return pd.DataFrame(columns, index=pd.Index(self.stages, name="after"))

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a bar a stage; what is left after the last is in somebody's context."""
        most = max((1, *(count for row in self.counts.values() for count in row)))
        several = len(self.counts) > 1
        labels = [f"after {stage}" for stage in self.stages]
        frame = rows(
            labels, (0, most), width=width, right=100, axis=False,
            row=34 if several else 24, top=24 if several else 4,
        )  # fmt: skip
        marks: list[Mark] = list(frame.marks)
        if several:
            named = [(name, *look) for name, look in zip(self.counts, LOOKS, strict=False)]
            marks += legend(named, x=4, y=14)
        thick = 11.0 if several else 14.0
        for place, (row, (role, _)) in enumerate(zip(self.counts.values(), LOOKS, strict=False)):
            apart = (place - 0.5) * 13 if several else 0.0
            for stage, count, y in zip(self.stages, row, frame.ys, strict=True):
                leaked = count > 0 and stage == STAGES[-1]
                top, end = y - thick / 2 + apart, frame.x(count)
                bar: Role = "bad" if leaked else role
                marks.append(Box(frame.x.start, top, end - frame.x.start, thick, bar))
                told = f"{count} LEAKED" if leaked else str(count)
                marks.append(Label(end + 6, top + thick - 2, told, bold=leaked))
        return Drawing(
            width,
            frame.height,
            "Memories that the policy keeps out, by the stage they were still there after",
            "; ".join(
                f"{name}: " + ", ".join(f"{s} {c}" for s, c in zip(self.stages, row, strict=True))
                for name, row in self.counts.items()
            ),
            tuple(marks),
        )


def funnel(evaluations: Mapping[str, Evaluation]) -> Funnel | None:
    """Count by stage; None when an evaluation did not count."""
    stages = tuple(
        stage
        for stage in STAGES
        if all(_count(evaluation, stage) is not None for evaluation in evaluations.values())
    )
    if not stages:
        return None
    return Funnel(
        stages,
        {
            label: tuple(_count(evaluation, stage) or 0 for stage in stages)
            for label, evaluation in evaluations.items()
        },
    )


def _count(evaluation: Evaluation, stage: str) -> int | None:
    mean = evaluation.means[ALL].get(f"unwanted_after_{stage}")
    return round(mean.value) if mean is not None and mean.n else None
