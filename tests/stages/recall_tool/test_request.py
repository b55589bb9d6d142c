"""One call's arguments: what fills silence, and what is refused."""

import pytest

from comis_eval.config import RecallToolConfig
from comis_eval.errors import RequestError
from comis_eval.stages.recall_tool.request import PARAMETERS, request_of
from tests.builders import NOW

OVER_TIME = "what pattern do we see"
LOOK_UP = "set MY_TOKEN now"


def of(query="kiln", **arguments):
    return request_of({"query": query, **arguments}, RecallToolConfig())


def test_the_arguments_are_those_of_the_description():
    assert PARAMETERS == (
        "query", "limit", "offset", "full", "tags", "tags_any", "scope", "project_id",
        "created_by", "since", "until", "relevance_min", "min_importance", "order_by",
        "recall_profile", "apply_recency_decay", "include_expired", "include_archived",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("query", "arguments", "limit"),
    [
        ("kiln", {}, 5),
        ("kiln", {"full": True}, 10),
        ("kiln", {"recall_profile": "default"}, 10),
        (LOOK_UP, {}, 5),
        (LOOK_UP, {"recall_profile": "factual"}, 10),
        (OVER_TIME, {}, 20),
        ("kiln", {"recall_profile": "multi-session"}, 20),
        (OVER_TIME, {"full": True}, 20),
        (OVER_TIME, {"limit": None}, 20),
        *((OVER_TIME, {"limit": n}, n) for n in (1, 6, 10, 40, 50)),
    ],
)
def test_the_limit_is_the_callers_then_the_profiles_then_the_forms(query, arguments, limit):
    assert of(query, **arguments).limit == limit


def test_explicit_arguments_beat_a_profile():
    plain = of(LOOK_UP)
    assert (plain.min_importance, plain.order_by) == (0.5, "relevance:desc")
    said = of(LOOK_UP, min_importance=0.3, order_by="created_at:asc")
    assert (said.min_importance, said.order_by) == (0.3, "created_at:asc")
    assert of(LOOK_UP, min_importance=0).min_importance == 0
    assert of(OVER_TIME).min_importance == 0.2
    assert of(OVER_TIME).include_superseded
    assert of("kiln").min_importance == 0.3


@pytest.mark.parametrize(
    ("given", "meant", "decay"),
    [
        (None, None, False),
        ("created_at", "created_at:desc", False),
        ("relevance", "relevance:desc", False),
        ("decayed_relevance", "decayed_relevance:desc", True),
        ("decayed_relevance:desc", "decayed_relevance:desc", True),
    ],
)
def test_orders_are_spelled_in_one_way_and_decayed_relevance_decays(given, meant, decay):
    request = of(order_by=given)
    assert (request.order_by, request.decay) == (meant, decay)


def test_a_query_about_days_does_not_switch_decay_on():
    assert not of("how many days ago did I attend the class").decay


def test_scope_all_and_null_ask_for_nothing():
    nothing = dict.fromkeys(PARAMETERS[1:])
    assert of(**nothing) == of(scope="all") == of()


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("2026-05-28T20:26:40Z", NOW, NOW),
        ("2026-05-28T20:26:40.000Z", NOW, NOW),
        ("2026-05-28T22:26:40+02:00", NOW, NOW),
        ("2026-05-28t20:26:40.0004z", NOW + 1, NOW),
        ("2026-05-28T20:26:39.9996Z", NOW, NOW - 1),
    ],
)
def test_times_are_rfc_3339_and_lose_no_precision_outwards(text, since, until):
    request = of(since=text, until=text)
    assert (request.since, request.until) == (since, until)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, r"limit is 0; it must be an integer in \[1, 50\]"),
        ({"limit": 51}, r"limit is 51; it must be an integer in \[1, 50\]"),
        ({"limit": True}, "limit is true"),
        ({"limit": 5.0}, "limit is 5.0"),
        ({"offset": -1}, r"offset is -1; it must be an integer in \[0, "),
        ({"scope": "team"}, "scope is 'team'; it must be one of workspace, project, agent, all"),
        ({"recall_profile": "MULTI-SESSION"}, "one of multi-session, factual, default"),
        ({"order_by": "relevance:asc"}, "created_at:desc, created_at:asc, relevance:desc, dec"),
        ({"order_by": ""}, "order_by is ''"),
        ({"since": "2026-05-28"}, "since is '2026-05-28'; it must be RFC 3339, such as"),
        ({"until": "2026-02-30T00:00:00Z"}, "until is '2026-02-30T00:00:00Z'"),
        ({"relevance_min": 1.01}, r"relevance_min is 1.01; it must be a number in \[0, 1\]"),
        ({"min_importance": float("nan")}, "min_importance is .nan"),
        ({"tags": "red"}, "tags is 'red'; it must be a list of tags"),
        ({"tags_any": [1]}, "tags_any holds 1"),
        ({"full": "yes"}, "full is 'yes'; it must be true or false"),
        ({"project_id": ""}, "project_id is ''"),
        ({"limits": 3}, "'limits' is no argument; did you mean limit"),
        ({"query": " "}, "query is required"),
        ({"query": None}, "query is required"),
        ({"query": 3}, "query is 3; it must be text"),
    ],
)
def test_what_is_not_allowed_is_refused_in_words_that_say_what_is(arguments, message):
    with pytest.raises(RequestError, match=message):
        of(**arguments)


def test_all_faults_are_told_at_once():
    with pytest.raises(RequestError, match=r"limit is 99.*; offset is -2"):
        of(limit=99, offset=-2)
