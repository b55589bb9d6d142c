"""A figure of each category with its interval: where recall is good and where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import NamedTuple

import numpy as np

from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL
from comis_eval.report.drawing import (
    LOOKS,
    WIDE,
    Dot,
    Drawing,
    Label,
    Mark,
    legend,
    number,
    rows,
    whisker,
)
from comis_eval.report.headline import RESAMPLES, interval
from comis_eval.stats import bootstrap_ci


class Bar(NamedTuple):
    """One category of one evaluation: the figure, its 95% interval by group, and n."""

    category: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Categories:
    """A figure by category, ``all`` first.

    Attributes:
        metric: Which figure.
        series: By evaluation; every series has the same categories in the same order.
        by: What the queries are grouped by.
    """

    metric: str
    series: Mapping[str, tuple[Bar, ...]]
    by: str = "category"

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay out a row a category, with the intervals as whiskers."""
        first = next(iter(self.series.values()))
        every = [bar for bars in self.series.values() for bar in bars]
        ends = [v for bar in every for v in (bar.value, bar.low, bar.high) if not isnan(v)]
        several = len(self.series) > 1
        frame = rows(
            [f"{bar.category} ({bar.n})" for bar in first],
            (min((0.0, *ends)), max((1.0, *ends))),
            width=width,
            right=112 if several else 60,
            row=30 if several else 24,
            top=24 if several else 4,
        )
        marks: list[Mark] = list(frame.marks)
        if several:
            named = [(name, *look) for name, look in zip(self.series, LOOKS, strict=False)]
            marks += legend(named, x=4, y=14)
        for place, (bars, (role, shape)) in enumerate(
            zip(self.series.values(), LOOKS, strict=False)
        ):
            apart = (place - 0.5) * 11 if several else 0.0
            for bar, y in zip(bars, frame.ys, strict=True):
                column = width - 4 - (52 if several and place == 0 else 0)
                bold = bar.category == ALL
                marks.append(Label(column, y + 4, number(bar.value), role, "end", bold))
                if isnan(bar.value):
                    continue
                if not isnan(bar.low):
                    marks += whisker(frame.x(bar.low), frame.x(bar.high), y + apart, role)
                marks.append(Dot(frame.x(bar.value), y + apart, 4.5, role, shape))
        return Drawing(
            width,
            frame.height,
            f"{self.metric} by {self.by} with 95% intervals",
            "; ".join(
                f"{name}, {bar.category}: {number(bar.value)} "
                f"[{number(bar.low)}, {number(bar.high)}], n {bar.n}"
                for name, bars in self.series.items()
                for bar in bars
            ),
            tuple(marks),
        )


def categories(evaluations: Mapping[str, Evaluation], metric: str, *, seed: int = 0) -> Categories:
    """Put figures by category side by side.

    Args:
        evaluations: Of the same queries, by the name they are shown under.
        metric: Which figure.
        seed: Of the bootstrap, which draws whole groups.
    """
    first = next(iter(evaluations.values()))
    names = [name for name in first.means if name != ALL]
    return Categories(
        metric,
        {
            label: _bars(evaluation, metric, names, seed)
            for label, evaluation in evaluations.items()
        },
    )


def _bars(evaluation: Evaluation, metric: str, names: list[str], seed: int) -> tuple[Bar, ...]:
    mine = np.array(evaluation.categories, dtype=object)[:, None] == np.array(names, dtype=object)
    columns = np.where(mine, evaluation.values[metric][:, None], np.nan)
    found = bootstrap_ci(columns, evaluation.groups, resamples=RESAMPLES, seed=seed)
    whole = interval(evaluation, metric, seed=seed)
    ends = [whole, *zip(found.low.tolist(), found.high.tolist(), strict=True)]
    figures = [evaluation.means[name][metric] for name in (ALL, *names)]
    return tuple(
        Bar(name, mean.value, *end, mean.n)
        for name, mean, end in zip((ALL, *names), figures, ends, strict=True)
    )
