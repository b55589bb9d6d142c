"""How far unwanted memories came: counts after each stage.

Unwanted: of a trust level or scope the dataset's policy disallows, or labelled as poison.
What only the last filter removes is one fault away from a leak.
"""

from __future__ import annotations

from collections.abc import Callable

from comis_eval.metrics.arithmetic import as_values, count
from comis_eval.metrics.lists import Inputs, Ranked, Values, given


def unwanted_after(stage: str) -> Callable[[Ranked | None, Inputs, int], Values]:
    """Make the metric that counts unwanted memories present after a stage, >= 0."""

    def unwanted(_: Ranked | None, inputs: Inputs, __: int) -> Values:
        trace = given(inputs.trace, "the trace of every candidate")
        return as_values(count(trace.after(stage) & trace.unwanted))

    unwanted.__doc__ = f"""Count unwanted memories that are present after the stage {stage}."""
    return unwanted


def resurrected(_: Ranked | None, inputs: Inputs, __: int) -> Values:
    """Count unwanted memories dropped by one stage and present after a later one.

    Anything above 0 is a fault of the pipeline.
    """
    trace = given(inputs.trace, "the trace of every candidate")
    return as_values(count(trace.returned() & trace.unwanted))
