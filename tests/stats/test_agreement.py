"""Weighted kappa against sums worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.errors import MetricError
from comis_eval.stats import weighted_kappa

GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("first", "second", "expected", "why"),
    [
        ((0, 1, 2, 3), (0, 1, 2, 2), 0.875, "cost 1/4; by chance 2: 1 - 1/8"),
        ((0, 3), (3, 0), -1.0, "cost 9; by chance (0 + 9 + 9 + 0) / 4 = 4.5"),
        ((0, 0, 3, 3), (0, 3, 0, 3), 0.0, "cost 18/4; by chance 9/2"),
        ((0, 0, 1), (0, 1, 1), 0.4, "cost 1/3; by chance 2/3 * 2/3 + 1/3 * 1/3 = 5/9"),
        ((1, 2, 3), (1, 2, 3), 1.0, "no cost"),
        (
            (0,) * 20 + (1,) * 5 + (0,) * 10 + (1,) * 15,
            (0,) * 20 + (0,) * 5 + (1,) * 10 + (1,) * 15,
            0.4,
            "two grades: Cohen's own kappa, (0.7 - 0.5) / (1 - 0.5)",
        ),
    ],
)
def test_kappa_by_hand(first, second, expected, why):
    assert weighted_kappa(first, second).kappa == pytest.approx(expected), why


@given(GRADES)
def test_it_is_what_the_table_of_both_grades_gives(pairs):
    first, second = zip(*pairs, strict=True)
    table = np.zeros((4, 4))
    for one, two in pairs:
        table[one, two] += 1 / len(pairs)
    cost = np.square(np.subtract.outer(np.arange(4), np.arange(4)))
    chance = (cost * np.outer(table.sum(axis=1), table.sum(axis=0))).sum()
    found = weighted_kappa(first, second, resamples=1)
    if chance == 0:
        assert math.isnan(found.kappa)
    else:
        assert found.kappa == pytest.approx(1 - (cost * table).sum() / chance)
    assert found.kappa <= 1 or math.isnan(found.kappa)
    swapped = weighted_kappa(second, first, resamples=1).kappa
    assert swapped == pytest.approx(found.kappa, nan_ok=True)


def test_one_grade_for_everything_is_no_agreement_and_no_disagreement():
    found = weighted_kappa([2, 2, 2], [2, 2, 2])
    assert math.isnan(found.kappa)
    assert (found.n, found.same) == (3, 3)


def test_nothing_in_common_has_no_kappa():
    assert math.isnan(weighted_kappa([], []).kappa)


def test_the_interval_holds_the_figure_and_a_wider_one_holds_it():
    rng = np.random.default_rng(3)
    first = rng.integers(0, 4, 200)
    second = np.clip(first + rng.integers(-1, 2, 200), 0, 3)
    narrow, wide = (weighted_kappa(first, second, confidence=c) for c in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.kappa < narrow.high < wide.high
    assert weighted_kappa(first, second) == weighted_kappa(first, second)


def test_whole_groups_are_drawn():
    """Copies within a group add nothing, so they do not narrow the interval."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 4, 60)
    second = np.clip(first + rng.integers(-1, 2, 60), 0, 3)
    alone = weighted_kappa(first, second, np.arange(60))
    copies = weighted_kappa(np.repeat(first, 9), np.repeat(second, 9), np.repeat(np.arange(60), 9))
    apart = weighted_kappa(np.repeat(first, 9), np.repeat(second, 9))
    assert copies.high - copies.low == pytest.approx(alone.high - alone.low)
    assert apart.high - apart.low < 0.5 * (copies.high - copies.low)


def test_where_all_agree_there_is_no_interval():
    """Every draw would say 1, which is no certainty."""
    found = weighted_kappa([0, 1, 2, 3], [0, 1, 2, 3])
    assert found.kappa == 1
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(MetricError, match="two grades of each thing"):
        weighted_kappa([1, 2], [1])
    with pytest.raises(MetricError, match="one group"):
        weighted_kappa([1, 2], [1, 2], ["a"])
    with pytest.raises(MetricError, match="confidence"):
        weighted_kappa([1], [1], confidence=1)
    with pytest.raises(MetricError, match="resamples"):
        weighted_kappa([1], [1], resamples=0)
