"""What makes two sweeps the same study, and in what two differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from comis_eval.config import Config
from comis_eval.errors import ConfigError
from comis_eval.text import printable
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.space import Space

MOST = 8
"""How many differences a message lists."""

_ABSENT = object()


def fingerprint_of(
    given: Mapping[str, Any],
    *,
    space: Space,
    base: Config,
    objectives: Sequence[Objective],
    sampler: str,
    seed: int,
) -> dict[str, Any]:
    """All that a study's trials depend on, as JSON has it.

    Args:
        given: What only the caller knows: the dataset's fingerprint, the split.
        space: What varies.
        base: The current configuration, and what does not vary.
        objectives: What is searched for.
        sampler: Who proposes.
        seed: Of the sampler.
    """
    ours = {
        "objectives": [f"{objective.direction} {objective.name}" for objective in objectives],
        "sampler": sampler,
        "seed": seed,
        "space": space.describe(),
        "current": base.to_tree(),
    }
    if both := [name for name in ours if name in given]:
        raise ConfigError(f"a study's fingerprint already has {', '.join(both)}")
    tree: dict[str, Any] = json.loads(json.dumps({**given, **ours}, allow_nan=False))
    return tree


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In what two fingerprints differ, one phrase each, by dotted path."""
    before, after = dict(_leaves(then)), dict(_leaves(now))
    return [
        f"{printable(path, limit=120)} was {_words(before, path)}, is {_words(after, path)}"
        for path in dict.fromkeys((*before, *after))
        if before.get(path, _ABSENT) != after.get(path, _ABSENT)
    ]


def phrase(differences: Sequence[str]) -> str:
    """The first differences, and how many more there are."""
    more = len(differences) - MOST
    return "; ".join(differences[:MOST]) + (f"; and {more} more" if more > 0 else "")


def _leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _words(leaves: Mapping[str, Any], path: str) -> str:
    if path not in leaves:
        return "absent"
    return printable(json.dumps(leaves[path], ensure_ascii=False), limit=160)
