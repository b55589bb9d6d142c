"""The selection floor and the one-standard-error rule."""

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.stats import selection_floor, within_one_standard_error

NAN = np.nan


def test_floor_of_one_trial_worked_by_hand():
    # Means over the flips ++, +-, -+, --: 0, 1, -1, 0. The 95th percentile lies at rank
    # 0.95 x 3 = 2.85, between 0 and 1.
    floor = selection_floor(np.array([1.0, -1.0]), [1, 2])

    assert floor.mean == 0.0
    assert floor.percentile_95 == pytest.approx(0.85)
    assert (floor.n_trials, floor.n_groups) == (1, 2)


def test_floor_of_two_opposite_trials_worked_by_hand():
    # The larger of x and -x: 0, 1, 1, 0.
    floor = selection_floor(np.array([[1.0, -1.0], [-1.0, 1.0]]), [1, 2])

    assert (floor.mean, floor.percentile_95) == (0.5, 1.0)


def test_a_true_gain_does_not_lift_the_floor():
    trials = np.random.default_rng(0).normal(size=(60, 5))

    lifted = selection_floor(trials + np.array([0.0, 0.0, 9.0, 0.0, 0.0]), range(60))

    assert lifted.mean == pytest.approx(selection_floor(trials, range(60)).mean)


def test_a_trial_without_pairs_is_not_counted():
    trials = np.array([[1.0, NAN], [-1.0, NAN]])

    assert selection_floor(trials, [1, 2]) == selection_floor(trials[:, 0], [1, 2])


def test_near_copies_cost_less_than_independent_trials():
    rng = np.random.default_rng(1)
    shared, own = rng.normal(size=(100, 1)), rng.normal(size=(100, 50))

    independent = selection_floor(0.35 * own, range(100))
    alike = selection_floor(0.35 * (0.98**0.5 * shared + 0.02**0.5 * own), range(100))

    assert alike.mean < 0.3 * independent.mean
    assert alike.percentile_95 < independent.percentile_95


def test_floor_is_what_the_best_of_many_gains_by_luck():
    """50 trials that differ from the current one by noise alone, over 300 worlds."""
    rng = np.random.default_rng(2)
    worlds = 0.35 * rng.normal(size=(300, 100, 50))
    gained = worlds.mean(axis=1).max(axis=1)

    floor = selection_floor(worlds[0], range(100))

    assert floor.mean == pytest.approx(gained.mean(), rel=0.1)
    assert floor.percentile_95 == pytest.approx(np.quantile(gained, 0.95), rel=0.1)


def test_flips_are_enumerated_when_no_more_than_asked_for():
    trials = np.random.default_rng(3).normal(size=(10, 4))

    def floor(flips, seed):
        return selection_floor(trials, range(10), flips=flips, seed=seed)

    assert floor(1024, 0) == floor(1024, 1)
    assert floor(1023, 0) != floor(1023, 1)


def test_one_standard_error_worked_by_hand():
    # Best: mean 2, error 1/sqrt 3 = 0.577; trials down to 1.423 are as good.
    best = np.array([1.0, 2.0, 3.0])
    trials = np.stack([best, best - 0.5, best - 0.6, np.full(3, NAN)], axis=1)

    assert within_one_standard_error(trials, [1, 2, 3]).tolist() == [True, True, False, False]


def test_a_single_group_leaves_the_best_alone():
    assert within_one_standard_error(np.array([[1.0, 0.9]]), ["a"]).tolist() == [True, False]


def test_no_defined_trial_is_an_error():
    nothing = np.full((2, 2), NAN)

    with pytest.raises(MetricError, match="selection floor needs a trial with a defined pair"):
        selection_floor(nothing, [1, 2])
    with pytest.raises(MetricError, match="choosing among trials needs one with a defined pair"):
        within_one_standard_error(nothing, [1, 2])
