"""How much of a list anybody judged."""

from __future__ import annotations

from comis_eval.metrics.arithmetic import count, share
from comis_eval.metrics.lists import Inputs, Ranked, Values


def judged(listed: Ranked, _: Inputs, k: int) -> Values:
    """Judged memories among the first min(k, length), divided by that length.

    In [0, 1], undefined when the list is empty. It stands beside every figure for which
    an unjudged memory gains nothing: where it is low, that figure is a lower bound.

    Source: the Judged@k of ir_measures.
    """
    seen = listed.within(k)
    known = (listed.grade[:, :k] >= 0) & seen
    return share(count(known), count(seen))
