"""Which way a figure points."""

from __future__ import annotations

from comis_eval.errors import MetricError
from comis_eval.metrics import parse

LATENCY = "latency_ms"
"""An objective of sweeps that is no metric."""


def lower_is_better(metric: str) -> bool:
    """Whether less is better; of what this version does not know, more is."""
    if metric == LATENCY:
        return True
    try:
        return not parse(metric).definition.higher_is_better
    except MetricError:
        return False
