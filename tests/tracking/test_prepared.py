import json
from math import inf, nan

from comis_eval.tracking.prepared import LONG_VALUES, NOT_LOGGED, prepared


def test_what_has_no_finite_value_is_left_out_and_said():
    told = prepared({}, {"a@1": nan, "b": inf, "c": None, "d": -inf, "e": 0}, {})
    assert told.metrics == {"e": 0.0}
    assert told.not_finite == 4
    assert json.loads(told.tags[NOT_LOGGED]) == {
        "a@1": "undefined",
        "b": "infinite",
        "c": "undefined",
        "d": "minus infinite",
    }


def test_params_are_written_so_that_they_read_back():
    told = prepared({"x": 0.1, "on": True, "none": None, "n": 3, "kind": "rrf"}, {}, {})
    assert told.params == {"x": "0.1", "on": "true", "none": "null", "n": "3", "kind": "rrf"}


def test_long_values_are_set_aside_whole():
    long, longer = "p" * 6001, "t" * 8001
    told = prepared({"p": long, "q": "p" * 6000}, {}, {"t@1": longer, "u": "t" * 8000})
    assert told.long == {"p": long, "t@1": longer}
    assert LONG_VALUES in told.params["p"]
    assert LONG_VALUES in told.tags["t_at_1"]
    assert told.params["q"] == "p" * 6000
    assert told.tags["u"] == "t" * 8000


def test_only_names_mlflow_does_not_take_are_listed():
    told = prepared({"rag.k": 1}, {"recall@5": 0.5}, {"semantics": "documented"})
    assert told.names == {"recall@5": "recall_at_5"}


def test_text_that_no_database_takes_is_made_visible():
    told = prepared({"p": "a\x00b\ud800"}, {}, {"note": "one\ntwo\x1b[31m"})
    assert told.params == {"p": "a\u2400b\\u{d800}"}
    assert told.tags == {"note": "one\ntwo\u241b[31m"}
