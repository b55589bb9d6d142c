import json
from math import nan
from pathlib import Path

import numpy as np
import pytest

from comis_eval.errors import ConfigError
from comis_eval.tracking import Point
from comis_eval.tracking.records import as_json, best, parent_of, run_of, top_of
from tests.tracking.make import run, sweep


@pytest.mark.parametrize(("which", "top"), [("all", None), ("none", 0), ("top:7", 7)])
def test_which_runs_are_logged_is_read(which, top):
    assert top_of(which) == top


@pytest.mark.parametrize("which", ["top", "top:0", "top:-1", "top:1.5", "ALL", ""])
def test_another_choice_of_runs_is_refused(which):
    with pytest.raises(ConfigError, match="all, top:N with N >= 1, or none"):
        top_of(which)


def test_the_best_are_chosen_by_score_earlier_first_and_kept_in_order():
    scores = [0.5, 0.9, None, 0.9, 0.1, nan]
    runs = [run(n, score=score, always=n == 4) for n, score in enumerate(scores)]
    assert [r.key for r in best(runs, 2)] == ["1", "3", "4"]
    assert [r.key for r in best(runs, 5)] == ["0", "1", "2", "3", "4"]
    assert best(runs, 0) == []


def test_records_survive_json():
    given = run(1, metrics={"a": nan, "b": None, "c": np.float32(0.5), "d": np.int64(3)})
    back = run_of(json.loads(json.dumps(as_json(given))))
    assert back.metrics["b"] is None
    assert np.isnan(back.metrics["a"])
    assert (back.metrics["c"], back.metrics["d"]) == (0.5, 3)
    parent = sweep(artifacts={"rag.yaml": Path("/a/b")}, curves={"c": [Point(0, 0.5, 1)]})
    assert parent_of(json.loads(json.dumps(as_json(parent)))) == parent


def test_only_plain_values_are_tracked():
    with pytest.raises(TypeError, match="only numbers, strings and paths are tracked, got object"):
        as_json(run(1, params={"p": object()}))


def test_a_key_must_tell_runs_apart():
    with pytest.raises(ValueError, match="needs a key"):
        run(1, key="")
    with pytest.raises(ValueError, match="letters, digits"):
        sweep(key="a' OR '1'='1")
