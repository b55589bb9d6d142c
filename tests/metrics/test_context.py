"""Metrics of what is injected, and of the queries nothing should be injected for."""

from math import log2, nan

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.metrics import Categories, parse, utility_weights
from tests.metrics.build import U, inputs, objective, ranked


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("context_recall", [1 / 3, 1.0, 0.0, nan]),
        ("context_precision", [1 / 2, 1 / 3, 0.0, nan]),
        ("context_ndcg", [2 / (2 + 1 / log2(3)), (1 / log2(3)) / 1, 0.0, nan]),
    ],
)
def test_what_the_context_holds(name, expected):
    context = ranked([[2, U], [0, 1, 0], [], [0]])
    set_ = inputs([[2, 1, 1], [1], [3], []], context=context, objective=objective())
    assert parse(name)(set_) == pytest.approx(expected, nan_ok=True)


def test_context_ndcg_is_cut_at_k0_and_not_at_the_trials_own_size():
    longer = inputs([[3]], context=ranked([[0, 0, 3]]), objective=objective(k0=2))
    assert parse("context_ndcg")(longer) == [0.0]


def test_the_size_of_the_context_is_that_of_the_whole_section():
    set_ = inputs([[1], [1], []], context_chars=[94, 0, 200], max_context_chars=400)
    assert parse("context_chars")(set_).tolist() == [94, 0, 200]
    assert parse("context_fill")(set_).tolist() == [94 / 400, 0, 200 / 400]


def test_redundancy_counts_labelled_duplicates_above():
    clusters = [[4, 4, -1, 4], [-1, -1], [1, 2], []]
    context = ranked([[0] * len(one) for one in clusters], twin=clusters)
    values = parse("redundancy")(inputs([[1]] * 4, context=context))
    assert values == pytest.approx([2 / 4, 0, 0, nan], nan_ok=True)


def test_redundancy_without_labels_is_by_simhash_of_at_most_ten_bits():
    ten, eleven, top = 2**10 - 1, 2**11 - 1, 2**64 - 1
    hashes = [[0, ten], [0, eleven], [top, 0, top], []]
    context = ranked([[0] * len(one) for one in hashes], simhash=hashes)
    values = parse("redundancy")(inputs([[1]] * 4, context=context))
    assert values == pytest.approx([1 / 2, 0, 1 / 3, nan], nan_ok=True)


def test_labels_beat_the_simhash():
    context = ranked([[0, 0]], twin=[[-1, -1]], simhash=[[5, 5]])
    assert parse("redundancy")(inputs([[1]], context=context)) == [0.0]


def test_silence_is_asked_only_of_unanswerable_queries():
    context = ranked([[], [0], [0, 0], []])
    set_ = inputs(
        [[], [], [], [1]], context=context, context_chars=[0, 40, 500, 0], objective=objective()
    )
    abstention, noise = parse("abstention")(set_), parse("noise")(set_)
    assert abstention == pytest.approx([1, 0, 0, nan], nan_ok=True)
    assert noise == pytest.approx([0, 40 / 100, 1, nan], nan_ok=True)


def test_utility_takes_the_cost_of_irrelevant_lines_from_context_ndcg():
    # cost 0.5 and C0 100: 30 irrelevant characters cost 0.15; an unjudged line counts too
    context = ranked([[2, 0], [U, 1], [], [0]], chars=[[50, 30], [60, 20], [], [70]])
    set_ = inputs(
        [[2], [1], [3], []],
        context=context,
        context_chars=[94, 94, 0, 80],
        objective=objective(),
    )
    assert parse("utility")(set_) == pytest.approx([1 - 0.15, 1 / log2(3) - 0.3, 0, 1 - 0.8])


def test_a_failed_query_scores_as_the_rules_say():
    set_ = inputs(
        [[1], []],
        failed=[0, 1],
        ranking=ranked([[], []], trust=[[], []], row=[[], []]),
        context=ranked(
            [[], []], chars=[[], []], twin=[[], []], disallowed=[[], []], foreign=[[], []],
            laundered=[[], []], poison=[[], []],
        ),
        context_chars=[0, 0],
        max_context_chars=400,
        objective=objective(),
        superseded=[3, -1],
        poison_total=[1, 0],
    )  # fmt: skip
    expected = {
        "ndcg@5": [0, nan], "recall@5": [0, nan], "mrr": [0, nan], "judged@5": [nan, nan],
        "context_recall": [0, nan], "context_precision": [0, nan], "utility": [0, 0],
        "abstention": [nan, 0], "noise": [nan, 1], "stale@5": [1, nan],
        "trust_inversion@5": [1, 1], "context_chars": [nan, nan], "context_fill": [nan, nan],
        "redundancy": [nan, nan], "policy_leak": [nan, nan], "scope_leak": [nan, nan],
        "laundered": [nan, nan], "untrusted_share@5": [nan, nan], "leak_rank@5": [nan, nan],
        "asr@5": [nan, nan], "poison_precision@5": [nan, nan], "poison_recall@5": [nan, nan],
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_array_equal(parse(name)(set_), values, err_msg=name)


def test_a_failed_query_with_a_list_is_refused():
    with pytest.raises(MetricError, match="failed on must have empty lists"):
        inputs([[1]], failed=[0], ranking=ranked([[1]]))


def test_utility_weighs_categories_alike_and_silence_by_its_weight():
    # headline categories: 0 with one answerable query, 1 with two; 2 is not headline
    set_ = inputs(
        [[1], [1], [1], [1], [], []],
        objective=objective(),
        categories=Categories(
            np.array([0, 1, 1, 2, 0, 2]), ("a", "b", "c"), np.array([True, True, False])
        ),
    )
    assert utility_weights(set_) == pytest.approx([0.45, 0.225, 0.225, 0, 0.05, 0.05])


def test_without_unanswerable_queries_silence_weighs_nothing():
    weights = utility_weights(inputs([[1], [1]], objective=objective()))
    assert weights == pytest.approx([0.5, 0.5])


def test_without_answerable_queries_utility_is_undefined():
    assert utility_weights(inputs([[], []], objective=objective())).tolist() == [0, 0]
