"""Standard error and paired t by group, against paper and scipy."""

import numpy as np
import pytest
from scipy import stats

from comis_eval.stats import group_sums, paired_t, permutation_test, standard_error

TINY = np.finfo(np.float64).tiny


def test_standard_error_worked_by_hand():
    # Variance 1, n 3.
    np.testing.assert_allclose(standard_error(np.array([1.0, 2.0, 3.0]), [1, 2, 3]), [3**-0.5])


def test_standard_error_by_group_worked_by_hand():
    # Groups a (1, 1) and b (3): weights 2/3, 1/3, mean 5/3. Residuals 2/3 - 10/9 = -4/9 and
    # 1 - 5/9 = 4/9; 2/1 x (16/81 + 16/81) = 64/81, root 8/9.
    error = standard_error(np.array([1.0, 1.0, 3.0]), ["a", "a", "b"])

    np.testing.assert_allclose(error, [8 / 9])


def test_single_queries_of_equal_weight_give_the_textbook_test():
    baseline, candidate = np.random.default_rng(0).normal(0.5, 0.3, size=(2, 40, 5))
    candidate[7, 2] = np.nan
    p = paired_t(candidate - baseline, range(40))

    np.testing.assert_allclose(
        p, stats.ttest_rel(candidate, baseline, nan_policy="omit").pvalue, rtol=1e-10
    )
    np.testing.assert_allclose(
        p, stats.ttest_1samp(candidate - baseline, 0.0, nan_policy="omit").pvalue, rtol=1e-10
    )


def test_groups_of_one_size_give_the_test_of_their_means():
    differences = np.random.default_rng(1).normal(0.2, 1.0, size=(30, 4))

    p = paired_t(differences.ravel(), np.repeat(np.arange(30), 4))

    assert p[0] == pytest.approx(stats.ttest_1samp(differences.mean(axis=1), 0.0).pvalue)


def test_what_did_not_change_has_p_one():
    assert paired_t(np.zeros(5), range(5)).tolist() == [1.0]
    assert standard_error(np.zeros(5), range(5)).tolist() == [0.0]


def test_the_same_change_everywhere_has_no_spread_and_a_p_above_zero():
    differences = np.full(6, 0.1)

    assert standard_error(differences, range(6)).tolist() == [0.0]
    assert paired_t(differences, range(6)).tolist() == [TINY]


def test_a_single_group_has_no_error():
    columns = np.array([[1.0, np.nan], [2.0, np.nan]])

    assert np.isnan(standard_error(columns, ["a", "a"])).all()
    assert np.isnan(paired_t(columns, ["a", "a"])).all()


def test_scale_and_sign_change_no_p():
    differences = np.random.default_rng(2).normal(0.2, 1.0, size=(30, 1))
    scaled = paired_t(differences * np.array([1.0, -1.0, 1e6, 1e-6]), range(30))

    np.testing.assert_allclose(scaled, scaled[0])


def test_both_tests_agree_on_well_behaved_differences():
    differences = np.random.default_rng(3).normal(0.1, 1.0, size=(200, 8))

    np.testing.assert_allclose(
        paired_t(differences, range(200)),
        permutation_test(differences, range(200), flips=20_000),
        atol=0.02,
    )


def test_unequal_groups_have_an_error_that_simulation_confirms():
    """Groups of 1 to 9 queries that move together, macro weights over two categories."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 10, size=80)
    groups = np.repeat(np.arange(80), sizes)
    category = np.repeat(np.arange(80) % 2, sizes)
    weights = 0.5 / np.bincount(category)[category]
    builds = rng.normal(size=(80, 2_000))[groups] + rng.normal(size=(len(groups), 2_000))

    means = group_sums(builds, groups, weights).mean
    errors = standard_error(builds, groups, weights)

    assert errors.mean() == pytest.approx(means.std(), rel=0.06)
