"""A live system that delays, drops, answers 500 and half JSON; and one that behaves."""

import logging
import sys
from pathlib import Path

import pytest

from comis_eval.errors import RemoteError
from comis_eval.pipelines.remote import Answer, Failure, Remote
from comis_eval.pipelines.remote import jsonrpc as jsonrpc_module
from comis_eval.types import Filters, Tenancy, Turn
from tests.builders import NOW, memory, query
from tests.evaluation.world import settings, world
from tests.pipelines.remote.rpc_server import rpc

SERVER = Path(__file__).with_name("mcp_server.py")


def remote(queries=(), memories=None, rag=None, semantics=None, **changes) -> Remote:
    changes = {"timeoutMs": 5000, "backoffMs": 1} | changes
    config = settings(rag, harness={"remote": changes}, semantics=semantics or {})
    fields = {} if memories is None else {"memories": memories, "grades": {}}
    return Remote(world(queries=queries, **fields) if queries else world(), config)


def over_rpc(url: str, **changes):
    return remote(transport="jsonrpc", url=url, **changes)


def asked(pipeline: Remote, *texts: str):
    return pipeline.answers([query(text, f"q{n}") for n, text in enumerate(texts)]).of


def test_one_answer_over_json_rpc():
    with rpc() as server:
        pipeline = over_rpc(server.url, rag={"maxResults": 3, "minScore": 0.25})
        (one,) = asked(pipeline, "fine")
    assert isinstance(one, Answer)
    assert one.ids == ("b", "a")
    assert one.attempts == 1
    assert server.seen == [
        {
            "jsonrpc": "2.0",
            "method": "memory.search",
            "params": {
                "query": "fine",
                "limit": 3,
                "minScore": 0.25,
                "trustLevels": ["system", "learned"],
            },
            "id": 1,
        }
    ]


@pytest.mark.parametrize(
    "fault", ["drop", "half", "malformed", "deep", "500", "503", "429", "other"]
)
def test_a_fault_that_passes_is_tried_again(fault):
    with rpc() as server:
        (one,) = asked(over_rpc(server.url), f"once-{fault}")
        assert isinstance(one, Answer), one
        assert one.attempts == 2
        (stays,) = asked(over_rpc(server.url, retries=1), fault)
    assert isinstance(stays, Failure)
    assert stays.attempts == 2
    assert server.times[fault] == 2
    assert stays.reason.isprintable()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("401", "HTTP status 401: the server refuses the token"),
        ("404", "HTTP status 404"),
        ("302", "a redirect, which is not followed"),
        ("params", "error -32602: limit ␛[31mtoo large"),
    ],
)
def test_a_fault_that_stays_is_not_tried_again(fault, told):
    with rpc() as server:
        (one,) = asked(over_rpc(server.url), fault)
    assert isinstance(one, Failure)
    assert told in one.reason
    assert server.times[fault] == 1


def test_a_code_that_is_a_long_text_is_shown_in_short():
    with rpc() as server:
        (one,) = asked(over_rpc(server.url, retries=0), "code")
    assert isinstance(one, Failure)
    assert one.reason.isprintable()
    assert len(one.reason) < 100


def test_a_call_that_takes_too_long():
    with rpc() as server:
        late, fine = asked(over_rpc(server.url, timeoutMs=200, retries=0), "delay", "fine")
    assert late == Failure("no answer within 200 ms", 1) or "Timeout" in late.reason
    assert isinstance(fine, Answer), "one slow query does not fail the others"


def test_an_answer_without_end_is_not_read_to_it(monkeypatch):
    monkeypatch.setattr(jsonrpc_module, "MAX_ANSWER_BYTES", 100_000)
    with rpc() as server:
        (one,) = asked(over_rpc(server.url), "huge")
    assert one == Failure("the answer is longer than 100000 bytes", 1)


def test_an_older_server_is_asked_by_its_name_and_with_what_it_knows():
    with rpc("memory.search_files") as server:
        first, second = asked(over_rpc(server.url, concurrency=1), "fine", "fine too")
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert [request["method"] for request in server.seen] == [
        "memory.search", "memory.search_files", "memory.search_files",
    ]  # fmt: skip
    assert server.seen[-1]["params"] == {"query": "fine too", "limit": 5}


def test_never_more_calls_open_than_allowed():
    with rpc() as server:
        found = asked(over_rpc(server.url, concurrency=3), *[f"pause {n}" for n in range(20)])
    assert all(isinstance(one, Answer) for one in found)
    assert 1 < server.most_open <= 3


def test_the_token_is_sent_and_never_told(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("COMIS_EVAL_REMOTE_TOKEN", "t0psecret")
    with rpc() as server:
        pipeline = over_rpc(server.url)
        fine, failed = asked(pipeline, "fine", "401")
    assert server.tokens == {"Bearer t0psecret"}
    told = repr((fine, failed)) + caplog.text + repr(pipeline.config.to_tree())
    assert "t0psecret" not in told


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ünicode"])
def test_a_token_that_is_none_is_refused_without_being_told(monkeypatch, token):
    monkeypatch.setenv("COMIS_EVAL_REMOTE_TOKEN", token)
    with pytest.raises(RemoteError, match="holds characters that no bearer token has") as error:
        asked(over_rpc("http://127.0.0.1:9/rpc"), "fine")
    assert token not in str(error.value)


def test_a_token_does_not_travel_in_clear_text(monkeypatch):
    monkeypatch.setenv("COMIS_EVAL_REMOTE_TOKEN", "t")
    with pytest.raises(RemoteError, match="would travel in clear text"):
        asked(over_rpc("http://comis.example/rpc"), "fine")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "harness.remote.transport is not set"),
        ({"transport": "jsonrpc"}, "harness.remote.url is not set"),
        ({"transport": "http", "url": "ftp://x/"}, "must be an http or https address"),
        ({"transport": "http", "url": "http://u:p@x/"}, r"\*\*\*@x/' holds credentials"),
        ({"transport": "stdio"}, "harness.remote.command is not set"),
        ({"transport": "stdio", "command": ["/no/such/program"]}, "no MCP server there"),
        ({"transport": "http", "url": "http://127.0.0.1:9/mcp"}, "no MCP server there"),
    ],
)
def test_settings_that_lead_nowhere(changes, told):
    with pytest.raises(RemoteError, match=told):
        asked(remote(**changes), "fine")


def test_nothing_listens_there():
    (one,) = asked(over_rpc("http://127.0.0.1:9/rpc", retries=0), "fine")
    assert isinstance(one, Failure)
    assert "ConnectError" in one.reason


# --- what is sent ------------------------------------------------------------------------


def test_turns_go_to_memory_recall_and_not_to_a_tool():
    turned = query("and now?", turns=(Turn("user", "the kiln"),))
    over = over_rpc("http://127.0.0.1:9/")
    assert over.arguments(turned)["query"] == "and now?\nthe kiln"
    shipped = over_rpc("http://127.0.0.1:9/", semantics={"preset": "production"})
    assert shipped.arguments(turned)["query"] == "and now?"
    assert remote(transport="stdio").arguments(turned) == {"query": "and now?"}


def test_the_template_is_filled_once_and_wins():
    template = {
        "q": "about {query}",
        "who": {"tenant": "{tenantId}", "agent": ["{agentId}"]},
        "at": "{now}",
        "limit": 7,
        "plain": "{other} {}",
    }
    filters = Filters(tags=("x",), parameters={"limit": 3, "scope": "agent", "tags_any": ("y",)})
    asked_ = query("{now} {tenantId}", tenancy=Tenancy("t", "a"), now=NOW, filters=filters)
    sent = remote(transport="stdio", queryArgument="text", arguments=template).arguments(asked_)
    assert sent == {
        "text": "{now} {tenantId}",
        "q": "about {now} {tenantId}",
        "who": {"tenant": "t", "agent": ["a"]},
        "at": "2026-05-28T20:26:40.000Z",
        "limit": 7,
        "plain": "{other} {}",
        "scope": "agent",
        "tags": ["x"],
        "tags_any": ["y"],
    }
    silent = remote(transport="stdio", sendFilters=False).arguments(asked_)
    assert silent == {"query": "{now} {tenantId}"}


# --- what comes back ---------------------------------------------------------------------


def test_ids_become_rows_and_unknown_ones_stay_in_their_place():
    pipeline = remote(transport="stdio")
    answers = [Answer(("w", "nobody", "a"), (1, 1, 1), 1.0, 1), Failure("gone", 1)]
    rows = pipeline.rows([query("x"), query("y")], type("A", (), {"of": tuple(answers)})())
    assert rows.tolist() == [[2, -1, 0], [-1, -1, -1]]


def test_keys_are_looked_up_in_the_query_s_tenant():
    memories = (
        memory("one", key="door", tenancy=Tenancy("t", "a"), created_at=1),
        memory("two", key="door", tenancy=Tenancy("t", "b"), created_at=2),
        memory("three", key="door", tenancy=Tenancy("u", "a")),
        memory("four"),
    )
    pipeline = remote((query("x"),), memories, transport="stdio", match="key")

    def row(tenancy: Tenancy, key: str) -> int:
        answers = type("A", (), {"of": (Answer((key,), (1,), 1.0, 1),)})()
        return int(pipeline.rows([query("x", tenancy=tenancy)], answers)[0, 0])

    assert row(Tenancy("t", "a"), "door") == 0, "one's own"
    assert row(Tenancy("t", "c"), "door") == 1, "else the newest"
    assert row(Tenancy("u", "a"), "door") == 2
    assert row(Tenancy("v", "a"), "door") == -1
    from comis_eval.store.loading import key_of

    assert row(Tenancy(), key_of("four")) == 3, "a key that loading makes"


# --- an MCP server -----------------------------------------------------------------------


def over_stdio(*arguments: str, **changes) -> Remote:
    command = [sys.executable, str(SERVER), *arguments]
    return remote(transport="stdio", command=command, **changes)


def test_a_tool_of_a_server_that_is_started_here():
    fine, refused, alien = asked(over_stdio(), "fine", "refuse this", "alien")
    assert isinstance(fine, Answer)
    assert fine.ids == ("b", "a")
    assert isinstance(refused, Failure)
    assert refused.attempts == 1
    assert "allowed is 1..50 ␛[31m" in refused.reason
    assert isinstance(alien, Answer)
    assert alien.ids == ("b", "from elsewhere")


def test_arguments_that_the_tool_does_not_take_are_its_refusal():
    (one,) = asked(over_stdio(arguments={"limit": "many"}), "fine")
    assert isinstance(one, Failure)
    assert "limit" in one.reason


def test_json_in_a_text_is_read_and_other_text_is_not():
    fine, mangled = asked(over_stdio(tool="text_only", retries=0), "fine", "mangled")
    assert isinstance(fine, Answer)
    assert fine.ids == ("a",)
    assert isinstance(mangled, Failure)
    assert "not JSON: not {json" in mangled.reason


def test_a_server_that_dies_is_started_again():
    texts = ["fine one", "die", "fine two", "fine three"]
    found = asked(over_stdio(concurrency=1, retries=1), *texts)
    assert [isinstance(one, Answer) for one in found] == [True, False, True, True]
    assert isinstance(found[1], Failure)
    assert found[1].attempts == 2
    assert "gone" in found[1].reason


@pytest.mark.slow  # the same patience covers starting the program, which takes seconds when busy
def test_a_slow_tool_is_given_up():
    (one,) = asked(over_stdio(timeoutMs=8000, retries=0), "slow")
    assert isinstance(one, Failure)
    assert "8000 ms" in one.reason


def test_no_token_reaches_a_program(monkeypatch):
    monkeypatch.setenv("COMIS_EVAL_REMOTE_TOKEN", "t0psecret")
    (one,) = asked(over_stdio(), "token")
    assert isinstance(one, Answer)
    assert one.ids == ("none",)


def test_what_a_server_that_cannot_start_wrote_is_told():
    with pytest.raises(RemoteError, match=r"no database ␛\[31mthere"):
        asked(over_stdio("broken"), "fine")


def test_a_program_that_says_nothing_is_given_up():
    with pytest.raises(RemoteError, match="did not answer within 500 ms"):
        asked(remote(transport="stdio", command=["sleep", "30"], timeoutMs=500), "fine")


def test_a_tool_that_is_not_there():
    told = r"no tool 'recal'; it has recall, text_only; set harness.remote.tool did you mean recall"
    with pytest.raises(RemoteError, match=told):
        asked(over_stdio(tool="recal"), "fine")
