"""Whether the best lane weight and k transfer between sets: see README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from comis_eval.config import Config
from comis_eval.report.drawing import Drawing
from experiments.common.claims import Claim
from experiments.common.drawings import curves
from experiments.common.experiment import Arms, Experiment, Options, Results
from experiments.common.halves import halves
from experiments.common.pairs import Pair, finite, measured
from experiments.common.scene import Scene, scored
from experiments.common.tables import lined, number, pairs_table

HERE = Path(__file__).parent

METRIC = "ndcg@10"
METRICS = (METRIC, "utility", "recall@5")
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
KS = (1, 5, 20, 60, 120)
DEFAULT = "default"
WEIGHT = Pair("vector 4", "vector 0.25")
SMALL_K = Pair("k 5", DEFAULT)
FIXED = {WEIGHT.first: (4.0, 60), WEIGHT.second: (0.25, 60), SMALL_K.first: (1.0, 5)}
"""Chosen on nothing; compared on all queries."""


def best(name: str) -> str:
    """The arm whose weight and k were chosen on a set."""
    return f"best of {name}"


def setting(weight: float, k: int) -> Config:
    """A vector lane weight beside a keyword lane of weight 1, and k."""
    return Config().evolve(**{"rag.lanes.vector.weight": weight, "harness.fusion.k": k})


GRID = {(weight, k): setting(weight, k) for weight in WEIGHTS for k in KS}


def grid_of(scene: Scene) -> dict[tuple[float, int], float]:
    """What every setting scores."""
    return scene.kept(
        "grid", lambda: {at: scored(scene.inputs(c), METRIC).figure for at, c in GRID.items()}
    )


def arms(scenes: Sequence[Scene], options: Options) -> Arms:
    """The default, and the best setting on one half of each set; the first of equal ones."""
    found = {DEFAULT: Config(), **{arm: GRID[at] for arm, at in FIXED.items()}}
    for scene in scenes:
        scores = grid_of(scene.part(halves(scene, options.seed).tune))
        found[best(scene.name)] = GRID[max(scores, key=lambda at: scores[at])]
    return found


def measure(scene: Scene, compared: Arms, options: Options) -> Results:
    """Fixed settings on all queries; chosen ones on the half that chose nothing."""
    own, sizes = best(scene.name), {"seed": options.seed, "resamples": options.resamples}
    chosen = [arm for arm in compared if arm not in {DEFAULT, *FIXED}]
    pairs = [Pair(arm, DEFAULT) for arm in chosen]
    pairs += [Pair(arm, own) for arm in chosen if own in compared and arm != own]
    unseen = scene.kept("unseen", lambda: scene.part(halves(scene, options.seed).unseen))
    told: dict[str, Any] = measured(unseen, compared, pairs, METRICS, **sizes)
    told["pairs"] |= measured(scene, compared, [WEIGHT, SMALL_K], METRICS, **sizes)["pairs"]
    told["settings"] = {
        arm: {"vector": config.lane_weight("vector"), "k": config.harness.fusion.k}
        for arm, config in compared.items()
    }
    told["grid"] = [
        {"vector": weight, "k": k, METRIC: finite(value)}
        for (weight, k), value in grid_of(scene).items()
    ]
    return told


CLAIMS = (
    Claim(
        "a heavy vector lane beats a light one", WEIGHT, METRIC, "more", ("starter", "core")
    ),
    Claim("a heavy vector lane loses to a light one", WEIGHT, METRIC, "less", ("locomo",)),
    Claim("a small k beats the default", SMALL_K, METRIC, "more", ("starter", "locomo")),
    Claim(
        "the best setting of its own other half beats the default",
        Pair(best("locomo"), DEFAULT), METRIC, "more", ("locomo",),
    ),
    Claim(
        "the best setting of core loses to the default",
        Pair(best("core"), DEFAULT), METRIC, "less", ("locomo",),
    ),
    Claim(
        "the best setting of its own other half is the default to within noise",
        Pair(best("core"), DEFAULT), METRIC, "same", ("core",), 0.04,
    ),
)  # fmt: skip


def table(results: Results) -> str:
    """The settings that were chosen, the regret matrix, the differences."""
    settings = {
        arm: values for told in results["sets"].values() for arm, values in told["settings"].items()
    }
    chosen = lined(
        ["arm", "vector weight", "k"],
        [[arm, f"{v['vector']:g}", str(v["k"])] for arm, v in settings.items()],
    )
    names = list(results["sets"])
    searched = [arm for arm in settings if arm not in FIXED]
    regret = lined(
        [f"{METRIC} on the unseen half of", *searched],
        [
            [name, *(number(results["sets"][name]["arms"][arm][METRIC]) for arm in searched)]
            for name in names
        ],
    )
    pairs = [WEIGHT, SMALL_K]
    pairs += [
        Pair(arm, other) for other in searched for arm in searched if arm not in {other, DEFAULT}
    ]
    return f"{chosen}\n\n{regret}\n\n{pairs_table(results, pairs, METRICS)}"


def figure(results: Results) -> Drawing:
    """The figure against the vector lane's weight, at the default k, on all queries."""
    series = {
        name: [
            (cell["vector"], cell[METRIC])
            for cell in told["grid"]
            if cell["k"] == Config().harness.fusion.k
        ]
        for name, told in results["sets"].items()
    }
    return curves(
        f"{METRIC} by weight of the vector lane (keyword lane 1, k 60), all queries",
        "Where the lines peak at different weights, the best weight of one set is not another's.",
        series,
        x_title="weight of the vector lane",
        y_title=METRIC,
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
