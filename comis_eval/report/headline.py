"""One figure of an evaluation among its reference rows, and the headroom above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Literal, NamedTuple

from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL
from comis_eval.report.drawing import WIDE, Box, Dot, Drawing, Label, Line, Mark, number, rows
from comis_eval.report.weights import weights_of
from comis_eval.stats import bootstrap_ci

ORACLE = "oracle"

Kind = Literal["first", "second", "reference", "oracle"]


class Standing(NamedTuple):
    """Where one ranking of the same memories stands.

    Attributes:
        label: Name of the evaluation, or of the reference row.
        value: Its figure.
        low, high: 95% interval by group; NaN for a reference row.
        n: Queries behind it.
        kind: What it is.
    """

    label: str
    value: float
    low: float
    high: float
    n: int
    kind: Kind


@dataclass(frozen=True)
class Headline:
    """A figure of evaluations among the reference rows of the first.

    Attributes:
        metric: Which figure.
        standings: Worst first.
        headroom: What the best order of the same candidates has above the first evaluation;
            NaN where there is no oracle.
    """

    metric: str
    standings: tuple[Standing, ...]
    headroom: float

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a row each; shape tells an evaluation, a reference and the oracle apart."""
        high = max((1.0, *(s.value for s in self.standings)))
        low = min((0.0, *(s.value for s in self.standings)))
        frame = rows([s.label for s in self.standings], low, high, width=width, right=56)
        marks: list[Mark] = list(frame.marks)
        for standing, y in zip(self.standings, frame.ys, strict=True):
            role = standing.kind if standing.kind in ("first", "second") else "muted"
            here = role != "muted"
            marks.append(Line(frame.x(low), y, frame.x(standing.value), y, role, 2))
            if not isnan(standing.low):
                ends = frame.x(standing.low), frame.x(standing.high)
                marks.append(Box(ends[0], y - 4, ends[1] - ends[0], 8, "band"))
                marks.append(Line(*_flat(ends, y), role, 3))
            shape = {"oracle": "diamond", "reference": "square"}.get(standing.kind, "circle")
            marks.append(Dot(frame.x(standing.value), y, 5, role, shape))  # type: ignore[arg-type]
            marks.append(Label(width - 4, y + 4, number(standing.value), anchor="end", bold=here))
        return Drawing(
            width,
            frame.height,
            f"{self.metric} beside the reference rows",
            "; ".join(f"{s.label} {number(s.value)}" for s in self.standings),
            tuple(marks),
        )


def headline(evaluations: Mapping[str, Evaluation], metric: str, *, seed: int = 0) -> Headline:
    """Put a figure among its reference rows.

    Args:
        evaluations: One, or two, by the name they are shown under.
        metric: Which figure, such as ``ndcg@10``.
        seed: Of the intervals.
    """
    first = next(iter(evaluations.values()))
    standings = [
        _standing(label, evaluation, metric, kind, seed)
        for (label, evaluation), kind in zip(evaluations.items(), ("first", "second"), strict=False)
    ]
    here = standings[0].value
    references = {name: row[metric] for name, row in first.references.items() if metric in row}
    standings += [
        Standing(name, mean.value, nan, nan, mean.n, "oracle" if name == ORACLE else "reference")
        for name, mean in references.items()
        if not isnan(mean.value)
    ]
    best = references[ORACLE].value if ORACLE in references else nan
    known = [standing for standing in standings if not isnan(standing.value)]
    return Headline(metric, tuple(sorted(known, key=lambda s: s.value)), best - here)


def _standing(label: str, evaluation: Evaluation, metric: str, kind: Kind, seed: int) -> Standing:
    mean = evaluation.means[ALL][metric]
    low, high = interval(evaluation, metric, seed=seed)
    return Standing(label, mean.value, low, high, mean.n, kind)


def interval(evaluation: Evaluation, metric: str, *, seed: int = 0) -> tuple[float, float]:
    """95% bootstrap interval of the figure of ``all``, by group; NaN where it has none."""
    weights = weights_of(evaluation, metric)
    if not weights.sum() > 0:  # true for NaN too
        return nan, nan
    found = bootstrap_ci(
        evaluation.values[metric], evaluation.groups, weights, evaluation.categories, seed=seed
    )
    return float(found.low[0]), float(found.high[0])


def _flat(ends: tuple[float, float], y: float) -> tuple[float, float, float, float]:
    return ends[0], y, ends[1], y
