"""How far the points of a space reach: what must be retrieved for all of them."""

from __future__ import annotations

from functools import partial

from comis_eval.config import Config
from comis_eval.pipelines.coverage import Coverage
from comis_eval.tuning.space import Space


def coverage_of(space: Space, current: Config) -> Coverage:
    """What a table must hold so that every point of a space can be replayed on it."""
    paths = {knob.path for knob in space.knobs}
    most = partial(_most, space)
    rag = current.rag
    rerank = rag.rerank.enabled or "rag.rerank.enabled" in paths
    limit = most("rag.maxResults", rag.max_results)
    if rerank:
        limit = max(limit, most("rag.rerank.maxCandidates", rag.rerank.max_candidates))
    depth = current.semantics.lane_depth
    temporal = rag.lanes.temporal
    runs = temporal.enabled or "rag.lanes.temporal.enabled" in paths
    return Coverage(
        depth=2 * limit if depth == "limit" else depth,
        rerank=rerank,
        entity=rag.entity_lane.enabled or "rag.entityLane.enabled" in paths,
        window_days=most("rag.lanes.temporal.windowDays", temporal.window_days) if runs else 0,
        causal=rag.lanes.causal.enabled or "rag.lanes.causal.enabled" in paths,
    )


def deepest(space: Space, current: Config) -> int:
    """To which rank the arms of the recall tool are read for every point of a space."""
    return _most(space, "harness.recallTool.armDepth", current.harness.recall_tool.arm_depth)


def _most(space: Space, path: str, now: int) -> int:
    """The largest value of a setting anywhere in a space."""
    knob = next((knob for knob in space.knobs if knob.path == path), None)
    if knob is None:
        return now
    numbers = [value for value in knob.choices if isinstance(value, int)]
    return max(int(knob.high), now, *numbers)
