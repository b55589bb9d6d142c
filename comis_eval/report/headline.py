"""One figure of an evaluation among its reference rows, and the headroom above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Literal, NamedTuple

from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation import Evaluation
from comis_eval.evaluation.weights import weights_of
from comis_eval.metrics import ALL, parse
from comis_eval.report.drawing import (
    LOOKS,
    WIDE,
    Dot,
    Drawing,
    Label,
    Line,
    Mark,
    Role,
    Shape,
    number,
    rows,
    whisker,
)
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
        values = [standing.value for standing in self.standings]
        span = min((0.0, *values)), max((1.0, *values))
        frame = rows([s.label for s in self.standings], span, width=width, right=60)
        marks: list[Mark] = list(frame.marks)
        for standing, y in zip(self.standings, frame.ys, strict=True):
            role, shape = _LOOK[standing.kind]
            end = frame.x(standing.value)
            marks.append(Line(frame.x(0), y, end, y, role, 2))
            if not isnan(standing.low):
                marks += whisker(frame.x(standing.low), frame.x(standing.high), y, role)
            marks.append(Dot(end, y, 5, role, shape))
            told = number(standing.value)
            marks.append(Label(width - 4, y + 4, told, anchor="end", bold=role != "muted"))
        return Drawing(
            width,
            frame.height,
            f"{self.metric} beside the reference rows",
            "; ".join(f"{s.label} {number(s.value)}" for s in self.standings),
            tuple(marks),
        )


_LOOK: Mapping[Kind, tuple[Role, Shape]] = {
    "first": LOOKS[0],
    "second": LOOKS[1],
    "reference": ("muted", "square"),
    "oracle": ("muted", "up"),
}
_MEASURED: tuple[Kind, ...] = ("first", "second")


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
        for (label, evaluation), kind in zip(evaluations.items(), _MEASURED, strict=False)
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


RESAMPLES = 2_000
"""Of a whisker's bootstrap: more would not move it by a pixel."""


def interval(evaluation: Evaluation, metric: str, *, seed: int = 0) -> tuple[float, float]:
    """95% bootstrap interval of the figure of ``all``, by group.

    NaN where the figure is a sum, where it is undefined, and where the evaluation does not
    tell what its queries weigh.
    """
    try:
        mean = parse(metric).definition.reduce != "total"
        weights = weights_of(evaluation, metric)
    except (EvaluationError, MetricError):
        return nan, nan
    if not mean or not weights.any():
        return nan, nan
    values, strata = evaluation.values[metric], evaluation.categories
    found = bootstrap_ci(values, evaluation.groups, weights, strata, resamples=RESAMPLES, seed=seed)
    return float(found.low[0]), float(found.high[0])
