"""What the filters kept from a query although it was relevant and allowed."""

from __future__ import annotations

from comis_eval.metrics.arithmetic import count, share
from comis_eval.metrics.lists import Inputs, Ranked, Values, given


def over_block(_: Ranked | None, inputs: Inputs, __: int) -> Values:
    """Share of relevant and allowed candidates that a filter or a floor dropped.

    In [0, 1], lower is better, undefined without such a candidate. A defence that lets
    nothing through has no leak and an over_block of 1.

    Source: ours; asked for by the filters in arXiv:2601.05504, one of which rejected every
    entry it was shown.
    """
    trace = given(inputs.trace, "the trace of every candidate")
    dropped = count(trace.relevant_allowed & trace.blocked)
    return share(dropped, count(trace.relevant_allowed))
