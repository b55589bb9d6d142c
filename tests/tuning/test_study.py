import logging
from math import inf, isnan, nan

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.errors import ConfigError, CoverageError, StudyError
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.records import TrialRecord, best, count, marked, pareto
from comis_eval.tuning.study import run_study
from tests.tuning.fake import COARSE, SPACE, TWO, UTILITY, Measure, space_of

BASE = Config()


def run(measure=None, space=SPACE, base=BASE, *, objectives=UTILITY, trials=30, seed=0, **how):
    measure = Measure(objectives) if measure is None else measure
    return run_study(measure, space, base, objectives=objectives, trials=trials, seed=seed, **how)


def plain(result):
    """What two runs must have in common: all but the time they took."""
    return [record._replace(ms=0.0, figures={}) for record in result.trials]


# --- the loop -----------------------------------------------------------------------------


def test_the_current_configuration_is_always_trial_0():
    for sampler in ("tpe", "random", "nsga2"):
        measure = Measure()
        result = run(measure, trials=3, sampler=sampler)
        assert measure.calls[0] is BASE
        assert result.current.params == SPACE.values_of(BASE)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_finds_better_settings(sampler):
    result = run(trials=60, sampler=sampler)
    assert result.best.values > result.current.values
    assert result.best.values[0] == max(record.values[0] for record in result.trials)


def test_tpe_beats_chance():
    wins = sum(
        run(trials=60, sampler="tpe", seed=seed).best.values
        > run(trials=60, sampler="random", seed=seed).best.values
        for seed in range(5)
    )
    assert wins >= 4


def test_one_seed_one_search():
    assert plain(run()) == plain(run())
    assert plain(run()) != plain(run(seed=1))


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_neighbouring_seeds_share_no_points(sampler):
    one, other = (
        {tuple(r.params.items()) for r in run(seed=seed, sampler=sampler).trials[1:]}
        for seed in (0, 1)
    )
    assert not one & other


def test_knobs_that_are_off_are_absent():
    result = run(trials=40)
    for record in result.trials:
        on = record.params["rag.rerank.enabled"]
        assert ("rag.rerank.maxCandidates" in record.params) == on
        assert ("rag.rerank.minResults" in record.params) == on
    assert {record.params["rag.rerank.enabled"] for record in result.trials} == {True, False}


def test_a_trial_is_its_configuration():
    measure = Measure()
    result = run(measure, trials=12)
    distinct = [record for record in result.trials if record.duplicate_of is None]
    assert [result.config(record.number) for record in distinct] == measure.calls


def test_numbers_are_rounded_in_params_and_in_what_is_measured():
    measure = Measure()
    result = run(measure, trials=20)
    for record in result.trials:
        alpha = record.params["rag.scoring.recencyAlpha"]
        assert alpha == round(alpha, 4)
        assert result.config(record.number).rag.scoring.recency_alpha == alpha


def test_progress_tells_each_trial_and_the_best_so_far():
    told = []
    result = run(trials=20, progress=lambda record, leader: told.append((record, leader)))
    assert [record.number for record, _ in told] == list(range(20))
    assert told[-1][1] == result.best
    assert [leader.values for _, leader in told] == sorted(leader.values for _, leader in told)


def test_optuna_is_silent_and_gets_its_verbosity_back(caplog, capfd):
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        with caplog.at_level(logging.DEBUG):
            run(trials=12)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(optuna.logging.INFO)
    assert capfd.readouterr().err == ""


# --- duplicates ---------------------------------------------------------------------------


def test_a_point_is_measured_once_and_told_from_memory():
    measure = Measure()
    result = run(measure, COARSE, trials=60, base=BASE.evolve(**{"rag.max_results": 4}))
    counts = result.counts
    assert counts.planned == counts.run == 60
    assert counts.distinct == len(measure.calls) <= 16
    assert counts.duplicate == 60 - counts.distinct
    for record in result.trials:
        if record.duplicate_of is not None:
            original = result.trial(record.duplicate_of)
            assert original.duplicate_of is None
            assert original.number < record.number
            assert (original.params, original.values) == (record.params, record.values)
            assert record.ms == 0


def test_a_duplicate_of_a_failed_trial_fails_without_being_measured():
    def broken(config, utility):
        return nan if config.rag.max_results == 2 else utility

    measure = Measure(broken=broken)
    result = run(measure, COARSE, trials=60, required=1)
    failed = [record for record in result.trials if record.state == "failed"]
    assert len(failed) > sum(config.rag.max_results == 2 for config in measure.calls)
    assert result.counts.failed == len(failed)


# --- figures that are none ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"), [(nan, "nan"), (inf, "inf"), (-inf, "-inf"), (None, "None"), ("1", "1")]
)
def test_a_figure_that_is_no_number_fails_the_trial(value, said):
    measure = Measure(broken=lambda c, utility: value if c.rag.min_score > 0.5 else utility)
    if not isinstance(value, float):
        measure = _with_values(measure)
    result = run(measure, trials=40, required=1)
    failed = [record for record in result.trials if record.state == "failed"]
    assert failed
    assert all(record.params["rag.minScore"] > 0.5 for record in failed)
    assert {record.reason for record in failed} == {f"utility is {said}"}
    assert not any(record.feasible or record.values for record in failed)
    assert result.best.state == "complete"


def _with_values(measure):
    """The figure stands in values alone: figures are numbers."""

    def call(config):
        scores = measure(config)
        return scores._replace(figures={}, values=(scores.figures["utility"],))

    return call


def test_a_constraint_that_is_no_number_fails_the_trial():
    measure = Measure(constraint=lambda c: nan if c.rag.max_results > 10 else 0.0)
    result = run(measure, trials=30, required=1)
    reasons = {record.reason for record in result.trials if record.state == "failed"}
    assert reasons == {"constraint policy_leak is nan"}


def test_a_figure_besides_may_be_undefined():
    record = run(trials=2).trials[1]
    assert isnan(record.figures["recall@5"])
    assert record.figures["odd"] == inf
    assert record.state == "complete"


def test_a_study_most_of_which_failed_is_refused():
    measure = Measure(broken=lambda c, utility: utility if c is BASE else nan)
    with pytest.raises(StudyError, match=r"only 1 of 10 trials .* 5 must be: utility is nan \(9"):
        run(measure, trials=10)
    assert run(measure, trials=10, required=1).counts.failed == 9


def test_a_current_configuration_that_cannot_be_scored_ends_the_study_at_once():
    measure = Measure(broken=lambda c, utility: nan)
    with pytest.raises(
        StudyError, match=r"the current configuration cannot be scored.*utility is nan"
    ):
        run(measure, required=0)
    assert len(measure.calls) == 1


def test_a_wrong_number_of_values_fails():
    with pytest.raises(StudyError, match="2 objectives were asked for, 1 values came back"):
        run(Measure(UTILITY), objectives=TWO)


def test_an_error_of_the_measure_says_in_which_trial():
    def measure(config):
        if config is not BASE:
            raise CoverageError("not in the table")
        return Measure()(config)

    with pytest.raises(CoverageError, match=r"trial 1 \(rag.scoring.recencyAlpha=0\.\d+, .*table"):
        run(measure)


def test_a_bug_of_the_measure_keeps_its_type():
    def measure(config):
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        run(measure)


# --- constraints --------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2"])
def test_an_infeasible_trial_never_wins(sampler):
    measure = Measure(constraint=lambda c: c.rag.max_results - 6.0)
    result = run(measure, trials=60, sampler=sampler)
    assert result.counts.infeasible > 0
    assert result.best.feasible
    assert result.best.params["rag.maxResults"] <= 6
    assert max(record.values[0] for record in result.trials) > result.best.values[0]


def test_tpe_learns_to_keep_within_bounds():
    measure = Measure(constraint=lambda c: c.rag.min_score - 0.5)
    trials = run(measure, trials=100).trials
    early, late = (sum(record.feasible for record in trials[at : at + 40]) for at in (1, 60))
    assert late - early > 5


def test_without_a_feasible_trial_nothing_wins():
    result = run(Measure(constraint=lambda c: 1.0), trials=5)
    assert result.best is None
    assert result.pareto == ()
    assert result.counts.infeasible == 5


def test_zero_is_feasible():
    assert run(Measure(constraint=lambda c: 0.0), trials=1).best.number == 0


# --- several objectives -------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["nsga2", "tpe"])
def test_several_objectives_give_a_front(sampler):
    result = run(objectives=TWO, trials=120, sampler=sampler)
    front = result.pareto
    assert len(front) > 2
    for one in front:
        for other in result.trials:
            better = (other.values[0] >= one.values[0], other.values[1] <= one.values[1])
            assert not (all(better) and other.values != one.values)
    assert result.best.values[0] == max(record.values[0] for record in result.trials)


def test_nsga2_goes_beyond_its_first_generation():
    result = run(objectives=TWO, trials=260, sampler="nsga2")
    means = [
        np.mean([record.values[0] for record in result.trials[at : at + 60]]) for at in (1, 200)
    ]
    assert means[1] > means[0]


# --- a current configuration that the space does not hold ---------------------------------


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2"])
def test_values_outside_of_the_space_are_measured_and_said(sampler):
    base = BASE.evolve(**{"rag.min_score": 0.9, "rag.max_results": 50})
    space = space_of(
        rag__minScore={"low": 0.01, "high": 0.5, "log": True},
        rag__maxResults={"low": 1, "high": 20},
        rag__scoring__recencyAlpha={"low": 0, "high": 1},
    )
    objectives = TWO if sampler == "nsga2" else UTILITY
    result = run(None, space, base, objectives=objectives, trials=120, sampler=sampler)
    assert result.current.params["rag.minScore"] == 0.9
    assert len(result.notes) == 2
    assert "rag.minScore of the current configuration is outside" in result.notes[0]
    assert all(record.params["rag.minScore"] <= 0.5 for record in result.trials[1:])


def test_a_log_scale_does_not_meet_a_current_zero():
    base = BASE.evolve(**{"rag.min_score": 0.0})
    space = space_of(
        rag__minScore={"low": 0.001, "high": 0.5, "log": True},
        rag__maxResults={"low": 1, "high": 20},
    )
    assert run(None, space, base, trials=30).counts.failed == 0


# --- refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"sampler": "cmaes"}, "cmaes is not offered: .*unpickles.*take tpe"),
        ({"sampler": "gp"}, "gp is not offered: it needs torch"),
        ({"sampler": "tpee"}, "no sampler tpee; did you mean tpe"),
        ({"sampler": "grid"}, "no sampler grid; there are tpe, random, nsga2"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"trials": 0}, "at least one trial, got 0"),
        ({"trials": -1, "resume": True}, "at least one trial, got -1"),
        ({"objectives": ()}, "needs objectives"),
        ({"objectives": UTILITY * 2}, "each once; got utility, utility"),
        ({"resume": True}, "a study in memory cannot be resumed"),
    ],
)
def test_a_study_that_cannot_be_run_is_refused(how, message):
    with pytest.raises(StudyError, match=message):
        run(Measure(), **how)


def test_a_journal_and_a_storage_are_one_too_many(tmp_path):
    with pytest.raises(StudyError, match="a journal or to a storage, not to both"):
        run(journal=tmp_path / "j", storage="sqlite://")


def test_a_knob_that_does_nothing_is_refused_before_the_first_trial():
    measure = Measure()
    with pytest.raises(ConfigError, match="does nothing while"):
        run(measure, space_of(rag__rerank__minResults={"low": 0, "high": 3}))
    assert measure.calls == []


def test_a_fingerprint_may_not_hide_ours():
    with pytest.raises(ConfigError, match="already has seed"):
        run(fingerprint={"seed": 3})


# --- values by query ----------------------------------------------------------------------


def test_values_by_query_are_kept_for_distinct_trials():
    measure = Measure()
    result = run(measure, COARSE, trials=40)
    calls = len(measure.calls)
    rows = result.matrix([record.number for record in result.trials])
    assert rows.shape == (40, 3)
    assert len(measure.calls) == calls
    np.testing.assert_array_equal(rows[:, 0], [record.values[0] for record in result.trials])


def test_a_failed_trial_has_no_values_by_query():
    measure = Measure(broken=lambda c, utility: utility if c is BASE else nan)
    result = run(measure, trials=2, required=1)
    with pytest.raises(StudyError, match="trial 1 has no values: utility is nan"):
        result.per_query(1)
    with pytest.raises(StudyError, match="no finished trial 2"):
        result.per_query(2)


# --- records ------------------------------------------------------------------------------


def made(number, *values, feasible=True, params=None):
    return TrialRecord(
        number,
        {"rag.minScore": number / 100} if params is None else params,
        values,
        {},
        {"leak": 0.0 if feasible else 1.0},
        feasible,
        None,
        "complete" if values else "failed",
        0.0,
    )


def test_of_equal_trials_the_earliest_is_the_best():
    trials = [made(0, 0.1), made(1, 0.5), made(2, 0.5), made(3, 0.9, feasible=False), made(4)]
    trials[4] = trials[4]._replace(feasible=False)
    assert best(trials, UTILITY).number == 1
    assert best(trials, (Objective("x", "minimize"),)).number == 0
    assert best([], UTILITY) is None


def test_the_front_worked_by_hand():
    # utility up, characters down; 3 is beaten by 1, 4 is as good as 2, 5 leaks, 6 repeats 1
    values = [(0.1, 100), (0.5, 300), (0.9, 900), (0.4, 300), (0.9, 900)]
    trials = [made(number, *pair) for number, pair in enumerate(values)]
    trials.append(made(5, 1.0, 1, feasible=False))
    trials.append(made(6, 0.5, 300, params=trials[1].params))
    assert [record.number for record in pareto(marked(trials), TWO)] == [0, 1, 2, 4]


POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)


@given(POINTS)
def test_every_trial_is_on_the_front_or_beaten_by_one_on_it(points):
    trials = [made(number, *point) for number, point in enumerate(points)]
    front = pareto(trials, TWO)
    for record in trials:
        beaten = any(
            one.values[0] >= record.values[0]
            and one.values[1] <= record.values[1]
            and one.values != record.values
            for one in front
        )
        assert beaten != (record in front)


def test_duplicates_are_marked_by_number_whatever_the_order():
    one, two = {"rag.minScore": 0.1}, {"rag.minScore": 0.2}
    trials = marked([made(2, 1, params=one), made(0, 1, params=two), made(1, 1, params=one)])
    assert [record.duplicate_of for record in trials] == [None, None, 1]
    assert count(trials, 5) == (5, 3, 2, 1, 0, 0)
