"""Whether everything relevant was found."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.lists import Inputs, Ranked, Values
from comis_eval.metrics.recall import recall


def recall_all(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """1 when every relevant memory is among the first k, else 0.

    Higher is better, undefined without a relevant memory; 0 for a query with more than k
    of them. It tells whether a question that needs several memories could be answered.

    Source: Wu et al., "LongMemEval", ICLR 2025 (recall_all).
    """
    found = recall(listed, inputs, k)
    return np.where(np.isnan(found), np.nan, found == 1.0)
