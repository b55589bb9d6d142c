"""Share of the list that is relevant: at k, at the number of relevant ones, of the context."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.arithmetic import count, share
from comis_eval.metrics.lists import Inputs, Ranked, Values


def precision(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """Relevant memories in the first k, divided by k, also when the list is shorter.

    In [0, 1], higher is better, undefined without a relevant memory.

    Source: trec_eval's P.
    """
    found = count(listed.relevant(k, level=inputs.relevance_level))
    return np.where(inputs.relevant_total > 0, found / k, np.nan)


def r_precision(listed: Ranked, inputs: Inputs, _: int) -> Values:
    """Relevant memories in the first R, divided by R, the number of relevant memories.

    In [0, 1], higher is better, undefined without a relevant memory.

    Source: trec_eval's Rprec.
    """
    total = inputs.relevant_total
    early = np.arange(listed.depth) < total[:, None]
    found = listed.relevant(listed.depth, level=inputs.relevance_level) & early
    return share(count(found), total)


def context_precision(listed: Ranked, inputs: Inputs, _: int) -> Values:
    """Relevant memories in the context, divided by the memories in it; 0 when it is empty.

    In [0, 1], higher is better, undefined without a relevant memory. Counted by memories,
    not by characters.
    """
    found = listed.relevant(listed.depth, level=inputs.relevance_level)
    of_them = count(found) / np.maximum(listed.length, 1)
    return np.where(inputs.relevant_total > 0, of_them, np.nan)
