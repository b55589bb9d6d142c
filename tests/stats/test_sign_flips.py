"""Which flips there are: all of them when few groups changed, else a seeded draw."""

from itertools import product

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.stats import flipped_sums, sign_flips


def rows(sums, **options):
    return np.concatenate(list(flipped_sums(sums, **{"flips": 50, "seed": 0} | options)))


def signs(groups, **options):
    """The signs themselves: what a flip makes of a column that holds one group alone."""
    return rows(np.eye(groups), **{"exact_groups": 0} | options)


@pytest.mark.parametrize("cells", [1 << 20, 8, 1])
def test_few_groups_have_every_flip_once(monkeypatch, cells):
    monkeypatch.setattr(sign_flips, "_CELLS", cells)
    sums = np.array([[1.0, 8.0], [2.0, 16.0], [4.0, 0.0], [0.0, 0.0]])
    expected = sorted((a + 2 * b + 4 * c, 8 * a + 16 * b) for a, b, c in product((-1, 1), repeat=3))

    assert sorted(map(tuple, rows(sums).tolist())) == expected


def test_nothing_changed_is_one_flip():
    assert rows(np.zeros((30, 2))).tolist() == [[0.0, 0.0]]


def test_twenty_changed_groups_are_enumerated_and_twenty_one_drawn():
    assert len(rows(np.ones((20, 1)))) == 2**20
    assert len(rows(np.ones((21, 1)))) == 51


def test_a_draw_begins_with_the_data_as_they_are():
    assert signs(70)[0].tolist() == [1.0] * 70


def test_a_draw_holds_fair_signs():
    drawn = signs(70, flips=2_000)[1:]

    assert set(drawn.ravel().tolist()) == {-1.0, 1.0}
    # 140,000 signs have a mean of 0 give or take 0.0027; a column of 2,000, 0.022.
    assert abs(drawn.mean()) < 0.01
    assert np.abs(drawn.mean(axis=0)).max() < 0.1
    assert np.abs(np.corrcoef(drawn.T) - np.eye(70)).max() < 0.12


def test_a_draw_follows_its_seed():
    assert (signs(70) == signs(70)).all()
    assert (signs(70) != signs(70, seed=1)).any()


@pytest.mark.parametrize("cells", [1, 71, 700])
def test_chunks_do_not_move_the_draw(monkeypatch, cells):
    whole = signs(70)
    monkeypatch.setattr(sign_flips, "_CELLS", cells)

    assert (signs(70) == whole).all()


def test_a_column_gets_the_same_draw_whatever_stands_beside_it():
    sums = np.random.default_rng(0).normal(size=(40, 3))

    np.testing.assert_allclose(rows(sums)[:, 1], rows(sums[:, [1]])[:, 0], atol=1e-12)


def test_no_flips_are_an_error():
    with pytest.raises(MetricError, match="flips >= 1, got 0"):
        flipped_sums(np.ones((3, 1)), flips=0, seed=0)
