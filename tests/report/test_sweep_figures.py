"""The data behind the figures of a sweep, and what a study folder may hold."""

import json
from math import isnan

import pytest

from comis_eval.errors import EvaluationError
from comis_eval.report.drawing import NARROW, WIDE
from comis_eval.report.flat import current_values, flat, searched
from comis_eval.report.gains import gains
from comis_eval.report.history import history
from comis_eval.report.importance import importance
from comis_eval.report.pareto import pareto
from comis_eval.report.study import read_study
from tests.report.build import RESULT, TRIALS, study


@pytest.fixture
def tiny(tmp_path):
    return read_study(study(tmp_path / "study"))


def test_the_best_so_far_is_of_feasible_trials_alone(tiny):
    found = history(tiny)
    assert [(s.number, s.value, s.feasible, s.best) for s in found.steps] == [
        (0, 0.5, True, 0.5), (1, 0.6, True, 0.6), (2, 0.9, False, 0.6), (4, 0.6, True, 0.6),
    ]  # fmt: skip
    assert found.current == 0.5
    assert found.luck == pytest.approx(0.55)
    assert found.failed == 1


def test_less_is_better_turns_the_search(tmp_path):
    told = read_study(study(tmp_path / "s", objectives=["context_chars"], pareto=None))
    found = history(told)
    assert [s.best for s in found.steps] == [900, 500, 500, 500]
    assert found.luck == pytest.approx(899.95)


def test_without_a_floor_luck_is_unknown(tmp_path):
    assert isnan(history(read_study(study(tmp_path / "s", floor=None))).luck)


def test_before_the_first_feasible_trial_there_is_no_best(tmp_path):
    trials = {**TRIALS, "feasible": [False, True, False, False, True]}
    steps = history(read_study(study(tmp_path / "s", trials=trials))).steps
    assert isnan(steps[0].best)
    assert steps[1].best == 0.6


def test_importances_are_the_largest_first(tiny):
    assert importance(tiny).shares == (("rag.maxResults", 0.75), ("rag.minScore", 0.25))


def test_flat_regions_lie_in_what_was_searched(tiny):
    found = flat(tiny)
    results, score = found.regions
    assert (results.knob, results.flat_low, results.flat_high) == ("rag.maxResults", 2, 6)
    assert (results.current, results.winner) == (5, 3)
    assert [results.share(v) for v in (1, 6, 11)] == pytest.approx([0, 0.5, 1])
    assert [score.share(v) for v in (0.01, 0.1, 1.0)] == pytest.approx([0, 0.5, 1])  # log
    assert found.options == (("rag.rerank.enabled", (True,), False, True),)


def test_what_was_searched_is_told_in_words(tiny):
    assert searched(tiny) == {
        "rag.maxResults": "1 to 11",
        "rag.minScore": "0.01 to 1, log",
        "rag.rerank.enabled": "False, True",
    }
    assert current_values(tiny)["rag.maxResults"] == 5


def test_the_front_is_told_from_the_rest_and_repeats_stand_once(tiny):
    (found,) = pareto(tiny)
    assert found.objectives == ("utility", "context_chars")
    assert [(t.number, t.quality, t.cost, t.front) for t in found.trades] == [
        (0, 0.5, 900, False), (1, 0.6, 500, True),
    ]  # fmt: skip
    assert found.current.number == 0
    assert found.winner.number == 1


def test_one_objective_has_no_front(tmp_path):
    assert pareto(read_study(study(tmp_path / "s", objectives=["utility"]))) == ()


def test_gains_are_winner_minus_current(tiny):
    x, y = gains(tiny).changes
    assert (x.gain, x.low, x.high) == pytest.approx((0.2, 0.1, 0.3))
    assert y.gain == pytest.approx(-0.1)
    looks = [m.role for m in gains(tiny).draw().marks if type(m).__name__ == "Dot"]
    assert looks == ["good", "muted"]


def test_what_was_not_measured_is_none(tmp_path):
    gone = ("flat", "per_category", "importances", "pareto", "floor", "winner", "best")
    bare = read_study(study(tmp_path / "s", trials=None, **dict.fromkeys(gone)))
    assert [history(bare), importance(bare), flat(bare), gains(bare)] == [None] * 4
    assert pareto(bare) == ()
    assert current_values(bare) == {}


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_figure_can_be_drawn_at_both_widths(tiny, width):
    for figure in (history(tiny), importance(tiny), flat(tiny), gains(tiny), *pareto(tiny)):
        drawing = figure.draw(width)
        assert drawing.marks
        assert drawing.description


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format is 2; this version reads 1"),
        ({"study": 7}, r"study: Input should be a valid string"),
        ({"winner": {"number": "1"}}, r"winner\.number: Input should be a valid integer"),
        ({"importances": {"k": "much"}}, r"importances\.k: Input should be a valid number"),
        ({"flat": {"k": []}}, r"flat\.k: Value error, holds no value"),
        ({"floor": {"mean": 0.1, "percentile_95": 1, "n_trials": 0.5}}, r"floor\.n_trials"),
    ],
)
def test_a_result_that_is_not_one_is_refused_by_its_key(changes, message, tmp_path):
    with pytest.raises(EvaluationError, match=message):
        read_study(study(tmp_path / "s", **changes))


def test_every_fault_is_named_at_once(tmp_path):
    with pytest.raises(EvaluationError, match=r"(?s)seed: .*; sampler: "):
        read_study(study(tmp_path / "s", seed="x", sampler=3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a whole result"),
        ("[]", "format is 'list'"),
        ('{"format": 1, "study": "s", "seed": NaN}', "seed"),
        ("[" * 100_000, "not a whole result"),
    ],
)
def test_a_damaged_result_is_refused(content, message, tmp_path):
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(EvaluationError, match=message):
        read_study(tmp_path)


def test_a_folder_without_a_result_says_what_to_do(tmp_path):
    with pytest.raises(EvaluationError, match="--resume"):
        read_study(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": [0, 1, 2, 3, 3]}, "none of them twice"),
        ({"number": ["a", "b", "c", "d", "e"]}, "whole number a trial"),
        ({"utility": ["a"] * 5}, "utility"),
        ({"state": None}, "state"),
    ],
)
def test_trials_that_are_none_are_refused(changes, message, tmp_path):
    trials = {key: column for key, column in {**TRIALS, **changes}.items() if column is not None}
    with pytest.raises(EvaluationError, match=f"trials.parquet: not the trials.*{message}"):
        read_study(study(tmp_path / "s", trials=trials))


def test_trials_that_are_no_parquet_are_refused(tmp_path):
    folder = study(tmp_path / "s", trials=None)
    (folder / "trials.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(EvaluationError, match="not the trials of a study"):
        read_study(folder)


def test_keys_of_a_later_version_do_no_harm(tmp_path):
    told = read_study(study(tmp_path / "s", later={"more": 1}))
    assert told.result.study == "tiny-1"
    assert json.loads((tmp_path / "s" / "result.json").read_text())["format"] == RESULT["format"]
