"""Who wins among the best trials, and what it gains category by category."""

from math import nan
from typing import NamedTuple

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.stats import compare
from comis_eval.tuning.confirm import (
    by_category,
    choose,
    direction,
    distinct_feasible,
    weighted,
    widened,
)
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.study import run_study
from comis_eval.tuning.task import Task
from tests.tuning.fake import Scores
from tests.tuning.worlds import space

BASE = Config()  # maxResults 5
SIZES = space(rag__maxResults={"low": 1, "high": 30})
GROUPS = np.array(["a", "b", "c", "d"])
EVEN = np.full(4, 0.25)


class Queries(NamedTuple):
    """Scores by maxResults on some queries, as a Replay gives them."""

    scores: dict[int, list[float]]
    query_weights: np.ndarray = EVEN

    def __call__(self, config):
        scores = np.array(self.scores[config.rag.max_results], dtype=float)
        return Scores(
            {"utility": 0.0}, (float(np.nansum(scores * self.query_weights)),), {}, scores
        )


class Leaking(Queries):
    """Leaks whenever more than 9 are shown."""

    def __call__(self, config):
        scores = super().__call__(config)
        return scores._replace(constraints={"policy_leak": float(config.rag.max_results > 9)})


def study_of(measure, *sizes, direction="maximize"):
    """A study of the current configuration and of these sizes, in that order."""
    task = Task(measure, SIZES, BASE, (Objective("utility", direction),))
    found = run_study(measure, SIZES, BASE, objectives=task.objectives, trials=1, seed=0)
    records = [found.current]
    for number, size in enumerate(sizes, start=1):
        scored = measure(BASE.evolve(**{"rag.max_results": size}))
        feasible = all(amount <= 0 for amount in scored.constraints.values())
        params = {"rag.maxResults": size}
        records.append(
            found.current._replace(
                number=number, params=params, values=scored.values, feasible=feasible
            )
        )
    return StudyResult(task, records, len(records))


CURRENT, GOOD, BEST = [0.2] * 4, [0.5, 0.5, 0.5, 0.5], [0.8, 0.4, 0.8, 0.4]
TUNE = Queries({5: CURRENT, 7: GOOD, 20: BEST})


# --- among the best -----------------------------------------------------------------------


def test_only_distinct_feasible_trials_compete_and_the_current_settings_always():
    measure = Leaking({5: CURRENT, 7: GOOD, 20: BEST})
    study = study_of(measure, 7, 20, 7)
    assert [record.number for record in study.trials if record.duplicate_of is not None] == [3]
    assert [record.number for record in distinct_feasible(study)] == [1, 0]
    leaks_now = BASE.evolve(**{"rag.max_results": 20})
    task = Task(measure, SIZES, leaks_now, study.objectives)
    found = run_study(measure, SIZES, leaks_now, objectives=task.objectives, trials=1, seed=0)
    assert not found.current.feasible
    assert [record.number for record in distinct_feasible(found)] == [0]


def test_on_the_queries_of_the_search_the_nearest_of_the_best_wins():
    # Gains over the current .3 and .4; the best one's error is .2309 / 2: both are as good,
    # and 7 results are nearer to 5 than 20 are.
    study = study_of(TUNE, 20, 7)
    choice = choose(study, TUNE, GROUPS, select=None, seed=0)
    assert choice.number == 2
    assert choice.tuned_gain == pytest.approx(0.3)
    told = {entrant.number: entrant.gain for entrant in choice.entrants}
    assert told == pytest.approx({1: 0.4, 2: 0.3, 0: 0.0})
    assert [entrant.number for entrant in choice.entrants] == [1, 2, 0]
    # Four groups, all better: 1 of the 16 sign patterns is as good for both, all for the third.
    assert [entrant.p for entrant in choice.entrants] == pytest.approx([1 / 16, 1 / 16, 1])
    assert choice.floor.n_trials == 3
    assert choice.floor.n_groups == 4


def test_on_other_queries_the_best_there_wins():
    study = study_of(TUNE, 20, 7)
    other = Queries(
        {5: [0.1] * 3, 7: [0.2, 0.2, 0.2], 20: [0.9, 0.9, 0.9]}, np.array([0.5, 0.25, 0.25])
    )
    choice = choose(
        study, TUNE, GROUPS, select=other, select_groups=np.array(["x", "y", "z"]), seed=0
    )
    assert choice.number == 1
    assert {e.number: e.gain for e in choice.entrants} == pytest.approx({1: 0.8, 2: 0.1, 0: 0.0})
    # What it gained on the queries of the search, and luck there, stay what they were.
    assert choice.tuned_gain == pytest.approx(0.4)
    assert choice.floor == choose(study, TUNE, GROUPS, select=None, seed=0).floor


def test_twenty_compete_and_the_current_settings_besides():
    sizes = [size for size in range(1, 31) if size != 5]
    scores = {size: [size / 100] * 4 for size in sizes} | {5: [0.0] * 4}
    measure = Queries(scores)
    choice = choose(study_of(measure, *sizes), measure, GROUPS, select=None, seed=0)
    assert len(choice.entrants) == 21
    assert [e.gain for e in choice.entrants[:20]] == pytest.approx(
        [size / 100 for size in range(30, 10, -1)]
    )
    assert choice.entrants[20].number == 0
    assert choice.floor.n_trials == 30


def test_of_an_objective_with_less_being_better_the_lowest_wins():
    costs = Queries({5: [3.0] * 4, 7: [2.0] * 4, 20: [9.0] * 4})
    study = study_of(costs, 20, 7, direction="minimize")
    choice = choose(study, costs, GROUPS, select=None, seed=0)
    assert choice.number == 2
    assert choice.tuned_gain == pytest.approx(1.0)
    assert {e.number: e.gain for e in choice.entrants} == {2: 1.0, 0: 0.0, 1: -6.0}


def test_nothing_better_leaves_what_is_in_use():
    worse = Queries({5: CURRENT, 7: [0.1] * 4, 20: [0.0] * 4})
    choice = choose(study_of(worse, 20, 7), worse, GROUPS, select=None, seed=0)
    assert choice.number == 0
    assert choice.tuned_gain == 0


def test_one_seed_one_choice():
    study = study_of(TUNE, 20, 7)
    assert choose(study, TUNE, GROUPS, select=None, seed=3) == choose(
        study, TUNE, GROUPS, select=None, seed=3
    )


# --- figures ------------------------------------------------------------------------------


def test_a_weighted_mean_leaves_out_what_is_undefined():
    differences = np.array([[1.0, nan], [0.0, 2.0], [4.0, nan]])
    weights = np.array([0.5, 0.25, 0.25])
    assert weighted(differences, weights).tolist() == [1.5, 2.0]
    assert weighted(np.full((2, 1), nan), np.array([0.5, 0.5])).tolist() == [0.0]


def test_widened_differences_keep_their_mean_and_stretch_about_it():
    differences = np.array([1.0, 3.0, nan, 2.0])
    even = np.full(4, 0.25)
    # Their mean is 2; deviations -1, 1, 0 become -2, 2, 0.
    np.testing.assert_array_equal(widened(differences, even, 2.0), [0.0, 4.0, nan, 2.0])
    np.testing.assert_array_equal(widened(differences, even, 1.0), differences)
    # By weights .5, .25, (.25 of an undefined one), 0 the mean is 5 / 3.
    uneven = np.array([0.5, 0.25, 0.25, 0.0])
    stretched = widened(differences, uneven, 4.0)
    assert stretched[[0, 1]].tolist() == pytest.approx([5 / 3 - 8 / 3, 5 / 3 + 16 / 3])
    assert weighted(stretched[:, None], uneven)[0] == pytest.approx(5 / 3)
    assert widened(np.zeros(4), even, 2.0).tolist() == [0.0] * 4


def test_what_is_widened_is_less_sure_by_that_factor():
    dice = np.random.default_rng(0)
    differences, groups = dice.normal(0.1, 0.3, 60), np.array([f"g{i}" for i in range(60)])
    even = np.full(60, 1 / 60)
    plain, wide = (
        compare(widened(differences, even, factor), groups, even, margins=0.01)[0]
        for factor in (1.0, 1.5)
    )
    assert wide.mean == pytest.approx(plain.mean)
    assert wide.high - wide.low == pytest.approx(1.5 * (plain.high - plain.low), rel=0.02)
    assert wide.mdd == pytest.approx(1.5 * plain.mdd, rel=0.02)
    assert wide.n_for_margin == pytest.approx(2.25 * plain.n_for_margin, rel=0.01)
    assert wide.p > plain.p
    assert wide.p_t > plain.p_t


def test_directions():
    assert [direction(name) for name in ("utility", "ndcg@10", "context_chars", "latency_ms")] == [
        1, 1, -1, -1,
    ]  # fmt: skip


CATEGORIES = np.array(["new", "old", "new", "old", "none", "new"])
SIX = np.array([f"g{i}" for i in range(6)])
WINNER = np.array([0.5, 0.2, 0.7, nan, nan, 0.9])
STANDING = np.array([0.1, 0.4, 0.3, 0.4, nan, 0.4])


def test_figures_by_category_are_of_the_pairs_that_both_define():
    told = by_category(WINNER, STANDING, SIX, CATEGORIES, sign=1.0, seed=0)
    assert list(told) == ["new", "old"]
    new, old = told["new"], told["old"]
    assert new["winner"] == pytest.approx((0.5 + 0.7 + 0.9) / 3)
    assert new["current"] == pytest.approx((0.1 + 0.3 + 0.4) / 3)
    assert (new["n"], old["n"]) == (3, 1)
    assert old["winner"] == 0.2
    expected = compare(np.array([0.4, 0.4, 0.5]), SIX[:3], seed=0)[0]
    assert (new["low"], new["high"]) == pytest.approx((expected.low, expected.high))
    assert new["low"] <= new["winner"] - new["current"] <= new["high"]


def test_figures_by_category_of_folds_allow_for_what_folds_share():
    told = by_category(WINNER, STANDING, SIX, CATEGORIES, sign=1.0, seed=0, spread=2.0)["new"]
    plain = by_category(WINNER, STANDING, SIX, CATEGORIES, sign=1.0, seed=0)["new"]
    assert (told["winner"], told["current"]) == (plain["winner"], plain["current"])
    assert told["high"] - told["low"] == pytest.approx(2 * (plain["high"] - plain["low"]))


def test_where_less_is_better_the_interval_is_still_of_winner_minus_current():
    told = by_category(WINNER, STANDING, SIX, CATEGORIES, sign=-1.0, seed=0)["new"]
    plain = by_category(WINNER, STANDING, SIX, CATEGORIES, sign=1.0, seed=0)["new"]
    assert told["low"] <= told["winner"] - told["current"] <= told["high"]
    assert (told["low"], told["high"]) == pytest.approx((plain["low"], plain["high"]), abs=0.02)
