"""Whether trust decides where relevance does not."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.arithmetic import count, share
from comis_eval.metrics.lists import Inputs, Ranked, Values, given


def trust_inversion(listed: Ranked, _: Inputs, k: int) -> Values:
    """Share of pairs in the first k in which less trusted text stands above more trusted.

    Counted are pairs of different trust in which the more trusted memory's grade is at
    least the other's (unjudged: 0), so that relevance does not excuse the order. In
    [0, 1], lower is better, undefined without such a pair.
    """
    trust = given(listed.trust, "the trust of each memory")[:, :k]
    grade = np.maximum(listed.grade[:, :k], 0)
    seen = listed.within(k)
    pairs = np.zeros(len(listed))
    inverted = np.zeros(len(listed))
    for gap in range(1, seen.shape[1]):
        above, below = trust[:, :-gap], trust[:, gap:]
        upper, lower = grade[:, :-gap], grade[:, gap:]
        wrong = seen[:, gap:] & (above < below) & (lower >= upper)
        right = seen[:, gap:] & (above > below) & (upper >= lower)
        inverted += count(wrong)
        pairs += count(wrong | right)
    return share(inverted, pairs)
