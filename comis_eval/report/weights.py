"""What each query weighs in a figure, from the evaluation file alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL, parse


def weights_of(evaluation: Evaluation, metric: str, category: str = ALL) -> NDArray[np.float64]:
    """Shape (q,), not normalised; 0 for a query that the figure leaves out.

    Utility of ``all`` is a macro mean over categories beside the unanswerable part. Which
    queries are unanswerable is told by ``abstention``, which is defined for them alone;
    without it the weights are unknown, and all NaN.
    """
    categories = np.array(evaluation.categories, dtype=object)
    if category != ALL:
        return (categories == category).astype(np.float64)
    headline = np.isin(categories, evaluation.settings["headline"])
    try:
        definition = parse(metric).definition
    except MetricError:
        return headline.astype(np.float64)  # a metric of a later version
    if definition.reduce == "utility":
        return _of_utility(evaluation, categories, headline)
    counted = headline if definition.headline_only else np.ones(len(categories), dtype=bool)
    return counted.astype(np.float64)


def _of_utility(
    evaluation: Evaluation, categories: NDArray[np.object_], headline: NDArray[np.bool_]
) -> NDArray[np.float64]:
    if "abstention" not in evaluation.values:
        return np.full(len(categories), np.nan)
    unanswerable = ~np.isnan(evaluation.values["abstention"])
    silence = _silence(evaluation.settings) if unanswerable.any() else 0.0
    counted = headline & ~unanswerable
    named, sizes = np.unique(categories[counted].astype(str), return_counts=True)
    size_of = dict(zip(named.tolist(), sizes.tolist(), strict=True))
    weights = np.zeros(len(categories))
    for place in np.flatnonzero(counted):
        weights[place] = (1 - silence) / (len(named) * size_of[str(categories[place])])
    if counted.any():
        weights[unanswerable] = silence / max(int(unanswerable.sum()), 1)
    return weights


def _silence(settings: Mapping[str, Any]) -> float:
    constants = settings.get("utility")
    found = constants.get("unanswerableWeight") if isinstance(constants, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise EvaluationError(
            "metrics.utility.unanswerableWeight of the evaluation must be a number in [0, 1]; "
            "evaluate again with --out"
        )
    return float(found)


def is_total(metric: str) -> bool:
    """Whether a metric's figure is a sum over queries instead of a mean."""
    try:
        return parse(metric).definition.reduce == "total"
    except MetricError:
        return False


def lower_is_better(metric: str) -> bool:
    """Whether less is better; a metric of a later version is taken to be better when higher."""
    if metric == "latency_ms":
        return True  # an objective of sweeps, and no metric
    try:
        return not parse(metric).definition.higher_is_better
    except MetricError:
        return False
