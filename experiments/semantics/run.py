"""What each documented / production difference does: see README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from comis_eval.ablation import variants
from comis_eval.config import Config
from comis_eval.report.drawing import Drawing
from experiments.common.claims import Claim
from experiments.common.drawings import Bar, differences
from experiments.common.experiment import Arms, Experiment, Options, Results
from experiments.common.pairs import Pair, measured
from experiments.common.scene import Scene
from experiments.common.tables import pairs_table

HERE = Path(__file__).parent

METRICS = ("utility", "ndcg@10", "context_recall", "context_chars")
DOCUMENTED, PRODUCTION, ENTITY = "documented", "production", "entity lane"
_ENTITY_SWITCHES = ("fusion", "minScoreExemptsEntity", "entitySeedsReenter", "trustRefill")
"""Those that touch the entity lane, which is off by default; they are tried with it on as well."""


def arms(_: Sequence[Scene], __: Options) -> Arms:
    """The documented semantics, each switch of it turned alone, and all of them turned."""
    documented = Config()
    found = {DOCUMENTED: documented}
    for variant in variants(documented):
        if variant.kind == "switch" and variant.name != "semantics.minScoreOn":
            found[variant.name.removeprefix("semantics.")] = variant.config
    found[PRODUCTION] = documented.evolve(**{"semantics.preset": "production"})
    found[ENTITY] = documented.evolve(**{"rag.entity_lane.enabled": True})
    for variant in variants(found[ENTITY]):
        switch = variant.name.removeprefix("semantics.")
        if switch in _ENTITY_SWITCHES:
            found[f"{ENTITY}, {switch}"] = variant.config
    found[f"{ENTITY}, {PRODUCTION}"] = found[ENTITY].evolve(**{"semantics.preset": "production"})
    return found


def pairs_of(compared: Sequence[str]) -> tuple[Pair, ...]:
    """Each arm beside what it differs from."""
    bases = {DOCUMENTED, ENTITY}
    return tuple(
        Pair(arm, ENTITY if arm.startswith(f"{ENTITY},") else DOCUMENTED)
        for arm in compared
        if arm not in bases
    )


def measure(scene: Scene, compared: Arms, options: Options) -> Results:
    """Each switch less the documented semantics, p corrected over all of them."""
    pairs = pairs_of(list(compared))
    return measured(scene, compared, pairs, METRICS, seed=options.seed, resamples=options.resamples)


CLAIMS: tuple[Claim, ...] = ()


def table(results: Results) -> str:
    """Every switch on every set."""
    names = [name for told in results["sets"].values() for name in told["arms"]]
    return pairs_table(results, pairs_of(list(dict.fromkeys(names))), METRICS)


def figure(results: Results) -> Drawing:
    """What each switch does to utility, on the set whose utility it moves most."""
    bars = [
        Bar(f"{pair}, {name}", found["mean"], found["low"], found["high"])
        for name, told in results["sets"].items()
        for pair, metrics in told["pairs"].items()
        for found in [metrics["utility"]]
        if found["changed"] and found["low"] is not None
    ]
    bars.sort(key=lambda bar: (-abs(bar.mean), bar.label))
    return differences(
        "utility: the switch less the documented semantics, 95% interval",
        "Switches that change no query of a set are left out of it.",
        bars,
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
