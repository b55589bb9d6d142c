"""What a write may say, and durations as Go writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.errors import RequestError
from comis_eval.stages.recall_tool.duration import milliseconds
from comis_eval.stages.recall_tool.writing import WRITTEN, writing_of
from tests.builders import NOW

HOUR = 3_600_000
SAID = {"key": "kk", "content": "a note"}


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("72h", 72 * HOUR),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        (".5s", 500),
        ("1.s", 1_000),
        ("+2m", 120_000),
        ("-2m", -120_000),
        ("1ms1us1ns", Fraction(1_001_001, 1_000_000)),
        ("3µs", Fraction(3, 1_000)),  # micro sign
        ("3μs", Fraction(3, 1_000)),  # Greek letter
        ("0", 0),
        ("2562047h47m16s", 2_562_047 * HOUR + 47 * 60_000 + 16_000),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text, ms):
    assert milliseconds(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", "72", "h", ".h", "1d", "1 h", "1h ", "--1h", "1H", "1e3s", "٣h", "2562048h", "1h" * 101],
)
def test_what_go_does_not_take_is_no_duration(text):
    assert milliseconds(text) is None


@given(st.integers(0, 2_000_000), st.integers(0, 59), st.integers(0, 59))
def test_parts_of_a_duration_add_up(hours, minutes, seconds):
    expected = ((hours * 60 + minutes) * 60 + seconds) * 1_000
    assert milliseconds(f"{hours}h{minutes}m{seconds}s") == expected
    assert milliseconds(f"-{hours}h{minutes}m{seconds}s") == -expected


@given(st.text(max_size=12))
def test_no_text_breaks_the_reader_of_durations(text):
    found = milliseconds(text)
    assert found is None or abs(found) < 2**63


def test_what_a_write_leaves_open():
    said = writing_of(SAID, NOW)
    assert (said.scope, said.project_id, said.tags) == ("project", None, ())
    assert (said.relevance, said.importance, said.expires_at) == (1.0, None, None)
    assert (said.expected_version, said.reason) == (None, None)
    assert writing_of({**SAID, **dict.fromkeys(WRITTEN[2:])}, NOW) == said  # null is silence


def test_zero_is_silence_where_it_cannot_be_stored():
    said = writing_of({**SAID, "relevance": 0, "importance_score": 0, "expected_version": 0}, NOW)
    assert (said.relevance, said.importance, said.expected_version) == (1.0, None, None)


@pytest.mark.parametrize("scope", ["workspace", "agent"])
def test_only_rows_of_project_scope_have_a_project(scope):
    assert writing_of({**SAID, "scope": scope, "project_id": "p"}, NOW).project_id is None
    assert writing_of({**SAID, "project_id": "p"}, NOW).project_id == "p"


@pytest.mark.parametrize(
    ("given", "expires_at"),
    [("72h", NOW + 72 * HOUR), ("1ns", NOW + 1), ("2030-01-01T00:00:00Z", 1_893_456_000_000)],
)
def test_an_expiry_is_a_moment_or_a_duration(given, expires_at):
    assert writing_of({**SAID, "expires_at": given}, NOW).expires_at == expires_at


FUTURE = r"expires_at is '{}'; it must be in the future"
FORM = r"expires_at is .*; it must be RFC 3339, such as 2026-05-28T12:00:00Z, or a duration"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"key": None}, "key is required"),
        ({"content": None}, "content is required"),
        ({"content": " \n"}, "content is required; it is blank"),
        ({"key": ""}, "key is ''; it must be text that is not empty"),
        ({"key": "project:mesh"}, "key is 'project:mesh'; a key is two or more of a-z"),
        ({"key": "Kiln"}, "key is 'Kiln'; a key is"),
        ({"key": "k"}, "key is 'k'; a key is"),
        ({"key": "kiln-"}, "key is 'kiln-'; a key is"),
        ({"relevance": 1.5}, r"relevance is 1.5; it must be a number in \[0, 1\]"),
        ({"relevance": float("nan")}, r"relevance is .nan; it must be a number in \[0, 1\]"),
        ({"importance_score": -1}, r"importance_score is -1; it must be a number in \[0, 1\]"),
        ({"tags": ["t"] * 21}, "tags cannot be taken: there are 21 tags; at most 20"),
        ({"tags": ["é" * 33]}, "has 66 bytes; a tag has at most 64"),
        ({"tags": "t"}, "tags is 't'; it must be a list of tags"),
        ({"scope": "all"}, "scope is 'all'; it must be one of workspace, project, agent"),
        ({"expires_at": "-1h"}, FUTURE.format("-1h")),
        ({"expires_at": "0"}, FUTURE.format("0")),
        ({"expires_at": "2020-01-01T00:00:00Z"}, FUTURE.format("2020-01-01T00:00:00Z")),
        ({"expires_at": "tomorrow"}, FORM),
        ({"expires_at": 5}, FORM),
        ({"expected_version": -1}, "expected_version is -1; it must be an integer in"),
        ({"agent_id": "she"}, "'agent_id' is no argument"),
        ({"created_by": "she"}, "'created_by' is no argument"),
    ],
)
def test_what_is_not_allowed_is_refused_and_what_is_allowed_told(said, why):
    with pytest.raises(RequestError, match=why):
        writing_of({**SAID, **said}, NOW)


def test_all_faults_are_told_at_once_in_the_order_of_the_checks():
    said = {"expires_at": "never", "tags": ["t"] * 21, "relevance": 2, "key": "K"}
    with pytest.raises(RequestError) as refused:
        writing_of(said, NOW)
    places = [str(refused.value).index(name) for name in ("key is", "content is", "relevance is",
              "tags cannot", "expires_at is")]  # fmt: skip
    assert places == sorted(places)
