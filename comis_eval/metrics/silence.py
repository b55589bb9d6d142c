"""What a query without an answer gets: nothing, or how much of it."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.arithmetic import as_values
from comis_eval.metrics.lists import Inputs, Ranked, Values, given


def abstention(listed: Ranked, _: Inputs, __: int) -> Values:
    """1 when the context is empty, else 0, on unanswerable queries. Higher is better."""
    return as_values(listed.length == 0)


def noise(_: Ranked | None, inputs: Inputs, __: int) -> Values:
    """min(1, characters injected / C0), on unanswerable queries.

    In [0, 1], lower is better. The graded sibling of abstention: a short wrong context
    costs less than a long one.
    """
    chars = given(inputs.context_chars, "context_chars")
    objective = given(inputs.objective, "an objective with c0")
    return np.minimum(1.0, chars / objective.c0)
