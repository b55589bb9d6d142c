"""The arrays: looked up, laid out, and refused when they do not fit."""

import numpy as np
import pytest

from comis_eval.datasets import Judgments
from comis_eval.errors import MetricError
from comis_eval.metrics import Categories, Ideal, Ranked
from tests.metrics.build import U, inputs, objective, ranked


def judgments(triples, *, n_queries=3):
    return Judgments.of(triples, n_queries=n_queries)


def test_the_ideal_sorts_what_was_judged_above_zero():
    ideal = Ideal.of(judgments([(0, 1, 1), (0, 2, 0), (0, 0, 3), (2, 3, 2)]))
    np.testing.assert_array_equal(ideal.grades, [[3, 1], [0, 0], [2, 0]])
    np.testing.assert_array_equal(ideal.answerable, [True, False, True])
    np.testing.assert_array_equal(ideal.relevant(2), [1, 0, 1])


def test_nothing_judged_has_no_ideal():
    assert Ideal.of(judgments([])).grades.shape == (3, 0)


def test_lists_are_made_from_rows():
    lists = Ranked.of_rows(
        np.array([[4, 1], [3, -1], [2, 2]], dtype=np.int32),
        np.array([2, 1, 0]),
        judgments([(0, 4, 2), (2, 2, 3)]),
    )
    np.testing.assert_array_equal(lists.grade, [[2, U], [U, U], [U, U]])
    np.testing.assert_array_equal(lists.row[2], [-1, -1])  # past its length: not there


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(MetricError, match=r"trust has shape \(1, 1\), grade \(1, 2\)"):
        ranked([[0, 1]], trust=[[1]])
    with pytest.raises(MetricError, match=r"lengths must lie in \[0, 1\], got 2 to 2"):
        Ranked(grade=np.zeros((1, 1), dtype=np.int8), length=np.array([2]))
    with pytest.raises(MetricError, match="one length a query"):
        Ranked(grade=np.zeros((2, 1), dtype=np.int8), length=np.array([1]))
    with pytest.raises(MetricError, match="ranking is of 2 queries, ideal of 1"):
        inputs([[1]], ranking=ranked([[1], [1]]))
    with pytest.raises(MetricError, match="categories is of 2 queries, ideal of 1"):
        inputs([[1]], categories=Categories(np.array([0, 0]), ("a",), np.array([True])))
    with pytest.raises(MetricError, match="sorted descending"):
        Ideal(np.array([[1, 2]], dtype=np.int8))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"relevance_level": 0}, r"relevance_level must lie in 1\.\.127, got 0"),
        ({"max_context_chars": 0}, "max_context_chars must be at least 1"),
        ({"objective": objective(k0=0)}, "k0 and c0 must be at least 1"),
        ({"objective": objective(cost=float("nan"))}, "cost at least 0"),
        ({"objective": objective(unanswerable_weight=1.1)}, r"must lie in \[0, 1\]"),
    ],
)
def test_constants_out_of_bounds_are_refused(parts, message):
    with pytest.raises(MetricError, match=message):
        inputs([[1]], **parts)
