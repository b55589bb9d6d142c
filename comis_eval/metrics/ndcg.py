"""Normalised discounted cumulative gain, with linear or exponential gain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from comis_eval.metrics.arithmetic import discounts, rank_sum, share
from comis_eval.metrics.lists import Inputs, Ranked, Values, given

Gain = Callable[[Values], Values]


def ndcg(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """Sum of grade / log2(rank + 1) over the first k, divided by the most k could reach.

    The ideal is built from all judged memories and cut at k, never at the length of the
    list: finding one of two and stopping is not perfect. In [0, 1], higher is better,
    undefined without a memory of grade >= 1. Unjudged memories gain 0.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
    TOIS 20(4), 2002; discount and cut as trec_eval's ndcg_cut.
    """
    return _normalised(listed, inputs, k, _linear)


def ndcg_exp(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """As ndcg, a grade gaining 2^grade - 1: high grades dominate.

    Source: Burges et al., "Learning to rank using gradient descent", ICML 2005.
    """
    return _normalised(listed, inputs, k, _exponential)


def context_ndcg(listed: Ranked, inputs: Inputs, _: int) -> Values:
    """Linear ndcg of the context at the objective's k0.

    k0 is the current configuration's maxResults and stays so during a sweep: a trial
    that injects more does not move its own bar.
    """
    return ndcg(listed, inputs, given(inputs.objective, "an objective with k0").k0)


def _normalised(listed: Ranked, inputs: Inputs, k: int, gain: Gain) -> Values:
    return share(_dcg(listed.grade[:, :k], gain), _dcg(inputs.ideal.grades[:, :k], gain))


def _dcg(grades: NDArray[np.int8], gain: Gain) -> Values:
    gains = gain(np.maximum(grades, 0).astype(np.float64))
    return rank_sum(gains * discounts(grades.shape[1]))


def _linear(grades: Values) -> Values:
    return grades


def _exponential(grades: Values) -> Values:
    return np.exp2(grades) - 1.0
