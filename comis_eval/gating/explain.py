"""Which queries moved, and at which stage the two ways of each first part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from comis_eval.comparison import STAGES, Delta, Parting, parting_of, ways_of
from comis_eval.comparison.paired import pairs
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation

if TYPE_CHECKING:
    from comis_eval.gating.verdict import Gated

TRACED = 50
"""How many of the queries that moved most are followed through the stages."""

_GRAVITY = ("regression", "undecided", "improvement", "pass")


class Moved(NamedTuple):
    """A query whose value changed.

    Attributes:
        query_id: The query.
        category: Its category.
        before: The baseline's value.
        after: The candidate's.
        gain: The difference, turned so that higher is better.
        parting: The first stage at which the two part; None without traces, or when the
            stages from search to budget gave the same.
    """

    query_id: str
    category: str
    before: float
    after: float
    gain: float
    parting: Parting | None


class Explanation(NamedTuple):
    """What moved in the figure that decided.

    Attributes:
        metric: The figure's metric.
        category: And its slice.
        lost: How many queries lost.
        gained: How many gained.
        moved: The losses, largest first; then the gains, largest first. At most TRACED.
        stages: For how many of those the two first part at each stage, in stage order.
        untraced: Why no stage can be told; None when it can.
    """

    metric: str
    category: str
    lost: int
    gained: int
    moved: tuple[Moved, ...]
    stages: dict[str, int]
    untraced: str | None


def explain(
    baseline: Evaluation,
    candidate: Evaluation,
    gated: Sequence[Gated],
    *,
    files: tuple[Path | None, Path | None] = (None, None),
) -> Explanation | None:
    """Say which queries moved most in the gravest figure, and where.

    Args:
        baseline: What was.
        candidate: With the queries in the baseline's order.
        gated: Figures with their outcomes.
        files: Beside which the traces of the two lie.

    Returns:
        None when no query moved in any gated figure.
    """
    ordered = sorted(gated, key=lambda one: (_GRAVITY.index(one.outcome), one.delta.figures.p))
    for one in ordered:
        found = _moved(baseline, candidate, one.delta)
        if found:
            return _explained(baseline, candidate, one.delta, found, files)
    return None


def _moved(baseline: Evaluation, candidate: Evaluation, delta: Delta) -> list[Moved]:
    paired = pairs(baseline, candidate, delta.cell)
    gains = np.nan_to_num(paired.differences)
    found = [
        Moved(
            baseline.query_ids[place],
            baseline.categories[place],
            float(paired.before[place]),
            float(paired.after[place]),
            float(gains[place]),
            None,
        )
        for place in np.flatnonzero(gains).tolist()
    ]
    return sorted(found, key=lambda one: (one.gain > 0, -abs(one.gain), one.query_id))


def _explained(
    baseline: Evaluation,
    candidate: Evaluation,
    delta: Delta,
    found: list[Moved],
    files: tuple[Path | None, Path | None],
) -> Explanation:
    followed = found[:TRACED]
    untraced = None
    try:
        followed = _followed(baseline, candidate, followed, files)
    except EvaluationError as error:
        untraced = str(error)
    counts = Counter(one.parting.stage for one in followed if one.parting is not None)
    return Explanation(
        delta.metric,
        delta.category,
        sum(one.gain < 0 for one in found),
        sum(one.gain > 0 for one in found),
        tuple(followed),
        {stage: counts[stage] for stage in STAGES if counts[stage]},
        untraced,
    )


def _followed(
    baseline: Evaluation,
    candidate: Evaluation,
    moved: list[Moved],
    files: tuple[Path | None, Path | None],
) -> list[Moved]:
    asked = [one.query_id for one in moved]
    ways = []
    for name, evaluation, path in zip(
        ("baseline", "candidate"), (baseline, candidate), files, strict=True
    ):
        try:
            ways.append(ways_of(evaluation, path, asked))
        except EvaluationError as error:
            raise EvaluationError(f"no trace of the {name}: {error}") from error
    before, after = ways
    return [
        one._replace(parting=parting_of(before[one.query_id], after[one.query_id])) for one in moved
    ]
