"""The default objective: what the context is worth, less what its ballast costs."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.arithmetic import rank_sum
from comis_eval.metrics.lists import Inputs, Ranked, Values, given
from comis_eval.metrics.ndcg import context_ndcg
from comis_eval.metrics.silence import noise


def utility(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """context_ndcg less cost x irrelevant characters / C0; 1 - noise when unanswerable.

    At most 1, higher is better; ballast beyond C0 can bring it below 0. Irrelevant
    characters are the lines of memories of grade 0 or unjudged. A query the pipeline
    failed on scores 0. The figure of a query set is not the plain mean of these values
    but their sum under :func:`utility_weights`.
    """
    objective = given(inputs.objective, "an objective")
    ballast = (listed.grade <= 0) & listed.within(listed.depth)
    chars = np.where(ballast, given(listed.chars, "chars, the length of each line"), 0)
    cost = objective.cost * rank_sum(chars) / objective.c0
    answered = context_ndcg(listed, inputs, k) - cost
    return np.where(inputs.ideal.answerable, answered, 1.0 - noise(listed, inputs, k))


def utility_weights(inputs: Inputs) -> Values:
    """Return what each query weighs in the utility of the set, shape (q,), summing to 1.

    (1 - s) / (C x n_c) for an answerable query of one of the C headline categories that
    have one, n_c being how many its category has; s / n_u for each of the n_u unanswerable
    queries of any category; 0 for the rest. s is the objective's unanswerable_weight, 0
    when no query is unanswerable. All are 0, and utility undefined, when no headline
    query is answerable.
    """
    answerable = inputs.ideal.answerable
    counted = answerable & inputs.headline
    if not counted.any():
        return np.zeros(len(inputs))
    unanswerable = int(np.count_nonzero(~answerable))
    silence = given(inputs.objective, "an objective").unanswerable_weight if unanswerable else 0.0
    codes = np.zeros(len(inputs), dtype=np.intp)
    if inputs.categories is not None:
        codes = inputs.categories.codes
    per_category = np.bincount(codes[counted])
    macro = (1.0 - silence) / np.count_nonzero(per_category)
    weights = np.zeros(len(inputs))
    weights[counted] = macro / per_category[codes[counted]]
    weights[~answerable] = silence / max(unanswerable, 1)
    return weights
