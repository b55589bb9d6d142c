"""Default alphas beside none and beside tuned ones: see README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from comis_eval.config import Config
from comis_eval.errors import EvaluationError
from comis_eval.report.drawing import Drawing
from comis_eval.tuning.knob import Knob
from comis_eval.tuning.space import Space
from comis_eval.tuning.sweep import SweepPlan, sweep
from experiments.common.claims import Claim
from experiments.common.drawings import Bar, differences
from experiments.common.experiment import Arms, Experiment, Options, Results
from experiments.common.halves import halves
from experiments.common.pairs import Pair, measured
from experiments.common.scene import Scene
from experiments.common.tables import lined, number, pairs_table

HERE = Path(__file__).parent

METRICS = ("utility", "ndcg@10", "recall@5")
ALPHAS = ("recency", "temporal", "proof", "trust")
DEFAULT, NONE = "default", "none"
PLAIN = Pair(DEFAULT, NONE)


def tuned(name: str) -> str:
    """The arm whose alphas were searched on a set."""
    return f"tuned on {name}"


def arms(scenes: Sequence[Scene], options: Options) -> Arms:
    """No boosts, the default ones, and the best found on one half of each set."""
    off = {f"rag.scoring.{alpha}_alpha": 0.0 for alpha in ALPHAS}
    found = {DEFAULT: Config(), NONE: Config().evolve(**off)}
    for scene in scenes:
        found[tuned(scene.name)] = _searched(scene, options)
    return found


def _searched(scene: Scene, options: Options) -> Config:
    """The best feasible alphas of a search on a set's first half; all else is the default."""
    knobs = [Knob(f"rag.scoring.{alpha}Alpha", "float", 0.0, 1.0) for alpha in ALPHAS]
    part = scene.part(halves(scene, options.seed).tune)
    plan = SweepPlan(
        name=scene.name, trials=options.trials, seed=options.seed, space=Space.of(knobs),
        confirm=False,
    )  # fmt: skip
    result = sweep(part.dataset, Config(), plan, retriever=scene.retriever)
    best = result.study.best
    if best is None:
        raise EvaluationError(f"no trial on {scene.name} is feasible; give it more trials")
    return result.study.config(best.number)


def measure(scene: Scene, compared: Arms, options: Options) -> Results:
    """All queries for what never saw them; the unseen half for what was tuned on the other."""
    own, sizes = tuned(scene.name), {"seed": options.seed, "resamples": options.resamples}
    others = [arm for arm in compared if arm not in {DEFAULT, NONE, own}]
    whole = [PLAIN, *(Pair(arm, DEFAULT) for arm in others)]
    told: dict[str, Any] = measured(scene, compared, whole, METRICS, **sizes)
    if own in compared:
        unseen = scene.kept("unseen", lambda: scene.part(halves(scene, options.seed).unseen))
        half = measured(unseen, compared, [Pair(own, DEFAULT), Pair(own, NONE)], METRICS, **sizes)
        told["pairs"] |= half["pairs"]
        told["unseen"] = half["arms"]
    told["alphas"] = {
        arm: {alpha: getattr(config.rag.scoring, f"{alpha}_alpha") for alpha in ALPHAS}
        for arm, config in compared.items()
    }
    return told


CLAIMS = (
    Claim("the default alphas are better than none", PLAIN, "utility", "more", ("core",)),
    Claim(
        "the default alphas are worse than none", PLAIN, "utility", "less", ("starter", "locomo")
    ),
    *(
        Claim(
            "alphas tuned on the set's other half are better than the default ones",
            Pair(tuned(name), DEFAULT), "utility", "more", (name,),
        )
        for name in ("core", "locomo")
    ),
    Claim(
        "tuned alphas are better than none",
        Pair(tuned("core"), NONE), "utility", "more", ("core",),
    ),
    *(
        Claim(
            "tuned alphas are no better than none",
            Pair(tuned(name), NONE), "utility", "same", (name,), margin,
        )
        for name, margin in (("starter", 0.05), ("locomo", 0.01))
    ),
    Claim(
        "alphas tuned on LoCoMo are worse than the default ones",
        Pair(tuned("locomo"), DEFAULT), "utility", "less", ("starter", "core"),
    ),
    Claim(
        "alphas tuned on core are worse than the default ones",
        Pair(tuned("core"), DEFAULT), "utility", "less", ("locomo",),
    ),
)  # fmt: skip


def table(results: Results) -> str:
    """The alphas, then every difference."""
    alphas = {
        arm: values for told in results["sets"].values() for arm, values in told["alphas"].items()
    }
    settings = lined(
        ["arm", *(f"{alpha}Alpha" for alpha in ALPHAS)],
        [[arm, *(number(values[alpha]) for alpha in ALPHAS)] for arm, values in alphas.items()],
    )
    trained = [arm for arm in alphas if arm not in {DEFAULT, NONE}]
    pairs = [
        PLAIN,
        *(Pair(arm, other) for arm in trained for other in (DEFAULT, NONE)),
    ]
    return f"{settings}\n\n{pairs_table(results, pairs, METRICS)}"


def figure(results: Results) -> Drawing:
    """Every difference in utility."""
    bars = [
        Bar(f"{pair}, {name}", found["mean"], found["low"], found["high"])
        for name, told in results["sets"].items()
        for pair, metrics in told["pairs"].items()
        for found in [metrics["utility"]]
    ]
    return differences(
        "utility: one choice of alphas less another, 95% interval",
        "Right of 0 the first is better. Tuned alphas are shown on queries they never saw.",
        bars,
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
