"""What each query weighs in a figure, told by an evaluation alone, also one read from a file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.metrics import (
    ALL,
    Categories,
    Ideal,
    Inputs,
    Objective,
    Values,
    parse,
    utility_weights,
)


def weights_of(evaluation: Evaluation, metric: str, category: str = ALL) -> Values:
    """Return what each query weighs in a figure, up to a common factor, shape (q,).

    ``all`` weighs the queries of headline categories alike (every query for what must be 0
    everywhere), and utility as the macro mean it is; a category weighs its queries alike. A
    query that the figure leaves out weighs 0; undefined values are not looked at.

    Raises:
        EvaluationError: If it is the utility of ``all``, and no metric tells which queries
            are answerable.
        MetricError: If there is no such metric.
    """
    definition = parse(metric).definition
    categories = np.array(evaluation.categories, dtype=object)
    if category != ALL:
        counted: NDArray[np.bool_] = categories == category
        return counted.astype(np.float64)
    if definition.reduce == "utility":
        return utility_weights(_inputs(evaluation))
    if not definition.headline_only:
        return np.ones(len(categories))
    counted = np.isin(categories, evaluation.settings["headline"])
    return counted.astype(np.float64)


def answerable(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Tell which queries have a relevant memory, shape (q,).

    Read off a metric that is defined for exactly those, or for exactly the others.

    Raises:
        EvaluationError: If no such metric was scored.
    """
    for name, column in evaluation.values.items():
        try:
            queries = parse(name).definition.queries
        except MetricError:
            continue  # a metric of a later version
        if queries == "answerable":
            return ~np.isnan(column)
        if queries == "unanswerable":
            return np.isnan(column)
    raise EvaluationError(
        "no metric of the evaluation tells which queries are answerable, which utility's weights "
        "rest on; score abstention too"
    )


def _inputs(evaluation: Evaluation) -> Inputs:
    """As much as the weights of utility rest on."""
    settings = evaluation.settings
    names = tuple(dict.fromkeys(evaluation.categories))
    code = {name: number for number, name in enumerate(names)}
    return Inputs(
        ideal=Ideal(answerable(evaluation).astype(np.int8)[:, None]),
        failed=np.zeros(len(evaluation.query_ids), dtype=bool),
        objective=Objective(
            settings["k0"],
            settings["c0"],
            settings["utility"]["cost"],
            settings["utility"]["unanswerableWeight"],
        ),
        categories=Categories(
            np.array([code[name] for name in evaluation.categories], dtype=np.intp),
            names,
            np.isin(np.array(names, dtype=object), settings["headline"]),
        ),
    )
