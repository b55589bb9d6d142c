"""Collapsing to groups: worked on paper, and indifferent to the order of the queries."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import MetricError
from comis_eval.stats import group_sums

NAN = np.nan


def test_undefined_pairs_leave_the_mean_and_its_weights():
    grouped = group_sums(np.array([1.0, 0.0, -1.0, NAN]), ["a", "a", "b", "b"])

    np.testing.assert_allclose(grouped.sums, [[1 / 3], [-1 / 3]])
    np.testing.assert_allclose(grouped.weights, [[2 / 3], [1 / 3]])
    assert grouped.n_queries.tolist() == [3]
    assert grouped.n_groups.tolist() == [2]
    np.testing.assert_allclose(grouped.mean, [0.0], atol=1e-16)


def test_macro_weights_give_the_mean_of_the_categories_means():
    # Category x: 1, 0 (mean 0.5); y: 0.2 (mean 0.2); macro mean 0.35.
    grouped = group_sums(np.array([1.0, 0.0, 0.2]), [1, 2, 3], [1 / 4, 1 / 4, 1 / 2])

    np.testing.assert_allclose(grouped.mean, [0.35])


def test_weights_may_differ_by_column():
    differences = np.array([[1.0, 1.0], [3.0, 3.0]])

    grouped = group_sums(differences, [1, 2], np.array([[1.0, 3.0], [1.0, 1.0]]))

    np.testing.assert_allclose(grouped.mean, [2.0, 1.5])


def test_a_query_that_weighs_nothing_is_not_counted():
    grouped = group_sums(np.array([1.0, 5.0]), [1, 2], [1.0, 0.0])

    assert (grouped.n_queries.tolist(), grouped.n_groups.tolist()) == ([1], [1])
    assert grouped.mean.tolist() == [1.0]


def test_a_column_without_a_pair_is_undefined_not_zero():
    grouped = group_sums(np.array([[NAN, 1.0], [NAN, 0.0]]), [1, 2])

    assert grouped.n_queries.tolist() == [0, 2]
    np.testing.assert_array_equal(grouped.mean, [NAN, 0.5])


def test_a_group_that_cancels_is_exactly_zero():
    grouped = group_sums(np.array([0.1, 0.2, -0.3, 1.0]), ["a", "a", "a", "b"])

    assert 0.1 + 0.2 - 0.3 != 0
    assert grouped.sums[0, 0] == 0


def test_no_queries_leave_every_column_undefined():
    grouped = group_sums(np.zeros((0, 2)), [])

    assert grouped.sums.shape == (0, 2)
    assert np.isnan(grouped.mean).all()


def test_rows_follow_the_sorted_labels():
    grouped = group_sums(np.array([1.0, 2.0, 4.0]), np.array(["b", "a", "b"]))

    np.testing.assert_allclose(grouped.sums[:, 0], [2 / 3, 5 / 3])


@given(
    rows=st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 3)), min_size=1, max_size=12),
    data=st.data(),
)
@settings(derandomize=True, deadline=None)
def test_the_order_of_queries_changes_nothing(rows, data):
    moved = data.draw(st.permutations(rows))

    first, second = (
        group_sums(np.array([float(d) for d, _ in listed]), [g for _, g in listed])
        for listed in (rows, moved)
    )

    np.testing.assert_allclose(first.sums, second.sums, atol=1e-12)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-12)


@pytest.mark.parametrize(
    ("differences", "groups", "weights", "message"),
    [
        ([1.0, np.inf], [1, 2], None, "finite, or NaN.*got inf at query 1, column 0"),
        ([1.0, 2.0], [1], None, "one group, got 1 for 2 queries"),
        ([1.0, 2.0], [1, "a"], None, "group labels must all be of one kind"),
        ([1.0, 2.0], [1, 2], [1.0, -1.0], "finite and >= 0; got -1.0 at query 1"),
        ([1.0, 2.0], [1, 2], [NAN, 1.0], "finite and >= 0; got nan at query 0"),
        ([1.0, 2.0], [1, 2], [1.0], r"got shape \(1, 1\) for \(2, 1\)"),
        ([[[1.0]]], [1], None, r"shape \(queries, columns\)"),
    ],
)
def test_unusable_inputs_are_named(differences, groups, weights, message):
    with pytest.raises(MetricError, match=message):
        group_sums(np.array(differences), groups, weights)


def test_importing_statistics_leaves_scipy_alone():
    code = "import sys, comis_eval.stats; sys.exit('scipy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
