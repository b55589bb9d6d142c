"""The settings of the recall tool that differ from some in one thing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from comis_eval.ablation.variants import Kind, Variant
from comis_eval.config import Config, ProfileConfig

_TOOL = "harness.recall_tool"
_SWITCHES: dict[str, tuple[str, tuple[Any, Any]]] = {
    "defaultExpiry": ("default_expiry", (True, False)),
    "indexTags": ("index_tags", (True, False)),
    "relevanceSource": ("relevance_source", ("query", "stored")),
    "rerankScope": ("rerank_scope", ("list", "page")),
}
_PROFILES = {"multiSession": "multi_session", "factual": "factual"}


def tool_variants(config: Config) -> Iterator[Variant]:
    """Every configuration of the recall tool that differs from this one in one thing.

    Switches are flipped; arms, gate, bands, the importance threshold, presets and the graph
    are turned off where they are on. The last arm stays.
    """
    tool, lanes = config.harness.recall_tool, config.harness.lanes
    for name, (field, (one, other)) in _SWITCHES.items():
        now = getattr(tool, field)
        then = other if now == one else one
        said = f"{_said(now)} -> {_said(then)}"
        yield _with(config, f"harness.recallTool.{name}", "switch", said, **{field: then})
    for gone in lanes if len(lanes) > 1 else ():
        rest = tuple(lane for lane in lanes if lane != gone)
        alone = config.evolve(**{"harness.lanes": rest})
        yield Variant(f"{gone} arm", "lane", "on -> off", alone)
    for what, kind, on, changes in (
        ("gate on noise", "gate", _gates(config), {"gate.noise": 0.0}),
        ("gate on score", "gate", tool.gate.floor > 0, {"gate.floor": 0.0}),
        ("bands", "boost", tool.band > 0, {"band": 0.0}),
        ("importance threshold", "threshold", tool.min_importance > 0, {"min_importance": 0.0}),
        ("graph", "graph", tool.graph.enabled, {"graph.enabled": False}),
    ):
        if on:
            yield _with(config, what, kind, "on -> off", **changes)  # type: ignore[arg-type]
    for name, field in _PROFILES.items():
        if dict(getattr(tool.profiles, field)) != dict(ProfileConfig()):
            changes = {f"profiles.{field}.{part}": value for part, value in ProfileConfig()}
            yield _with(config, f"{name} preset", "preset", "on -> off", **changes)


def tool_not_ablated(config: Config) -> Iterator[str]:
    """What is not ablated: it is off as it is, or nothing would be left."""
    tool, lanes = config.harness.recall_tool, config.harness.lanes
    if len(lanes) == 1:
        yield f"{lanes[0]} arm: the only one"
    off = [f"{lane} arm" for lane in ("fts", "vector") if lane not in lanes]
    off += [] if _gates(config) else ["gate on noise"]
    off += [] if tool.gate.floor > 0 else ["gate on score"]
    off += [] if tool.graph.enabled else ["graph"]
    if off:
        yield f"off already: {', '.join(off)}"


def _gates(config: Config) -> bool:
    """Whether noise is withheld: without vectors nothing is taken for noise."""
    return "vector" in config.harness.lanes and config.harness.recall_tool.gate.noise > 0


def _with(config: Config, name: str, kind: Kind, said: str, **changes: Any) -> Variant:
    changed = {f"{_TOOL}.{path}": value for path, value in changes.items()}
    return Variant(name, kind, said, config.evolve(**changed))


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
