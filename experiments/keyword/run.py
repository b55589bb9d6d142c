"""FTS5 against rank-bm25: see README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from comis_eval.config import Config
from comis_eval.report.drawing import Drawing
from experiments.common.claims import Claim
from experiments.common.drawings import Bar, differences
from experiments.common.experiment import Arms, Experiment, Options, Results
from experiments.common.pairs import Pair, measured
from experiments.common.scene import Scene
from experiments.common.tables import arms_table, pairs_table

HERE = Path(__file__).parent

METRICS = ("utility", "ndcg@10", "recall@5", "recall@10")
FUSED = Pair("fts5", "rank_bm25")
ALONE = Pair("fts5 alone", "rank_bm25 alone")
LANES = Pair("fts5", "fts5 alone")
PAIRS = (FUSED, ALONE, LANES)


def arms(_: Sequence[Scene], __: Options) -> Arms:
    """Both backends, beside the vector lane and alone; everything else is the default."""
    return {
        f"{backend}{said}": Config().evolve(
            **{"harness.keyword_backend": backend, "harness.lanes": lanes}
        )
        for said, lanes in (("", ("fts", "vector")), (" alone", ("fts",)))
        for backend in ("fts5", "rank_bm25")
    }


def measure(scene: Scene, compared: Arms, options: Options) -> Results:
    """Figures of the four arms, FTS5 less rank-bm25 in both places, and what vectors add."""
    return measured(scene, compared, PAIRS, METRICS, seed=options.seed, resamples=options.resamples)


CLAIMS = (
    Claim(
        "beside vectors FTS5 ranks better than rank-bm25, by a hair",
        FUSED,
        "ndcg@10",
        "more",
        ("locomo",),
    ),
    Claim(
        "what stands beside it matters more: with the vector lane better than alone",
        LANES,
        "ndcg@10",
        "more",
        ("starter", "core"),
    ),
    Claim(
        "what stands beside it matters more: with the vector lane worse than alone",
        LANES,
        "ndcg@10",
        "less",
        ("locomo",),
    ),
    Claim(
        "beside vectors the two hardly differ",
        FUSED, "ndcg@10", "same", ("starter", "core", "locomo"), 0.015,
    ),
    Claim(
        "alone the two hardly differ",
        ALONE, "ndcg@10", "same", ("starter", "core", "locomo"), 0.01,
    ),
)  # fmt: skip


def table(results: Results) -> str:
    """Figures by set and arm, and the differences."""
    arms_told, pairs_told = arms_table(results, METRICS), pairs_table(results, PAIRS, METRICS)
    return f"{arms_told}\n\n{pairs_told}"


def figure(results: Results) -> Drawing:
    """Every difference in ndcg@10."""
    bars = [
        Bar(f"{name}, {place}", found["mean"], found["low"], found["high"])
        for name, told in results["sets"].items()
        for place, pair in (("beside vectors", FUSED), ("alone", ALONE))
        for found in [told["pairs"][pair.name]["ndcg@10"]]
    ]
    return differences(
        "ndcg@10: FTS5 less rank-bm25, 95% interval",
        "Right of 0 FTS5 ranks better, left of it rank-bm25.",
        bars,
    )


EXPERIMENT = Experiment(HERE, arms, measure, CLAIMS, table, figure)

if __name__ == "__main__":
    EXPERIMENT.main()
