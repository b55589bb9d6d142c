"""Two arms on the same queries: figures of both, the difference, its interval and its p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from comis_eval.config import Config
from comis_eval.stats import compare, max_t
from experiments.common.scene import Scene, Scored, scored

RESAMPLES = 10_000
"""Of every bootstrap and permutation test in the results that are kept."""


class Pair(NamedTuple):
    """Two arms that are compared: the first less the second."""

    first: str
    second: str

    @property
    def name(self) -> str:
        """How results call it."""
        return f"{self.first} - {self.second}"


def paired(
    scene: Scene,
    arms: Mapping[str, Mapping[str, Scored]],
    pairs: Sequence[Pair],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Every pair's difference in every metric, tested by group.

    Args:
        scene: Whose groups are flipped and resampled whole.
        arms: By arm, then by metric, what was scored.
        pairs: Which arms are compared; together they are one family, and ``p_adjusted`` is
            corrected over it by MaxT.
        seed: Of flips and samples.
        resamples: How many.

    Returns:
        By pair, then by metric. Differences keep the metric's own sign: less of a rate of
        attacks is below 0. Undefined figures are None.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {pair.name: {} for pair in pairs}
    for metric in arms[pairs[0].first]:
        first = [arms[pair.first][metric] for pair in pairs]
        second = [arms[pair.second][metric] for pair in pairs]
        differences = np.stack(
            [one.values - other.values for one, other in zip(first, second, strict=True)], axis=1
        )
        # A query weighs what it does in the two figures; they differ where one is undefined.
        shares = np.stack(
            [
                np.minimum(one.weights, other.weights)
                for one, other in zip(first, second, strict=True)
            ],
            axis=1,
        )
        figures = compare(
            differences, scene.groups, shares, scene.strata, resamples=resamples, seed=seed
        )
        adjusted = max_t(differences, scene.groups, shares, flips=resamples, seed=seed)
        for column, pair in enumerate(pairs):
            told = figures[column]
            found[pair.name][metric] = {
                "mean": finite(told.mean),
                "low": finite(told.low),
                "high": finite(told.high),
                "p": finite(told.p),
                "p_adjusted": finite(float(adjusted[column])),
                "queries": told.n_queries,
                "groups": told.n_groups,
                "changed": int((np.nan_to_num(differences[:, column]) != 0).sum()),
            }
    return found


def measured(
    scene: Scene,
    arms: Mapping[str, Config],
    pairs: Sequence[Pair],
    metrics: Sequence[str],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> dict[str, Any]:
    """Recall with every arm that some pair names: figures of the arms, and the pairs."""
    named = dict.fromkeys(arm for pair in pairs for arm in pair)
    found: dict[str, dict[str, Scored]] = {}
    for arm in named:
        inputs = scene.inputs(arms[arm])
        found[arm] = {name: scored(inputs, name) for name in metrics}
    return {
        "arms": figures(found),
        "pairs": paired(scene, found, pairs, seed=seed, resamples=resamples),
    }


def figures(arms: Mapping[str, Mapping[str, Scored]]) -> dict[str, dict[str, float | None]]:
    """The figure of every arm and metric; None where it is undefined."""
    return {
        arm: {metric: finite(one.figure) for metric, one in found.items()}
        for arm, found in arms.items()
    }


def finite(value: float) -> float | None:
    """A figure as JSON has it, short enough that rounding differs on no machine."""
    return round(float(value), 6) if np.isfinite(value) else None
