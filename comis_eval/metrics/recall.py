"""Share of the relevant memories that were found."""

from __future__ import annotations

from comis_eval.metrics.arithmetic import count, share
from comis_eval.metrics.lists import Inputs, Ranked, Values


def recall(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """Relevant memories in the first k, divided by all relevant memories.

    In [0, 1], higher is better, undefined without a relevant memory. The fraction, which
    at k = 1 is not hit@1.

    Source: trec_eval's recall.
    """
    found = count(listed.relevant(k, level=inputs.relevance_level))
    return share(found, inputs.relevant_total)
