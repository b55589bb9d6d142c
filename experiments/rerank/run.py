"""Whether late interaction is worth its milliseconds: see README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from comis_eval.config import Config
from comis_eval.report.drawing import Drawing
from comis_eval.tuning.answers import modelled_latencies
from experiments.common.claims import Claim
from experiments.common.drawings import curves
from experiments.common.experiment import Arms, Experiment, Options, Results
from experiments.common.pairs import Pair, finite, measured
from experiments.common.scene import Scene
from experiments.common.tables import lined, number, pairs_table

HERE = Path(__file__).parent

METRICS = ("ndcg@10", "utility", "recall@5", "hit@5")
OFF = "off"
SIZES = (5, 10, 20, 40, 70, 100)
"""Values of maxCandidates; 40 is the default."""

PLAIN, PLAIN_OFF = "40, no boosts", "off, no boosts"
UNBOOSTED = {
    f"rag.scoring.{alpha}_alpha": 0.0 for alpha in ("recency", "temporal", "proof", "trust")
}

PAIRS = (
    *(Pair(str(size), OFF) for size in SIZES),
    Pair("20", "10"), Pair("40", "20"), Pair("70", "40"), Pair("100", "40"),
    Pair(PLAIN, PLAIN_OFF), Pair(PLAIN, "40"),
)  # fmt: skip


def arms(_: Sequence[Scene], __: Options) -> Arms:
    """Without the reranker, with it over more and more candidates, and both without boosts."""
    found = {OFF: Config()}
    for size in SIZES:
        found[str(size)] = Config().evolve(
            **{"rag.rerank.enabled": True, "rag.rerank.max_candidates": size}
        )
    found[PLAIN] = found["40"].evolve(**UNBOOSTED)
    found[PLAIN_OFF] = found[OFF].evolve(**UNBOOSTED)
    return found


def measure(scene: Scene, compared: Arms, options: Options) -> Results:
    """What each pool gains, and what the cost model says that it takes."""
    told = measured(scene, compared, PAIRS, METRICS, seed=options.seed, resamples=options.resamples)
    told["modelled_ms"] = {
        arm: finite(float(modelled_latencies(pools, config).mean()))
        for arm, config in compared.items()
        for pools in [scene.rankings(config).rerank_pool.sum(axis=1)]
    }
    return told


ALL = ("starter", "core", "locomo")
DEFAULT = Pair("40", OFF)
CLAIMS = (
    Claim("reranking 40 ranks better", DEFAULT, "ndcg@10", "more", ("starter", "locomo")),
    Claim(
        "reranking 40 changes no ranking for the better",
        DEFAULT,
        "ndcg@10",
        "same",
        ("core",),
        0.03,
    ),
    Claim(
        "reranking 40 brings more of the answers into the first five",
        DEFAULT,
        "recall@5",
        "more",
        ALL,
    ),
    Claim("20 candidates find more than 10", Pair("20", "10"), "ndcg@10", "more", ("locomo",)),
    Claim("40 candidates find more than 20", Pair("40", "20"), "ndcg@10", "more", ("locomo",)),
    Claim(
        "40 candidates find no more than 20",
        Pair("40", "20"),
        "ndcg@10",
        "same",
        ("starter", "core"),
        0.015,
    ),
    Claim("beyond 40 little is gained", Pair("100", "40"), "ndcg@10", "same", ALL, 0.02),
)


def table(results: Results) -> str:
    """Figures and modelled milliseconds of each pool, then the differences."""
    body = [
        [name, arm, number(told["modelled_ms"][arm], 0), *(number(row[m]) for m in METRICS)]
        for name, told in results["sets"].items()
        for arm, row in told["arms"].items()
    ]
    head = ["set", "maxCandidates", "modelled ms", *METRICS]
    return f"{lined(head, sorted_arms(body))}\n\n{pairs_table(results, PAIRS, METRICS)}"


def sorted_arms(body: list[list[str]]) -> list[list[str]]:
    """Rows of a set from no reranker to the largest pool."""
    order = {arm: place for place, arm in enumerate((OFF, *map(str, SIZES), PLAIN_OFF, PLAIN))}
    sets = list(dict.fromkeys(row[0] for row in body))
    return sorted(body, key=lambda row: (sets.index(row[0]), order[row[1]]))


def figure(results: Results) -> Drawing:
    """ndcg@10 against the cost model's milliseconds."""
    series = {
        name: sorted(
            (told["modelled_ms"][arm], row["ndcg@10"])
            for arm, row in told["arms"].items()
            if arm not in {PLAIN, PLAIN_OFF}
        )
        for name, told in results["sets"].items()
    }
    return curves(
        "What late interaction gains, and what it is taken to cost",
        "Each point is a value of maxCandidates; the leftmost of each line is no reranker.",
        series,
        x_title="modelled milliseconds a query",
        y_title="ndcg@10",
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
