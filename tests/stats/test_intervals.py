"""Bootstrap intervals: degenerate cases on paper, scipy's BCa, coverage in simulation."""

from itertools import product

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.stats import bootstrap_ci, intervals

NAN = np.nan


def interval(differences, groups=None, weights=None, strata=None, **options):
    groups = range(len(differences)) if groups is None else groups
    ends = bootstrap_ci(np.array(differences, dtype=float), groups, weights, strata, **options)
    return [*zip(ends.low.tolist(), ends.high.tolist(), ends.kind, strict=True)]


def test_what_did_not_change_is_zero_for_certain():
    assert interval([0.0, 0.0, NAN]) == [(0.0, 0.0, "unchanged")]


def test_the_same_change_everywhere_has_no_width():
    [(low, high, kind)] = interval([0.1] * 7)

    assert (low, kind) == (high, "percentile")
    assert low == pytest.approx(0.1)


def test_one_group_or_none_has_no_interval():
    single, empty = interval([[1.0, NAN], [2.0, NAN]], ["a", "a"])

    assert np.isnan([*single[:2], *empty[:2]]).all()
    assert (single[2], empty[2]) == ("undefined", "undefined")


def test_two_groups_reach_from_one_to_the_other():
    # Resampled means: 0, 0.5, 0.5, 1; the outer 2.5% lie at 0 and 1.
    assert [(low, high) for low, high, _ in interval([0.0, 1.0])] == [(0.0, 1.0)]


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_single_queries_give_scipys_interval(skew):
    from scipy import stats

    rng = np.random.default_rng(5)
    differences = rng.normal(0.05, 0.3, size=60) + skew * rng.exponential(0.5, size=60)
    theirs = stats.bootstrap(
        (differences,), np.mean, n_resamples=40_000, method="BCa", rng=1
    ).confidence_interval

    [(low, high, kind)] = interval(differences, resamples=40_000)

    assert kind == "bca"
    width = theirs.high - theirs.low
    assert low == pytest.approx(theirs.low, abs=0.02 * width)
    assert high == pytest.approx(theirs.high, abs=0.02 * width)


def test_two_strata_give_scipys_interval_for_two_samples():
    from scipy import stats

    rng = np.random.default_rng(6)
    first, second = rng.exponential(0.4, size=30), rng.exponential(0.2, size=50) - 0.1
    theirs = stats.bootstrap(
        (first, second),
        lambda x, y, axis: 0.5 * x.mean(axis=axis) + 0.5 * y.mean(axis=axis),
        n_resamples=40_000,
        method="BCa",
        rng=1,
    ).confidence_interval
    category = ["x"] * 30 + ["y"] * 50
    macro = [0.5 / 30] * 30 + [0.5 / 50] * 50

    [(low, high, kind)] = interval(
        np.concatenate([first, second]), None, macro, category, resamples=40_000
    )

    assert kind == "bca"
    width = theirs.high - theirs.low
    assert low == pytest.approx(theirs.low, abs=0.02 * width)
    assert high == pytest.approx(theirs.high, abs=0.02 * width)


def test_strata_of_constants_leave_nothing_to_chance():
    category = ["x"] * 4 + ["y"] * 4

    [(low, high, _)] = interval([1.0] * 4 + [0.0] * 4, None, None, category)
    [(free_low, free_high, _)] = interval([1.0] * 4 + [0.0] * 4)

    assert (low, high) == (0.5, 0.5)
    assert free_low < 0.5 < free_high


def test_lone_groups_are_pooled_so_that_they_can_vary():
    # Four categories of one query each: stratified as given, nothing could ever move.
    differences = [0.0, 1.0, 0.0, 1.0]

    assert interval(differences, None, None, list("wxyz")) == interval(differences)


def test_a_lone_group_joins_the_smallest_stratum():
    members, stratum = np.arange(6), np.array([0, 0, 0, 1, 2, 2])

    layout = intervals._layout(members, stratum)

    assert layout.order.tolist() == [0, 1, 2, 3, 4, 5]
    assert (layout.starts.tolist(), layout.sizes.tolist()) == ([0, 3], [3, 3])


def test_a_group_has_the_category_of_most_of_its_queries():
    codes = np.array([0, 0, 0, 1, 1, 2])

    stratum = intervals._most_common(codes, ["y", "y", "x", "y", "x", "z"])

    assert stratum.tolist() == [1, 0, 2]


def test_resampled_means_are_those_of_every_draw():
    """Groups of weight 2/3 and 1/3: the draws aa, ab, ba, bb have means 1, 5/3, 5/3, 3."""
    layout = intervals._layout(np.arange(2), np.zeros(2, dtype=np.intp))
    sums, shares = np.array([[2 / 3], [1.0]]), np.array([[2 / 3], [1 / 3]])
    expected = sorted(
        {(a + b) / (c + d) for (a, c), (b, d) in product(((2 / 3, 2 / 3), (1.0, 1 / 3)), repeat=2)}
    )

    means = intervals._resampled(sums, shares, layout, 400, 0)

    values, counts = np.unique(means.round(9), return_counts=True)
    np.testing.assert_allclose(values, expected, atol=1e-8)
    np.testing.assert_allclose(counts / 400, [0.25, 0.5, 0.25], atol=0.08)


def test_chunks_hold_every_resample(monkeypatch):
    layout = intervals._layout(np.arange(3), np.zeros(3, dtype=np.intp))
    sums, shares = np.full((3, 1), 0.2), np.full((3, 1), 1 / 3)
    monkeypatch.setattr(intervals, "_CELLS", 10)

    np.testing.assert_allclose(intervals._resampled(sums, shares, layout, 100, 0), 0.6)


def test_a_group_counts_as_one_draw():
    differences = np.repeat(np.random.default_rng(7).normal(size=25), 4)

    [(low, high, _)] = interval(differences, np.repeat(np.arange(25), 4))
    [(by_query_low, by_query_high, _)] = interval(differences)

    assert high - low == pytest.approx(2 * (by_query_high - by_query_low), rel=0.1)


def test_a_column_has_the_same_interval_whatever_stands_beside_it():
    differences = np.random.default_rng(8).normal(size=(40, 3))
    differences[::3, 1] = NAN

    assert interval(differences)[1] == interval(differences[:, [1]])[0]


def test_turning_the_sign_turns_the_interval():
    differences = np.random.default_rng(9).exponential(size=40)

    [(low, high, _)], [(turned_low, turned_high, _)] = interval(differences), interval(-differences)

    np.testing.assert_allclose([turned_low, turned_high], [-high, -low])


def test_acceleration_of_two_strata_worked_by_hand():
    # x: 0, 0, 3 deviate by -1, -1, 2; each weighs 1/4: cubes 6/64, squares 6/16.
    # y: 0, 2 deviate by -1, 1; each weighs 1/8: cubes 0, squares 2/64.
    layout = intervals._layout(np.arange(5), np.array([0, 0, 0, 1, 1]))
    shares = np.array([[1 / 4]] * 3 + [[1 / 8]] * 2)
    sums = shares * np.array([[0.0], [0.0], [3.0], [0.0], [2.0]])

    acceleration = intervals._acceleration(sums, shares, layout)

    np.testing.assert_allclose(acceleration, [(6 / 64) / (6 * (26 / 64) ** 1.5)])


def test_bca_gives_way_where_it_degenerates():
    tails = (0.025, 0.975)

    assert intervals._corrected(0.5, 0.0, tails) == pytest.approx(tails)
    assert intervals._corrected(0.0, 0.1, tails) is None
    assert intervals._corrected(1.0, 0.1, tails) is None
    assert intervals._corrected(0.5, NAN, tails) is None
    assert intervals._corrected(0.5, 0.6, tails) is None


def test_one_resample_says_so():
    [(low, high, kind)] = interval([0.0, 1.0, 5.0], resamples=1)

    assert (kind, low) == ("percentile", high)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1, got 1.0"),
        ({"confidence": NAN}, "confidence .* got nan"),
        ({"resamples": 0}, "resamples >= 1, got 0"),
        ({"strata": ["x"]}, "one stratum, got 1 for 2 queries"),
    ],
)
def test_unusable_options_are_named(options, message):
    with pytest.raises(MetricError, match=message):
        interval([0.0, 1.0], **options)


def test_intervals_hold_the_true_mean_as_often_as_they_say():
    """Skewed changes, groups of unequal size in two categories, macro weights."""
    rng = np.random.default_rng(10)
    sizes = rng.integers(1, 6, size=100)
    groups = np.repeat(np.arange(100), sizes)
    category = np.repeat(np.arange(100) % 2, sizes)
    weights = 0.5 / np.bincount(category)[category]
    builds = rng.exponential(size=(100, 600))[groups] - 1.0 + 3.0 * category[:, np.newaxis]

    ends = bootstrap_ci(builds, groups, weights, category, resamples=2_000)

    assert ((ends.low <= 1.5) & (ends.high >= 1.5)).mean() == pytest.approx(0.94, abs=0.025)
