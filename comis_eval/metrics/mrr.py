"""How soon the first relevant memory comes."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.lists import Inputs, Ranked, Values


def mrr(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """1 / rank of the first relevant memory, 0 when none is among the first k.

    In [0, 1], higher is better, undefined without a relevant memory. Its mean over
    queries is the mean reciprocal rank.

    Source: Voorhees, "The TREC-8 Question Answering Track Report", 1999.
    """
    relevant = listed.relevant(k, level=inputs.relevance_level)
    if relevant.shape[1] == 0:
        reciprocal = np.zeros(len(listed))
    else:
        reciprocal = np.where(relevant.any(axis=1), 1.0 / (relevant.argmax(axis=1) + 1), 0.0)
    return np.where(inputs.relevant_total > 0, reciprocal, np.nan)
