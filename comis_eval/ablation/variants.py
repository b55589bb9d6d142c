"""The configurations that differ from one in one thing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

from comis_eval.config import PRODUCTION, Config, Semantics, preset

Kind = Literal[
    "switch", "lane", "rerank", "boost", "diversity", "gate", "threshold", "graph", "preset"
]

_SPREAD = {
    "entity": "rag.entity_lane.enabled",
    "temporal": "rag.lanes.temporal.enabled",
    "causal": "rag.lanes.causal.enabled",
}
_BOOSTS = ("recency", "temporal", "proof", "trust", "usefulness")


class Variant(NamedTuple):
    """The current configuration but for one thing.

    Attributes:
        name: The switch as files spell it, or what is off.
        kind: What sort of thing it is.
        said: What changes, ``flat -> nested``.
        config: The whole configuration.
    """

    name: str
    kind: Kind
    said: str
    config: Config


def variants(config: Config) -> Iterator[Variant]:
    """Every configuration that differs from this one in one thing.

    A switch takes the values that the presets give it, or any other that it may have where
    they agree. Lanes, rerank, diversity and boosts that are on are turned off; the last
    search lane stays, since nothing could be found without.
    """
    yield from _switches(config)
    search = config.harness.lanes
    for gone in search if len(search) > 1 else ():
        rest = tuple(lane for lane in search if lane != gone)
        yield _off_by(config, "lane", f"{gone} lane", **{"harness.lanes": rest})
    for lane, path in _SPREAD.items():
        if _value(config, path):
            yield _off_by(config, "lane", f"{lane} lane", **{path: False})
    if config.rag.rerank.enabled:
        yield _off_by(config, "rerank", "rerank", **{"rag.rerank.enabled": False})
    if config.rag.mmr.enabled:
        yield _off_by(config, "diversity", "mmr", **{"rag.mmr.enabled": False})
    for boost in _BOOSTS:
        if _is_on(config, boost):
            path = f"rag.scoring.{boost}_alpha"
            yield _off_by(config, "boost", f"{boost} boost", **{path: 0.0})


def _switches(config: Config) -> Iterator[Variant]:
    rows = [preset("documented"), preset("production")]
    for name in PRODUCTION:
        now = getattr(config.semantics, name)
        values = [getattr(row, name) for row in rows]
        if values[0] == values[1]:
            values += _allowed(name)
        alias = Semantics.model_fields[name].alias or name
        for value in dict.fromkeys(values):
            if value != now:
                yield Variant(
                    f"semantics.{alias}",
                    "switch",
                    f"{_shown(now)} -> {_shown(value)}",
                    config.evolve(**{f"semantics.{name}": value}),
                )


def _allowed(name: str) -> list[Any]:
    """What a switch of a few names may be."""
    return list(get_args(Semantics.model_fields[name].annotation))


def _shown(value: Any) -> str:
    if hasattr(value, "model_dump"):
        return ", ".join(f"{key} {inner}" for key, inner in value.model_dump().items() if inner)
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _off_by(config: Config, kind: Kind, what: str, **changes: Any) -> Variant:
    return Variant(what, kind, "on -> off", config.evolve(**changes))


def _value(config: Config, path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _is_on(config: Config, boost: str) -> bool:
    heard = boost != "usefulness" or config.rag.feedback.enabled
    return heard and getattr(config.rag.scoring, f"{boost}_alpha") > 0


def not_ablated(config: Config) -> Iterator[str]:
    """What is not ablated: it is off as it is, or nothing would be left."""
    if len(config.harness.lanes) == 1:
        yield f"{config.harness.lanes[0]} lane: the only search lane"
    off = [f"{lane} lane" for lane in ("fts", "vector") if lane not in config.harness.lanes]
    off += [f"{lane} lane" for lane, path in _SPREAD.items() if not _value(config, path)]
    off += [] if config.rag.rerank.enabled else ["rerank"]
    off += [f"{boost} boost" for boost in _BOOSTS if not _is_on(config, boost)]
    if off:
        yield f"off already: {', '.join(off)}"
