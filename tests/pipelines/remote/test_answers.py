"""Reading an answer: where the results are, what each is, and what is no answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.pipelines.remote.answers import (
    MAX_RESULTS,
    Answer,
    Answers,
    Failure,
    MalformedError,
    read,
)
from tests.cli.world import is_tame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("payload", "field", "id_field"),
    [
        ([{"id": "a"}, {"id": "b"}], None, "id"),
        ({"results": [{"id": "a"}, {"id": "b"}]}, None, "id"),
        ({"items": [{"id": "a"}, {"id": "b"}], "tags": []}, None, "id"),
        ({"x": {"y": [{"id": "a"}, {"id": "b"}]}, "z": [1]}, "x.y", "id"),
        ([{"memory": {"key": "a"}}, {"memory": {"key": "b"}}], None, "memory.key"),
    ],
)
def test_where_results_and_ids_are(payload, field, id_field):
    assert read(payload, results_field=field, id_field=id_field).ids == ("a", "b")


def test_an_integer_id_is_told_as_text_and_an_empty_list_is_an_answer():
    assert read([{"id": 7}], results_field=None, id_field="id").ids == ("7",)
    assert read({"items": [], "total": 0}, results_field=None, id_field="id").ids == ()


def test_a_result_is_as_long_as_its_json():
    row = {"id": "a", "content": "ünï"}
    found = read([row], results_field=None, id_field="id")
    assert found.chars == (len(json.dumps(row, ensure_ascii=False)),)


@pytest.mark.parametrize(
    ("payload", "field", "told"),
    [
        ("text", None, "no list (it is str)"),
        (None, None, "no list (it is null)"),
        ({"a": 1}, None, "no list (its fields: a)"),
        ({"a": [1], "b": [2]}, None, "several lists (its fields: a, b)"),
        ({"a": [{"id": "1"}]}, "b", "no list at 'b'"),
        ([{"key": "a"}], None, "result 1 has no id at 'id' (its fields: key)"),
        (["a"], None, "result 1 has no id at 'id' (it is str)"),
        ([{"id": True}], None, "result 1 has no id"),
        ([{"id": ""}], None, "result 1 has no id"),
        ([{"id": 1.5}], None, "result 1 has no id"),
        ([{"id": "a"}, {"id": "b"}, {"id": "a"}], None, "'a' is result 1 and again 3"),
        ([{"id": n} for n in range(MAX_RESULTS + 1)], None, f"more than {MAX_RESULTS}"),
        ({"\x1b[31m": [], "b": []}, None, "␛[31m"),
    ],
)
def test_what_is_no_answer(payload, field, told):
    with pytest.raises(MalformedError) as error:
        read(payload, results_field=field, id_field="id")
    assert told in str(error.value)


@given(JSON)
def test_any_json_is_read_or_named(payload):
    try:
        found = read(payload, results_field=None, id_field="id")
    except MalformedError as error:
        told = str(error)
    else:
        told = ""
        assert len(found.ids) == len(set(found.ids)) == len(found.chars)
    assert is_tame(told)


def test_a_result_too_deep_to_be_written_is_no_answer():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(MalformedError, match="nested too deep"):
        read([{"id": "a", "x": deep}], results_field=None, id_field="id")


def test_failures_by_reason_and_latency_of_the_answered():
    answers = Answers(
        (
            Answer((), (), 10.0, 1),
            Failure("slow", 3),
            Answer((), (), 30.0, 2),
            Failure("slow", 3),
            Failure("gone", 1),
        )
    )
    assert answers.failures == {"slow": [1, 3], "gone": [4]}
    assert answers.latency() == {"p50": 20.0, "p95": 29.0, "p99": pytest.approx(29.8)}
    assert Answers((Failure("slow", 1),)).latency() is None
