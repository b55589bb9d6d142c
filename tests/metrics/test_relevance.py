"""Metrics of what was found, each summed by hand."""

from math import isnan, log2, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.metrics import parse
from tests.metrics.build import U, inputs, ranked

# One query a line: the grades in rank order, the grades judged, what comes out.
CASES = {
    "ndcg@2": [
        ([1, 2], [2, 1], (1 + 2 / log2(3)) / (2 + 1 / log2(3))),
        ([3], [3, 3], 3 / (3 + 3 / log2(3))),  # cut at k, not at the one returned
        ([0, U, 3], [3], 0.0),  # the 3 stands past the cut
        ([0, 0], [], nan),
    ],
    "ndcg_exp@3": [
        ([1, 2, 3], [3, 2, 1], (1 + 3 / log2(3) + 7 / 2) / (7 + 3 / log2(3) + 1 / 2)),
        ([2, U], [2, 1], 3 / (3 + 1 / log2(3))),
        ([], [1], 0.0),
    ],
    "recall@2": [
        ([1, 0, 2], [2, 1], 1 / 2),
        ([3, 1], [3, 1, 1], 2 / 3),
        ([], [1], 0.0),
        ([0], [], nan),
    ],
    "hit@2": [
        ([0, 1], [1, 1], 1.0),
        ([0, U, 1], [1], 0.0),
        ([], [], nan),
    ],
    "recall_all@2": [
        ([1, 2], [2, 1], 1.0),
        ([1, 0, 2], [2, 1], 0.0),
        ([1, 1, 1], [1, 1, 1], 0.0),  # three cannot fit in two
        ([1], [], nan),
    ],
    "precision@4": [
        ([1, 0, 1, 1], [1, 1, 1], 3 / 4),
        ([1], [1], 1 / 4),  # divided by k though one was returned
        ([0, U, 0, 0, 1], [1], 0.0),
        ([], [], nan),
    ],
    "r_precision": [
        ([1, 0, 1], [1, 1], 1 / 2),
        ([0, 1], [1], 0.0),
        ([1], [1, 1, 1], 1 / 3),
        ([0], [], nan),
    ],
    "mrr@2": [
        ([0, 2], [2], 1 / 2),
        ([1, 1], [1, 1], 1.0),
        ([0, 0, 1], [1], 0.0),
        ([], [], nan),
    ],
    "mrr": [
        ([0, U, 0, 1], [1], 1 / 4),
        ([3], [3], 1.0),
        ([0], [1], 0.0),
    ],
    "map": [
        ([1, 0, 1], [1, 1], (1 / 1 + 2 / 3) / 2),
        ([0, 1], [1, 1, 1], (1 / 2) / 3),
        ([], [1], 0.0),
        ([0], [], nan),
    ],
    "judged@3": [
        ([1, U, 0, U], [1], 2 / 3),
        ([0, U], [1], 1 / 2),  # of the two there are
        ([U, U, U], [], 0.0),
        ([], [1], nan),
    ],
}
EACH = [
    pytest.param(name, *case, id=f"{name}-{number}")
    for name, cases in CASES.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize(("name", "grades", "judged", "expected"), EACH)
def test_a_metric_of_the_ranking_equals_the_sum_worked_by_hand(name, grades, judged, expected):
    values = parse(name)(inputs([judged], ranking=ranked([grades])))
    assert values == pytest.approx([expected], abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("name", CASES)
def test_a_query_scores_the_same_to_the_bit_alone_and_among_longer_lists(name):
    rng = np.random.default_rng(7)
    lists = [rng.integers(U, 4, length).tolist() for length in (0, 1, 9, 23, 64, 65, 150)]
    judged = [[grade for grade in grades if grade > 0] + [1] for grades in lists]
    together = parse(name)(inputs(judged, ranking=ranked(lists)))
    alone = [
        parse(name)(inputs([need], ranking=ranked([grades])))[0]
        for grades, need in zip(lists, judged, strict=True)
    ]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@3", [1 / 2, nan]),
        ("hit@1", [0.0, nan]),
        ("mrr@3", [1 / 2, nan]),
        ("map", [(1 / 2) / 2, nan]),
        ("precision@2", [1 / 2, nan]),
        ("r_precision", [1 / 2, nan]),
        ("recall_all@3", [0.0, nan]),
    ],
)
def test_binary_metrics_leave_out_queries_without_a_memory_at_the_level(name, expected):
    set_ = inputs([[2, 2, 1], [1]], ranking=ranked([[1, 2, 0], [1]]), relevance_level=2)
    assert parse(name)(set_) == pytest.approx(expected, nan_ok=True)


def test_ndcg_ignores_the_relevance_level():
    lists = {"ranking": ranked([[1, 2], [1]])}
    strict = parse("ndcg@5")(inputs([[2, 1], [1]], relevance_level=2, **lists))
    np.testing.assert_array_equal(strict, parse("ndcg@5")(inputs([[2, 1], [1]], **lists)))
    assert strict[1] == 1.0


def test_linear_and_exponential_gain_differ_under_their_own_names():
    set_ = inputs([[3, 2, 1]], ranking=ranked([[1, 2, 3]]))
    assert parse("ndcg@3")(set_) == pytest.approx([0.790], abs=5e-4)
    assert parse("ndcg_exp@3")(set_) == pytest.approx([0.681], abs=5e-4)
    assert parse("ndcg@3").definition.gain == "linear"
    assert parse("ndcg_exp@3").definition.gain == "exponential"


GRADES = st.lists(st.integers(U, 3), min_size=2, max_size=12)
RELEVANCE = ("ndcg@5", "ndcg_exp@5", "recall@5", "hit@5", "recall_all@5", "precision@5", "mrr@5")
RELEVANCE += ("mrr", "map", "r_precision")


@settings(derandomize=True, max_examples=60, deadline=None)
@given(grades=GRADES, unseen=st.lists(st.integers(1, 3), max_size=4), data=st.data())
def test_moving_a_better_memory_up_never_lowers_a_relevance_metric(grades, unseen, data):
    judged = [grade for grade in grades + unseen if grade > 0]
    at = data.draw(st.integers(0, len(grades) - 2))
    better = grades.copy()
    better[at : at + 2] = sorted(better[at : at + 2], reverse=True)
    set_ = inputs([judged, judged], ranking=ranked([grades, better]))
    for name in RELEVANCE:
        before, after = parse(name)(set_)
        assert isnan(before) == (not judged), name
        if judged:
            assert 0 <= before <= after + 1e-12, name
            assert after <= 1 + 1e-12, name


@settings(derandomize=True, max_examples=60, deadline=None)
@given(grades=GRADES, unseen=st.lists(st.integers(1, 3), max_size=4))
def test_the_oracle_of_the_pool_is_never_beaten_and_is_perfect_when_all_was_found(grades, unseen):
    judged = [grade for grade in grades + unseen if grade > 0]
    given_order = ranked([grades, grades[::-1]])
    best = inputs([judged] * 2, ranking=given_order.oracle())
    for name in RELEVANCE:
        values = parse(name)(inputs([judged] * 2, ranking=given_order))
        assert not (values > parse(name)(best) + 1e-12).any(), name
    if judged and not unseen:
        assert (parse("ndcg@5")(best) == 1.0).all()


def test_the_oracle_carries_every_plane_along_and_keeps_padding_last():
    best = ranked([[0, U, 2], [1]], row=[[7, 8, 9], [5]]).oracle()
    np.testing.assert_array_equal(best.row, [[9, 7, 8], [5, -1, -1]])
    np.testing.assert_array_equal(best.grade, [[2, 0, U], [1, U, U]])
