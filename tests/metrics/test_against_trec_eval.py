"""The same figures as trec_eval: its library on random cases, its own files where present."""

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from comis_eval.metrics import from_run, parse, score

NAMES = {
    "ndcg_cut_5": "ndcg@5",
    "ndcg_cut_10": "ndcg@10",
    "ndcg_cut_20": "ndcg@20",
    "recall_5": "recall@5",
    "recall_10": "recall@10",
    "recall_100": "recall@100",
    "P_5": "precision@5",
    "P_10": "precision@10",
    "map": "map",
    "recip_rank": "mrr",
    "Rprec": "r_precision",
    "success_1": "hit@1",
    "success_5": "hit@5",
    "success_10": "hit@10",
}
TESTS = Path(__file__).parents[2].parent / "shared" / "data" / "trec_eval-tests"


def in_trec_order(run):
    """Rank as trec_eval does: score descending, ties by id descending."""
    return {
        query: sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
        for query, scores in run.items()
    }


def random_case(rng):
    """A query without ties and with at least one relevant memory; its lists may be short."""
    ids = [f"m{i}" for i in rng.permutation(60)]
    judged = rng.choice(ids, size=rng.integers(1, 25), replace=False)
    qrels = {str(memory): int(rng.integers(0, 4)) for memory in judged}
    qrels[str(judged[0])] = int(rng.integers(1, 4))
    listed = rng.choice(ids, size=rng.integers(1, 50), replace=False)
    scores = rng.permutation(len(listed)).astype(float)
    return {str(m): float(s) for m, s in zip(listed, scores, strict=True)}, qrels


def test_a_thousand_random_tie_free_cases_agree_with_pytrec_eval():
    rng = np.random.default_rng(20_260)
    cases = {f"q{number}": random_case(rng) for number in range(1_000)}
    run = {query: scores for query, (scores, _) in cases.items()}
    qrels = {query: grades for query, (_, grades) in cases.items()}
    measures = {"ndcg_cut", "recall", "P", "map", "recip_rank", "Rprec", "success"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    judged = from_run(in_trec_order(run), qrels)
    assert judged.tied == 0
    for measure, name in NAMES.items():
        expected = [theirs[query][measure] for query in judged.query_ids]
        values = parse(name)(judged.inputs)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("level", [2, 3])
def test_relevance_levels_agree_with_pytrec_eval(level):
    rng = np.random.default_rng(level)
    cases = {f"q{number}": random_case(rng) for number in range(200)}
    run = {query: scores for query, (scores, _) in cases.items()}
    qrels = {query: grades for query, (_, grades) in cases.items()}
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels, {"recall", "P", "map", "recip_rank", "Rprec"}, relevance_level=level
    ).evaluate(run)
    judged = from_run(in_trec_order(run), qrels, relevance_level=level)
    for measure in ("recall_10", "P_10", "map", "recip_rank", "Rprec"):
        values = parse(NAMES[measure])(judged.inputs)
        reached = ~np.isnan(values)  # theirs score 0 where ours are undefined
        assert reached.tolist() == [max(qrels[q].values()) >= level for q in judged.query_ids]
        expected = np.array([theirs[query][measure] for query in judged.query_ids])
        np.testing.assert_allclose(values[reached], expected[reached], rtol=0, atol=1e-12)


@pytest.mark.skipif(not TESTS.is_dir(), reason="trec_eval's own test files are not here")
def test_trec_evals_own_files_give_its_own_figures():
    run, qrels = {}, {}
    for line in (TESTS / "results.test").read_text(encoding="utf-8").splitlines():
        query, _, memory, _, score_, _ = line.split()
        run.setdefault(query, {})[memory] = float(score_)
    for line in (TESTS / "qrels.test").read_text(encoding="utf-8").splitlines():
        query, _, memory, grade = line.split()
        qrels.setdefault(query, {})[memory] = int(grade)
    judged = from_run(in_trec_order(run), qrels)
    values = score(NAMES.values(), judged.inputs)
    compared = 0
    for line in (TESTS / "out.test.aq").read_text(encoding="utf-8").splitlines():
        measure, query, figure = line.split()
        if measure not in NAMES:
            continue
        column = values[NAMES[measure]]
        ours = column.mean() if query == "all" else column[judged.query_ids.index(query)]
        assert ours == pytest.approx(float(figure), abs=5.01e-5), line  # printed to 4 places
        compared += 1
    assert compared == len(NAMES) * 4  # three queries and their mean
