"""The permutation test: on paper, against brute force, against scipy, and in simulation."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from comis_eval.errors import MetricError
from comis_eval.stats import permutation_test

NAN = np.nan
UNTIMED = settings(derandomize=True, deadline=None, max_examples=60)
SMALL = st.lists(st.integers(-3, 3), min_size=1, max_size=7)


def p_of(differences, groups=None, weights=None, **options):
    groups = range(len(differences)) if groups is None else groups
    return permutation_test(np.array(differences, dtype=float), groups, weights, **options)


@pytest.mark.parametrize(
    ("differences", "alternative", "expected", "why"),
    [
        ([1, 1, 1], "two-sided", 2 / 8, "only +++ and --- reach 3"),
        ([1, 1, 1], "greater", 1 / 8, "only +++ reaches 3"),
        ([1, 1, 1], "less", 1.0, "no flip is above 3"),
        ([1, -1], "two-sided", 1.0, "every flip reaches 0"),
        ([2, 1, -1], "two-sided", 6 / 8, "sums 4, 2, 2, 0 and their mirrors; 6 reach 2"),
        ([2, 1, -1], "greater", 3 / 8, "4, 2 and 2 reach 2"),
        ([0, 0, 5], "two-sided", 1.0, "zeros cannot be flipped: 5 or -5"),
        ([0, 0, 0], "two-sided", 1.0, "nothing changed"),
        ([0, 0, 0], "greater", 1.0, "nothing changed"),
    ],
)
def test_p_worked_by_hand(differences, alternative, expected, why):
    assert p_of(differences, alternative=alternative).tolist() == [expected], why


def test_a_group_flips_as_one():
    # By query 2 of 16 flips reach 4; by group 2 of 4.
    assert p_of([1, 1, 1, 1]).tolist() == [2 / 16]
    assert p_of([1, 1, 1, 1], ["a", "a", "b", "b"]).tolist() == [2 / 4]


def test_weights_decide_which_flips_are_further_out():
    # Weighted differences 3, -1, -1: |sum| 1; flips reach 5, 3, 3, 1. Unweighted 1, -1, -1.
    assert p_of([1, -1, -1], weights=[3.0, 1.0, 1.0]).tolist() == [1.0]
    # Weighted 3, 1, -1: sum 3, reached by 5, 3, 3 and their mirrors, not by 1.
    assert p_of([1, 1, -1], weights=[3.0, 1.0, 1.0]).tolist() == [6 / 8]


def test_sums_equal_but_for_rounding_are_ties():
    # In exact arithmetic the sum is 0, which every flip reaches.
    assert 0.3 - 0.1 - 0.2 != 0
    assert p_of([0.3, -0.1, -0.2]).tolist() == [1.0]


def test_a_column_is_exact_on_its_own_groups_beside_one_that_is_drawn():
    rng = np.random.default_rng(0)
    few = np.zeros(60)
    few[:3] = 1.0
    many = rng.normal(size=60)

    together = p_of(np.stack([few, many, np.full(60, NAN)], axis=1), flips=99)

    assert together[0] == 2 / 8
    assert together[1] == p_of(many, flips=99)[0]
    assert np.isnan(together[2])


def test_p_is_never_zero():
    assert p_of(np.ones(500), flips=99).tolist() == [1 / 100]


@given(differences=SMALL, alternative=st.sampled_from(["two-sided", "greater", "less"]))
@UNTIMED
def test_exact_p_equals_brute_force_in_fractions(differences, alternative):
    turn = {"two-sided": abs, "greater": lambda s: s, "less": lambda s: -s}[alternative]
    share = Fraction(1, len(differences))
    observed = turn(sum(share * d for d in differences))
    flips = [
        turn(sum(share * s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    expected = Fraction(sum(f >= observed for f in flips), len(flips))

    assert p_of(differences, alternative=alternative)[0] == float(expected)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_p_equals_scipys(alternative):
    from scipy import stats

    differences = np.random.default_rng(1).normal(0.3, 1.0, size=(9, 4))
    theirs = stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative=alternative,
    )

    np.testing.assert_allclose(p_of(differences, alternative=alternative), theirs.pvalue)


def test_drawn_p_agrees_with_exact():
    # 21 groups are drawn; one of them 0 leaves 20, which are enumerated.
    differences = np.random.default_rng(3).normal(0.4, 1.0, size=21)
    differences[-1] = 0.0
    exact = p_of(differences)[0]
    differences[-1] = 1e-7

    drawn = p_of(differences, flips=20_000)[0]

    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))


@given(
    differences=st.lists(st.integers(-3, 3), min_size=1, max_size=30), scale=st.floats(1e-6, 1e6)
)
@UNTIMED
def test_scale_and_sign_change_no_two_sided_p(differences, scale):
    p = p_of(differences, flips=99)[0]

    assert 0 < p <= 1
    assert p_of(np.array(differences) * scale, flips=99)[0] == p
    assert p_of(-np.array(differences), flips=99)[0] == p


@given(differences=st.lists(st.integers(-3, 3), min_size=1, max_size=30), data=st.data())
@UNTIMED
def test_the_order_of_queries_changes_no_p(differences, data):
    groups = data.draw(
        st.lists(st.integers(0, 25), min_size=len(differences), max_size=len(differences))
    )
    order = data.draw(st.permutations(range(len(differences))))

    p = p_of(differences, groups, flips=99)[0]

    assert p_of([differences[i] for i in order], [groups[i] for i in order], flips=99)[0] == p


@given(differences=SMALL)
@UNTIMED
def test_opposite_one_sided_ps_leave_out_only_the_ties(differences):
    assume(any(differences))
    greater, less = (p_of(differences, alternative=a)[0] for a in ("greater", "less"))

    assert greater + less >= 1
    assert p_of(differences)[0] <= min(2 * min(greater, less), 1.0) + 1e-12


def test_an_unknown_alternative_is_named():
    with pytest.raises(MetricError, match="two-sided, greater or less, got 'larger'"):
        p_of([1, 2], alternative="larger")


def test_flips_by_group_hold_their_level_where_flips_by_query_do_not():
    """Groups of 4 paraphrases that move together, no true change, 1,000 builds."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 4)
    alarms = {"group": 0, "query": 0}
    for seed in range(1_000):
        shared = np.repeat(rng.normal(size=60), 4)
        differences = shared + 0.5 * rng.normal(size=240)
        alarms["group"] += p_of(differences, groups, flips=499, seed=seed)[0] <= 0.05
        alarms["query"] += p_of(differences, flips=499, seed=seed)[0] <= 0.05

    # 5% give or take 0.7% over 1,000 builds.
    assert 0.03 <= alarms["group"] / 1_000 <= 0.07
    assert alarms["query"] / 1_000 >= 0.2


def test_a_loss_of_five_points_in_five_hundred_queries_is_caught():
    """2% of queries gain a hit, 7% lose one: exact power 96.3% at a two-sided 5%."""
    rng = np.random.default_rng(0)
    builds = rng.choice([1.0, -1.0, 0.0], p=[0.02, 0.07, 0.91], size=(500, 1_000))

    p = p_of(builds, flips=1_999)

    assert ((p <= 0.05) & (builds.mean(axis=0) < 0)).mean() >= 0.95
