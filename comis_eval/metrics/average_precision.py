"""Precision averaged over the relevant memories."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.arithmetic import rank_sum, share
from comis_eval.metrics.lists import Inputs, Ranked, Values


def average_precision(listed: Ranked, inputs: Inputs, _: int) -> Values:
    """Sum of the precision at each relevant memory's rank, divided by all relevant memories.

    Those not listed add 0. In [0, 1], higher is better, undefined without a relevant
    memory. Its mean over queries is MAP.

    Source: Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000;
    trec_eval's map.
    """
    relevant = listed.relevant(listed.depth, level=inputs.relevance_level)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, listed.depth + 1)
    return share(rank_sum(np.where(relevant, precision, 0.0)), inputs.relevant_total)
