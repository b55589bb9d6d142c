"""Whether anything relevant was found."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.arithmetic import count
from comis_eval.metrics.lists import Inputs, Ranked, Values


def hit(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """1 when any of the first k is relevant, else 0.

    Higher is better, undefined without a relevant memory. Published LongMemEval figures
    called recall_any, and often just recall, are this.

    Source: trec_eval's success.
    """
    found = count(listed.relevant(k, level=inputs.relevance_level)) > 0
    return np.where(inputs.relevant_total > 0, found, np.nan)
