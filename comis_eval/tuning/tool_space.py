"""What a sweep of the recall tool varies when it is not told: what does something on a dataset.

Callers' parameters are no settings, and no setting says whose memories or which tags pass:
whatever is searched, scope and tags are as the caller has them.
"""

from __future__ import annotations

from typing import Any

from comis_eval.config import ORDERS, Config
from comis_eval.datasets import Dataset
from comis_eval.pipelines.recall_tool.arms import request_for
from comis_eval.stages.recall_tool.profile import preset
from comis_eval.tuning.knob import TOOL, read_knob
from comis_eval.tuning.space import Space

_SHARE: dict[str, Any] = {"low": 0, "high": 1}
_IMPORTANCE: dict[str, Any] = {"low": 0, "high": 1, "step": 0.05}
_PROFILES = {"multi-session": "multiSession", "factual": "factual"}


def tool_space(dataset: Dataset, current: Config) -> Space:
    """The knobs of the recall tool that do something on a dataset.

    Fusion and gate; the importance threshold and the presets, each where some query leaves
    it open; decay where some query asks for it; the graph where there are edges.

    Raises:
        RequestError: If a query's parameters are not allowed, naming the query.
    """
    settings = current.harness.recall_tool
    requests = [request_for(query, current) for query in dataset.queries]
    said = [query.filters.parameters for query in dataset.queries]
    asked = list(zip(requests, said, strict=True))
    both = set(current.harness.lanes) == {"fts", "vector"}
    ranges: dict[str, dict[str, Any] | None] = {
        "fusion.k": {"low": 1, "high": 200, "log": True},
    }
    if both and settings.fusion.text_weight:
        ranges["fusion.vectorWeight"] = {"low": 0.03, "high": 3, "log": True}
    if "vector" in current.harness.lanes:
        ranges["gate.noise"] = _SHARE
    ranges["gate.floor"] = _SHARE
    if any(
        given.get("min_importance") is None
        and preset(request.profile, settings).min_importance is None
        for request, given in asked
    ):
        ranges["minImportance"] = _IMPORTANCE
    for profile, key in _PROFILES.items():
        mine = [given for request, given in asked if request.profile == profile]
        for name, argument, values in (
            ("minImportance", "min_importance", _IMPORTANCE),
            ("limit", "limit", {"low": 1, "high": 50}),
            ("orderBy", "order_by", {"choices": [None, *ORDERS]}),
        ):
            if any(given.get(argument) is None for given in mine):
                ranges[f"profiles.{key}.{name}"] = values
    if any(request.decay for request in requests):
        ranges["decayBase"] = {"low": 0.5, "high": 1}
    if dataset.edges:
        ranges |= {"graph.enabled": None, "graph.share": _SHARE}
    return Space.of(read_knob(f"{TOOL}{path}", values) for path, values in ranges.items())
