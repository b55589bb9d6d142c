"""How much is injected, in characters."""

from __future__ import annotations

import numpy as np

from comis_eval.metrics.lists import Inputs, Ranked, Values, given


def context_chars(_: Ranked | None, inputs: Inputs, __: int) -> Values:
    """Characters of the whole injected section, header and wrappers included; 0 when empty.

    Lower is better at equal relevance. The unit is the pipeline's lengthUnits.
    """
    return given(inputs.context_chars, "context_chars").astype(np.float64)


def context_fill(listed: Ranked | None, inputs: Inputs, k: int) -> Values:
    """Characters of the injected section, divided by the configuration's maxContextChars.

    At most 1 unless the pipeline places text outside the budget.
    """
    limit = given(inputs.max_context_chars, "max_context_chars")
    return context_chars(listed, inputs, k) / limit
