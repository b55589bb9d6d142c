"""Three metrics of 10,000 rankings, from arrays, against pytrec_eval from its dicts."""

from time import perf_counter

import numpy as np
import pytest
import pytrec_eval

from comis_eval.datasets import Judgments
from comis_eval.metrics import Ideal, Inputs, Ranked, score

QUERIES, DEPTH, JUDGED, MEMORIES = 10_000, 100, 20, 2_000
NAMES = ("ndcg@10", "recall@100", "mrr")
MEASURES = {"ndcg_cut.10", "recall.100", "recip_rank"}
SHARE = 0.4
"""Most of pytrec_eval's time that ours may take."""


@pytest.fixture(scope="module")
def drawn():
    """Memory rows of each ranking, then judged rows and their grades, a line a query."""
    rng = np.random.default_rng(0)
    draws = np.argsort(rng.random((QUERIES, 400)), axis=1) * (MEMORIES // 400)
    rows = draws[:, :DEPTH].astype(np.int32)
    judged = draws[:, DEPTH - JUDGED // 2 : DEPTH + JUDGED // 2]
    grades = rng.integers(0, 4, judged.shape)
    grades[:, 0] = 1
    return rng.permuted(rows, axis=1), judged, grades


def ours(rows, judgments):
    """Look every grade up and score: what starts from rows, as an evaluation does."""
    lists = Ranked.of_rows(rows, np.full(QUERIES, DEPTH), judgments)
    return score(
        NAMES,
        Inputs(ideal=Ideal.of(judgments), ranking=lists, failed=np.zeros(QUERIES, dtype=bool)),
    )


def test_three_metrics_of_ten_thousand_rankings(benchmark, drawn):
    rows, judged, grades = drawn
    judgments = Judgments.of(
        np.column_stack([np.repeat(np.arange(QUERIES), JUDGED), judged.ravel(), grades.ravel()]),
        n_queries=QUERIES,
    )
    run = {
        f"q{q}": {f"m{row}": float(DEPTH - rank) for rank, row in enumerate(listed)}
        for q, listed in enumerate(rows.tolist())
    }
    qrels = {
        f"q{q}": {f"m{row}": grade for row, grade in zip(*pair, strict=True)}
        for q, pair in enumerate(zip(judged.tolist(), grades.tolist(), strict=True))
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, MEASURES)
    theirs, their_time = None, np.inf
    for _ in range(3):
        started = perf_counter()
        theirs = evaluator.evaluate(run)
        their_time = min(their_time, perf_counter() - started)

    values = benchmark.pedantic(ours, (rows, judgments), rounds=5, warmup_rounds=1)

    for name, measure in zip(NAMES, ("ndcg_cut_10", "recall_100", "recip_rank"), strict=True):
        expected = [theirs[f"q{q}"][measure] for q in range(QUERIES)]
        np.testing.assert_allclose(values[name], expected, rtol=0, atol=1e-12)
    if benchmark.stats is None:  # the suite runs without timing
        return
    share = benchmark.stats.stats.min / their_time
    benchmark.extra_info["share_of_pytrec_eval"] = round(share, 3)
    assert share <= SHARE
