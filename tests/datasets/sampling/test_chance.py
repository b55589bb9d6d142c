"""Chances by hand, and draws that keep to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.datasets.sampling.chance import inclusion, systematic

STRATA = st.lists(st.integers(0, 6), min_size=1, max_size=60).map(np.array)


def test_a_stratums_share_goes_by_the_root_of_its_size():
    strata = np.repeat([0, 1], [900, 100])
    chance = inclusion(strata, 20)
    assert chance[:900].sum() == pytest.approx(15)  # 20 x 30 / (30 + 10)
    assert chance[900:].sum() == pytest.approx(5)


def test_a_small_stratum_is_taken_whole_and_the_others_share_the_rest():
    strata = np.repeat([0, 1, 2], [100, 100, 1])
    chance = inclusion(strata, 21)
    # by roots the one would have the chance 21 x 1 / 21 = 1
    assert chance[-1] == 1
    assert chance[:100].sum() == pytest.approx(10)
    strata = np.repeat([0, 1], [100, 4])
    chance = inclusion(strata, 54)
    assert chance[100:].tolist() == [1, 1, 1, 1]
    assert chance[:100] == pytest.approx(0.5)


@given(STRATA, st.integers(1, 70))
def test_chances_are_above_0_and_add_up(strata, n):
    chance = inclusion(strata, n)
    assert ((chance > 0) & (chance <= 1)).all()
    assert chance.sum() == pytest.approx(min(n, len(strata)))


@given(STRATA, st.integers(1, 70), st.integers(0, 2**32))
def test_every_stratum_gets_its_expected_number_rounded(strata, n, seed):
    chance = inclusion(strata, n)
    drawn = systematic(chance, strata, np.random.default_rng(seed))
    assert len(drawn) == len(set(drawn.tolist())) == min(n, len(strata))
    for stratum in np.unique(strata):
        expected = chance[strata == stratum].sum()
        count = np.count_nonzero(strata[drawn] == stratum)
        assert np.floor(expected - 1e-6) <= count <= np.ceil(expected + 1e-6)
    assert set(np.flatnonzero(chance == 1)) <= set(drawn.tolist())


def test_each_unit_is_drawn_as_often_as_its_chance_says():
    strata = np.repeat([0, 1, 2], [12, 5, 2])
    chance = inclusion(strata, 7)
    rng = np.random.default_rng(8)
    often = np.zeros(len(strata))
    for _ in range(4000):
        often[systematic(chance, strata, rng)] += 1
    assert often / 4000 == pytest.approx(chance, abs=0.04)  # sd at most 0.008
