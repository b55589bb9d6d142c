"""Evaluations against one: differences with intervals, and p corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from comis_eval import stats
from comis_eval.comparison.paired import (
    Cell,
    aligned,
    check_comparable,
    check_constants,
    incomparable,
    pairs,
)
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.text import html_table, notebook_html, printable

if TYPE_CHECKING:
    import pandas as pd

Correction = Literal["maxt", "holm"]

HEADLINE = (
    "utility", "ndcg@10", "recall@5", "hit@5", "mrr@10", "context_recall", "context_precision",
)  # fmt: skip
"""What is compared when nothing is asked for."""


@dataclass(frozen=True, slots=True)
class Delta:
    """How one figure of one evaluation differs from the first's."""

    metric: str
    category: str
    other: int
    """Which evaluation, counted from 1 behind the first."""
    before: float
    """The first's figure over the pairs in which both are defined; NaN without any."""
    after: float
    figures: stats.Comparison
    """Of the differences, turned so that higher is better."""
    p_adjusted: float
    """Corrected over the family that was asked for together."""

    @property
    def cell(self) -> Cell:
        """Which figure."""
        return Cell(self.metric, self.category)


@dataclass(frozen=True, slots=True)
class Compared:
    """Evaluations against the first.

    Attributes:
        headline: Figures of ``all``, one family of tests.
        categories: The same by category, another family; exploratory.
        correction: How p was corrected within a family.
        level: Significance level; intervals hold 1 - level.
        notes: What a reader must know: metrics left out and why.
    """

    headline: tuple[Delta, ...]
    categories: tuple[Delta, ...]
    correction: Correction
    level: float
    notes: tuple[str, ...]

    def frame(self) -> pd.DataFrame:
        """Differences as rows, of ``all`` and of each category.

        Returns:
            other (evaluation, from 1 behind the first), metric, category, before, after,
            difference (higher is better), low, high, p (corrected), n.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "other": delta.other,
                    "metric": delta.metric,
                    "category": delta.category,
                    "before": delta.before,
                    "after": delta.after,
                    "difference": delta.figures.mean,
                    "low": delta.figures.low,
                    "high": delta.figures.high,
                    "p": delta.p_adjusted,
                    "n": delta.figures.n_queries,
                }
                for delta in (*self.headline, *self.categories)
            ]
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the differences of ``all``, and what to know."""
        rows = [
            (
                printable(delta.metric),
                str(delta.other),
                f"{delta.before:.3f}",
                f"{delta.after:.3f}",
                f"{delta.figures.mean:+.3f} [{delta.figures.low:+.3f}, {delta.figures.high:+.3f}]",
                f"{delta.p_adjusted:.4f}",
                str(delta.figures.n_queries),
            )
            for delta in self.headline
        ]
        head = ["metric", "other", "first", "this", "difference, higher is better", "p", "n"]
        return notebook_html(
            f"Differences from the first, {1 - self.level:.0%} intervals, p by {self.correction}",
            html_table(head, rows),
            *map(printable, self.notes),
        )


def compare_evaluations(
    first: Evaluation,
    *others: Evaluation,
    metrics: Sequence[str] | None = None,
    margin: float = 0.0,
    correction: Correction = "maxt",
    level: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
) -> Compared:
    """Compare evaluations with the first: same dataset, same queries, in any order.

    Args:
        first: What the others are held against.
        others: At least one.
        metrics: Names; None: of HEADLINE those that all of them scored and share the
            constants of.
        margin: Loss that matters, >= 0: how many queries would show it is planned for.
        correction: Over all metrics and evaluations of a family.
        level: Two-sided significance level, in (0, 1).
        resamples: Flips and bootstrap samples.
        seed: Of both.

    Raises:
        EvaluationError: If they cannot be compared; names the difference.
        MetricError: If there is no such metric.
    """
    if not others:
        raise EvaluationError("comparing needs at least two evaluations")
    everyone = (first, *others)
    for number, other in enumerate(others, start=2):
        try:
            check_comparable(first, other)
        except EvaluationError as error:
            raise EvaluationError(f"evaluations 1 and {number}: {error}") from error
    asked, notes = _asked(everyone, metrics)
    options = {"margin": margin, "correction": correction, "level": level,
               "resamples": resamples, "seed": seed}  # fmt: skip
    categories = dict.fromkeys(first.categories)
    by_category = [Cell(metric, category) for category in categories for metric in asked]
    return Compared(
        deltas(first, others, [Cell(metric) for metric in asked], **options),  # type: ignore[arg-type]
        deltas(first, others, by_category, **options),  # type: ignore[arg-type]
        correction,
        level,
        tuple(notes),
    )


def _asked(
    everyone: Sequence[Evaluation], metrics: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Which metrics to compare, and why others of the default are left out."""
    if metrics is not None:
        check_constants(everyone, metrics)
        return list(dict.fromkeys(metrics)), []
    asked, notes = [], []
    for metric in HEADLINE:
        if not all(metric in evaluation.values for evaluation in everyone):
            notes.append(f"{metric} is left out: not all of them scored it")
        elif (reason := incomparable(everyone, metric)) is not None:
            notes.append(f"left out: {reason}")
        else:
            asked.append(metric)
    if not asked:
        raise EvaluationError("the evaluations share no headline metric; name some with --metric")
    return asked, notes


def deltas(
    first: Evaluation,
    others: Sequence[Evaluation],
    cells: Sequence[Cell],
    *,
    margin: float | Mapping[str, float] = 0.0,
    correction: Correction = "maxt",
    level: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Delta, ...]:
    """Compare some figures as one family of tests; see :func:`compare_evaluations`.

    Args:
        first: What the others are held against.
        others: With the same queries, in any order.
        cells: Which figures.
        margin: Loss that matters, for all or by metric.
        correction: Holm, or MaxT over sign flips that all columns share.
        level: Two-sided significance level, in (0, 1).
        resamples: Flips and bootstrap samples.
        seed: Of both.

    Returns:
        One record an evaluation and cell, in that order.
    """
    if not cells:
        return ()
    named = [(number, cell) for number in range(1, len(others) + 1) for cell in cells]
    columns = [
        pairs(first, other, cell) for other in (aligned(o, first) for o in others) for cell in cells
    ]
    differences = np.column_stack([column.differences for column in columns])
    weights = np.column_stack([column.weights for column in columns])
    margins = [margin[c.metric] if isinstance(margin, Mapping) else margin for _, c in named]
    figures = stats.compare(
        differences, first.groups, weights, first.categories,
        margins=margins, level=level, resamples=resamples, seed=seed,
    )  # fmt: skip
    if correction == "holm":
        adjusted = stats.holm([one.p for one in figures])
    else:
        adjusted = stats.max_t(differences, first.groups, weights, flips=resamples, seed=seed)
    return tuple(
        Delta(cell.metric, cell.category, number, *column.means(), one, float(p))
        for (number, cell), column, one, p in zip(named, columns, figures, adjusted, strict=True)
    )
