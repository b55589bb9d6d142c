"""Effect size and planning, against paper and the noncentral t distribution."""

from math import inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from comis_eval.errors import MetricError
from comis_eval.stats import (
    cohens_dz,
    group_sums,
    minimum_detectable_difference,
    needed_n,
    spread_of,
)


def power_of_t(spread, n, difference, level=0.05):
    """Power of the two-sided paired t test, from the distribution itself."""
    effect = difference / spread * sqrt(n)
    critical = stats.t.ppf(1 - level / 2, n - 1)
    return stats.nct.sf(critical, n - 1, effect) + stats.nct.cdf(-critical, n - 1, effect)


def test_dz_worked_by_hand():
    np.testing.assert_allclose(cohens_dz(np.array([1.0, 2.0, 3.0]), [1, 2, 3]), [2.0])
    # By group: means 1.5 and 3.5, spread sqrt 2, mean 2.5.
    by_group = cohens_dz(np.array([1.0, 2.0, 3.0, 4.0]), ["a", "a", "b", "b"])
    np.testing.assert_allclose(by_group, [2.5 / sqrt(2)])


def test_dz_is_undefined_without_spread():
    columns = np.array([[0.0, 1.0, nan], [0.0, 1.0, 2.0]])

    assert np.isnan(cohens_dz(columns, [1, 2])).all()


def test_spread_is_the_standard_deviation_of_single_queries():
    differences = np.random.default_rng(0).normal(size=(50, 3))

    np.testing.assert_allclose(
        spread_of(group_sums(differences, range(50))), differences.std(axis=0, ddof=1)
    )


def test_planning_worked_by_hand():
    # z 1.959964 + 0.841621 = 2.801585; (2.801585 x 0.3 / 0.02)^2 + 1.92 = 1766.0 + 1.92.
    assert needed_n(0.3, 0.02) == 1768
    # 2.801585 x 0.3 / sqrt(500 - 1.92)
    assert minimum_detectable_difference(0.3, 500) == pytest.approx(0.037659, abs=1e-6)


@pytest.mark.parametrize("margin", [0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize(("power", "level"), [(0.8, 0.05), (0.9, 0.01)])
def test_needed_n_gives_the_power_of_the_t_test(margin, power, level):
    n = needed_n(0.3, margin, power=power, level=level)

    assert power_of_t(0.3, n + 1, margin, level) >= power
    assert power_of_t(0.3, max(n - 2, 2), margin, level) < power


@given(spread=st.floats(0.01, 10), n=st.integers(3, 10_000))
@settings(derandomize=True, deadline=None)
def test_the_detectable_difference_needs_that_many(spread, n):
    assert abs(needed_n(spread, minimum_detectable_difference(spread, n)) - n) <= 1


def test_too_few_groups_show_nothing():
    assert minimum_detectable_difference(0.3, 1) == inf
    assert minimum_detectable_difference(0.3, 0) == inf
    assert minimum_detectable_difference(0.3, 3, level=0.001) == inf


def test_no_spread_needs_two_groups():
    assert needed_n(0.0, 0.01) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.3, 0.0, 0.8, 0.05), "margin must be finite and > 0 to plan for, got 0.0"),
        ((0.3, nan, 0.8, 0.05), "margin must be .* got nan"),
        ((nan, 0.1, 0.8, 0.05), "spread must be finite and >= 0, got nan"),
        ((0.3, 0.1, 1.0, 0.05), "power must lie strictly between 0 and 1, got 1.0"),
        ((0.3, 0.1, 0.8, nan), "level must lie strictly between 0 and 1, got nan"),
        ((0.3, 0.1, 0.05, 0.1), "power must exceed the level"),
    ],
)
def test_plans_out_of_range_are_named(arguments, message):
    spread, margin, power, level = arguments
    with pytest.raises(MetricError, match=message):
        needed_n(spread, margin, power=power, level=level)
