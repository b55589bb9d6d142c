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
LEAST = 0.01
"""Smaller differences stand in the table and not in the figure."""

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


ALL = ("starter", "core", "locomo")


def _alone(switch: str) -> Pair:
    return Pair(switch, DOCUMENTED)


CLAIMS = (
    Claim(
        "without trimToMaxResults the context fills up with ballast",
        _alone("trimToMaxResults"), "utility", "less", ALL,
    ),
    Claim("wrapping learned memories costs room", _alone("wrap"), "utility", "less", ALL),
    Claim("the short line format saves room", _alone("lineFormat"), "utility", "more", ALL),
    Claim(
        "lanes read only to twice the limit rank better than lanes read to 100",
        _alone("laneDepth"), "utility", "more", ALL,
    ),
    Claim(
        "without refill the ranking of what the trust filter leaves is short",
        _alone("trustRefill"), "ndcg@10", "less", ("core", "locomo"),
    ),
    Claim(
        "statistics of the whole table rank another tenant's words into the query",
        _alone("keywordStatistics"), "ndcg@10", "less", ("locomo",),
    ),
    Claim(
        "with the entity lane on, nested fusion without re-entry of the seeds buries them",
        Pair(f"{ENTITY}, fusion", ENTITY), "utility", "less", ("starter", "core"),
    ),
    Claim(
        "with the entity lane on, seeds that re-enter help",
        Pair(f"{ENTITY}, entitySeedsReenter", ENTITY), "utility", "more", ("starter", "core"),
    ),
    Claim(
        "all switches together rank worse",
        Pair(PRODUCTION, DOCUMENTED), "ndcg@10", "less", ("core", "locomo"),
    ),
    Claim(
        "all switches together change utility by less than three hundredths",
        Pair(PRODUCTION, DOCUMENTED), "utility", "same", ("core",), 0.035,
    ),
)  # fmt: skip


def table(results: Results) -> str:
    """Every switch that changes some query of a set, and the names of those that do not."""
    names = dict.fromkeys(name for told in results["sets"].values() for name in told["arms"])
    pairs = pairs_of(list(names))
    moving = {
        name: [pair for pair in pairs if _changes(told["pairs"][pair.name])]
        for name, told in results["sets"].items()
    }
    tables = [
        pairs_table({"sets": {name: told}}, moving[name], METRICS)
        for name, told in results["sets"].items()
    ]
    still = [
        f"No query of {name} changes by: "
        f"{'; '.join(pair.first for pair in pairs if pair not in moving[name])}."
        for name in results["sets"]
    ]
    return "\n\n".join([*tables, *still])


def _changes(metrics: Results) -> bool:
    return any(found["changed"] for found in metrics.values())


def figure(results: Results) -> Drawing:
    """What each switch does to utility, where it does at least a hundredth."""
    bars = [
        Bar(f"{pair}, {name}", found["mean"], found["low"], found["high"])
        for name, told in results["sets"].items()
        for pair, metrics in told["pairs"].items()
        for found in [metrics["utility"]]
        if found["low"] is not None and abs(found["mean"]) >= LEAST
    ]
    bars.sort(key=lambda bar: (-abs(bar.mean), bar.label))
    return differences(
        f"utility: a switch less what it is turned from, 95% interval, from {LEAST} on",
        "Left of 0 what production does costs utility, right of it it gains.",
        bars,
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
