"""Choosing among many trials, worked by hand."""

from dataclasses import replace
from math import nan, sqrt

import numpy as np
import pytest

from comis_eval.stats import SelectionFloor, compare
from comis_eval.tuning.select import (
    MAX_JUDGED_GAP,
    Decision,
    decide,
    distance,
    nearest_of_the_best,
)

FOUR = np.array(["a", "b", "c", "d"])
EVEN = np.full(4, 0.25)


# --- who wins -----------------------------------------------------------------------------


def columns(*trials):
    return np.array(trials, dtype=float).T


def test_the_nearest_within_one_standard_error_of_the_best_wins():
    # Mean 0.4, group values .6 .2 .6 .2: deviations .2, so s = sqrt(4 x .04 / 3) = .2309 and
    # the standard error .2309 / 2 = .1155. A trial at .29 is within it, one at .28 is not.
    best = [0.6, 0.2, 0.6, 0.2]
    assert sqrt(4 * 0.04 / 3) / 2 == pytest.approx(0.11547, abs=1e-5)
    within, beyond = [0.29] * 4, [0.28] * 4
    distances = np.array([3.0, 2.0, 1.0])
    assert nearest_of_the_best(columns(best, within, beyond), FOUR, EVEN, distances) == 1
    assert nearest_of_the_best(columns(best, beyond, beyond), FOUR, EVEN, distances) == 0


def test_the_current_settings_win_when_nothing_is_better_for_sure():
    noisy = [0.5, -0.4, 0.5, -0.4]  # mean .05, standard error .26
    assert nearest_of_the_best(columns(noisy, [0.0] * 4), FOUR, EVEN, np.array([1.0, 0.0])) == 1


def test_of_equally_near_ones_the_larger_gain_wins_then_the_earlier():
    best, good = [0.6, 0.2, 0.6, 0.2], [0.3] * 4
    far = np.array([1.0, 1.0, 1.0])
    assert nearest_of_the_best(columns(good, best, good), FOUR, EVEN, far) == 1
    assert nearest_of_the_best(columns(good, good, good), FOUR, EVEN, far) == 0


def test_the_error_is_that_of_groups_not_of_queries():
    # As four groups the best trial's error is .1155; as two, whose sums are equal, it is 0.
    best, near = [0.6, 0.2, 0.6, 0.2], [0.3] * 4
    far = np.array([2.0, 1.0])
    assert nearest_of_the_best(columns(best, near), FOUR, EVEN, far) == 1
    pairs = np.array(["a", "a", "b", "b"])
    assert nearest_of_the_best(columns(best, near), pairs, EVEN, far) == 0


def test_what_a_query_weighs_decides_which_trial_is_best():
    first, second = [1.0, 0, 0, 0], [0, 0.5, 0.5, 0.5]
    far = np.array([1.0, 1.0])
    heavy = np.array([0.97, 0.01, 0.01, 0.01])
    assert nearest_of_the_best(columns(first, second), FOUR, heavy, far) == 0
    assert nearest_of_the_best(columns(first, second), FOUR, EVEN, far) == 1


def test_undefined_pairs_count_for_nothing():
    only = [nan, 0.2, 0.2, 0.2]
    assert nearest_of_the_best(columns(only, [0.1] * 4), FOUR, EVEN, np.array([1.0, 1.0])) == 0


# --- how far ------------------------------------------------------------------------------


SPANS = {"a": 1.0, "n": 20.0}


def test_distance_is_the_sum_of_the_shares_of_the_ranges():
    assert distance({"a": 0.2, "n": 5}, {"a": 0.2, "n": 5}, SPANS) == 0
    assert distance({"a": 0.7, "n": 10}, {"a": 0.2, "n": 5}, SPANS) == pytest.approx(0.5 + 0.25)


def test_switches_names_and_knobs_that_only_one_has_count_one_each():
    assert distance({"on": True}, {"on": False}, {}) == 1
    assert distance({"kind": "rrf"}, {"kind": "convex"}, {}) == 1
    assert distance({"on": True, "n": 7}, {"on": False}, SPANS) == 2
    assert distance({}, {"n": 7}, SPANS) == 1


def test_distance_goes_both_ways():
    one, other = {"a": 0.9, "on": True, "n": 3}, {"a": 0.1, "kind": "x"}
    assert distance(one, other, SPANS) == distance(other, one, SPANS)


# --- the verdict --------------------------------------------------------------------------


def seen(*gains):
    """What was found on held-out queries, from 30 groups of a given mean and spread."""
    mean, spread = gains
    values = np.tile([mean - spread, mean + spread], 15)
    return compare(values, np.array([f"g{i}" for i in range(30)]))[0]


LUCK = SelectionFloor(0.02, 0.05, 100, 30)
KNOWN = {"tuned_gain": 0.2, "leaks": 0, "judged_gap": 0.0, "changed": True}


def verdict(comparison, floor=LUCK, **known):
    return decide(comparison, floor, **{**KNOWN, **known})


def test_adopt_when_the_interval_lies_above_zero():
    told = verdict(seen(0.1, 0.05))
    assert told.outcome == "adopt"
    assert told.sentence == "Adopt the recommended settings."
    assert told.reasons[0].startswith("it gains +0.1000 [+0.0")


def test_the_current_settings_stay_when_the_winner_has_them():
    for told in (verdict(None), verdict(seen(0.1, 0.05), changed=False)):
        assert told == Decision(
            "keep current", ("no trial within noise of the best is another setting",)
        )


def test_a_leak_forbids_any_gain():
    told = verdict(seen(0.1, 0.05), leaks=3)
    assert told.outcome == "keep current"
    assert told.reasons == ("the winner lets 3 memories in that the policy keeps out",)


@pytest.mark.parametrize("gap", [MAX_JUDGED_GAP + 1e-6, nan])
def test_a_gain_that_rests_on_unjudged_memories_is_in_doubt(gap):
    told = verdict(seen(0.1, 0.05), judged_gap=gap)
    assert told.outcome == "not enough judgments"
    assert "judge the listed memories first" in told.reasons[0]
    assert verdict(seen(0.1, 0.05), judged_gap=MAX_JUDGED_GAP).outcome == "adopt"


def test_a_loss_keeps_the_current_settings():
    told = verdict(seen(-0.1, 0.05))
    assert told.outcome == "keep current"
    assert told.sentence == "No change is justified: keep the current settings."
    assert "-0.1000" in told.reasons[0]


def test_a_promising_gain_that_cannot_be_told_from_nothing_asks_for_queries():
    told = verdict(seen(0.05, 0.5))
    assert told.outcome == "not enough queries"
    assert told.sentence == "Not enough queries to tell: keep the current settings."
    assert "30 groups of queries show only differences of 0.2" in told.reasons[1]


def test_luck_is_no_promise():
    told = verdict(seen(0.05, 0.5), tuned_gain=0.05)
    assert told.outcome == "keep current"
    said = told.reasons[1]
    assert "no more than luck gives the best of 100 trials (95th percentile 0.0500)" in said
    assert verdict(seen(0.05, 0.5), floor=None, tuned_gain=0.05).outcome == "not enough queries"


def test_nothing_changed_on_held_out_queries_is_no_gain():
    nothing = replace(seen(0.1, 0.05), mean=0.0, low=0.0, high=0.0, mdd=nan)
    assert verdict(nothing).outcome == "keep current"


@pytest.mark.parametrize("test", ["p", "p_t"])
def test_an_interval_above_zero_is_not_enough_when_a_test_disagrees(test):
    clear = seen(0.1, 0.05)
    assert clear.low > 0
    told = verdict(replace(clear, mdd=0.2, **{test: 0.051}))
    assert told.outcome == "not enough queries"
    assert "0.0510 by" in told.reasons[0]
    assert verdict(replace(clear, **{test: 0.05})).outcome == "adopt"


def test_five_groups_can_never_adopt():
    # Of 2^5 sign patterns 2 are as extreme as all of one sign: p is at least 1/16.
    found = compare(np.full(5, 0.5) + np.arange(5) / 100, np.array(list("abcde")))[0]
    assert found.low > 0
    assert found.p == pytest.approx(1 / 16)
    assert verdict(found).outcome != "adopt"


@pytest.mark.parametrize("figure", ["low", "p", "p_t"])
def test_undefined_figures_never_adopt(figure):
    assert verdict(replace(seen(0.1, 0.05), **{figure: nan})).outcome == "keep current"
