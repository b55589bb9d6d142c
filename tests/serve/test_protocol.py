"""The SDK's own client over both transports: standard streams and streamable HTTP."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import comis_eval.serve.tools as described
from comis_eval.config import ORDERS, RecallToolConfig
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.serve.desk import Desk
from comis_eval.serve.http import application, listening, url_of
from comis_eval.serve.memories import ServedMemories
from comis_eval.serve.tools import tools
from comis_eval.stages.recall_tool.request import PARAMETERS, SCOPES
from comis_eval.stages.recall_tool.writing import WRITTEN
from tests.pipelines.recall_tool.world import ME, SHE, WordEmbedder, asked
from tests.serve.world import HERS, HOSTILE, dataset, setup, written

TOKENS = {"token-of-me-0123456789": ME, "token-of-she-0123456789": SHE}
MINE, HIS = TOKENS


@asynccontextmanager
async def http(*, writable: bool = True, memories=None) -> AsyncIterator[str]:
    """A server in this process; gives its address."""
    opened = memories or (lambda: ServedMemories.of_dataset(dataset(), setup(writable=writable)))
    desk = Desk(opened)
    offered = tools(RecallToolConfig(), writable=writable, kept=False)
    with listening(0) as bound:
        app = application(desk, offered, TOKENS, port=bound.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        async with desk:
            running = asyncio.create_task(server._serve([bound]))
            while not server.started:
                await asyncio.sleep(0.01)
            try:
                yield url_of(bound)
            finally:
                server.should_exit = True
                await running


def test_a_port_is_ours_before_anybody_is_told_of_it():
    with listening(0) as bound, socket.create_connection(bound.getsockname(), timeout=5):
        pass


@asynccontextmanager
async def client_of(url: str, token: str = MINE, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as wire,
        Client(streamable_http_client(url, http_client=wire), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_http(_: str, mode: str) -> AsyncIterator[Client]:
    async with http() as url, client_of(url, mode=mode) as client:
        yield client


@asynccontextmanager
async def over_stdio(folder: str, mode: str) -> AsyncIterator[Client]:
    arguments = [
        "-m", "comis_eval", "serve-mcp", folder, "--lanes", "fts", "--agent", "me",
        "--no-cache", "--writable",
    ]  # fmt: skip
    started = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    async with Client(started, mode=mode) as client:
        yield client


class Caller:
    """A connected client whose calls may be made from a test without a loop."""

    def __init__(self, portal, client: Client) -> None:
        self._portal, self._client = portal, client

    def tools(self) -> dict[str, Any]:
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool for tool in listed.tools}

    def __call__(self, name: str, **arguments: Any) -> Any:
        return self._portal.call(self._client.call_tool, name, arguments)

    def together(self, *calls: tuple[str, Mapping[str, Any]]) -> list[Any]:
        async def all_at_once():
            return await asyncio.gather(*(self._client.call_tool(n, dict(a)) for n, a in calls))

        return self._portal.call(all_at_once)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return written(tmp_path_factory.mktemp("served"))


WAYS = {
    "stdio": (over_stdio, "auto"),
    "http": (over_http, "auto"),
    "http, older protocol": (over_http, "legacy"),
}


@pytest.fixture(scope="module", params=WAYS)
def call(request, folder) -> Iterator[Caller]:
    connect, mode = WAYS[request.param]
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(connect(folder, mode)) as client,
    ):
        yield Caller(portal, client)


def refusal(result) -> str:
    assert result.is_error
    assert result.structured_content is None
    (told,) = result.content
    return told.text


# --- what is offered --------------------------------------------------------------------------


def test_recalls_schema_has_exactly_the_descriptions_parameters(call):
    schema = call.tools()["recall"].input_schema
    assert set(schema["properties"]) == set(PARAMETERS)
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    defaults = {n: p["default"] for n, p in schema["properties"].items() if "default" in p}
    assert defaults == {
        "offset": 0, "full": False, "tags": [], "tags_any": [], "scope": "all",
        "relevance_min": 0, "min_importance": 0.3, "apply_recency_decay": False,
        "include_expired": False, "include_archived": False,
    }  # fmt: skip
    properties = schema["properties"]
    assert (properties["limit"]["minimum"], properties["limit"]["maximum"]) == (1, 50)
    assert properties["order_by"]["enum"] == list(ORDERS)
    assert properties["scope"]["enum"] == list(SCOPES)
    assert properties["recall_profile"]["enum"] == ["multi-session", "factual", "default"]


def test_the_four_tools_are_described(call):
    offered = call.tools()
    assert list(offered) == ["recall", "get_memory", "get_project_knowledge", "remember"]
    assert set(offered["remember"].input_schema["properties"]) == set(WRITTEN)
    assert offered["remember"].input_schema["required"] == ["key", "content"]
    assert offered["get_memory"].input_schema["required"] == ["key"]
    assert offered["get_project_knowledge"].input_schema["required"] == ["project_id"]
    assert [tool.annotations.read_only_hint for tool in offered.values()] == [True] * 3 + [False]


# --- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [{}, {"full": True, "limit": 2, "offset": 1}, {"scope": None, "order_by": "created_at"}],
)
def test_an_answer_is_the_recall_tools_own_as_text_and_as_structure(call, arguments):
    tool = RecallTool(Retriever(dataset(), embedder=WordEmbedder(), cache=None), setup().config)
    expected = tool.recall(asked("kiln", **arguments))
    result = call("recall", query="kiln", **arguments)
    assert not result.is_error
    assert result.structured_content == expected
    assert json.loads(result.content[0].text) == expected


def test_hostile_text_is_data_and_no_control_character_stands_in_the_text(call):
    result = call("get_memory", key="kiln-bell")
    assert result.structured_content["content"] == HOSTILE
    text = result.content[0].text
    assert json.loads(text)["content"] == HOSTILE
    assert text.isprintable()
    assert r"\u0000\u0007\u001b[2J\u009b31m\u2028\u0085" in text


def test_the_other_tools_answer_too(call):
    known = call("get_project_knowledge", project_id="p").structured_content
    assert [item["key"] for item in known["items"]] == ["kiln-old"]
    done = call("remember", key="apron", content="the apron is on the hook", scope="workspace")
    assert done.structured_content["outcome"] in ("created", "updated")
    found = call("recall", query="apron").structured_content["items"]
    assert "apron" in [item["key"] for item in found]
    assert call("get_memory", key="apron").structured_content["created_by"] == "me"


BAD = [
    ("recall", {}, "query is required"),
    ("recall", {"query": " "}, "query is required; it is blank"),
    ("recall", {"query": 7}, "query is 7; it must be text"),
    ("recall", {"query": "k", "limit": 0}, "limit is 0; it must be an integer in [1, 50]"),
    ("recall", {"query": "k", "limit": 51}, "limit is 51; it must be an integer in [1, 50]"),
    ("recall", {"query": "k", "limit": "5"}, "limit is '5'; it must be an integer in [1, 50]"),
    ("recall", {"query": "k", "offset": -1}, "offset is -1; it must be an integer in [0, "),
    ("recall", {"query": "k", "since": "yesterday"}, "since is 'yesterday'; it must be RFC 3339"),
    ("recall", {"query": "k", "until": "2026-13-01T00:00:00Z"}, "it must be RFC 3339, such as"),
    ("recall", {"query": "k", "until": "2026-05-01"}, "it must be RFC 3339, such as"),
    ("recall", {"query": "k", "order_by": "score"}, f"must be one of {', '.join(ORDERS)}"),
    ("recall", {"query": "k", "recall_profile": "temporal"},
     "must be one of multi-session, factual, default"),
    ("recall", {"query": "k", "scope": "global"}, "must be one of workspace, project, agent, all"),
    ("recall", {"query": "k", "relevance_min": 2}, "it must be a number in [0, 1]"),
    ("recall", {"query": "k", "tags": "glaze"}, "tags is 'glaze'; it must be a list of tags"),
    ("recall", {"query": "k", "agent_id": "she"}, "'agent_id' is no argument; "),
    ("get_memory", {}, "key is required"),
    ("get_memory", {"key": "none"}, "there is no memory with key 'none' that you may see"),
    ("get_project_knowledge", {"project_id": 3}, "project_id is 3; it must be text"),
    ("remember", {"key": "Bad", "content": "x"}, "a key is two or more of a-z, 0-9"),
    ("remember", {"key": "kk", "content": "<tool>x"}, "memory was not written"),
    ("remember", {"key": "kk", "content": "x", "expires_at": "soon"}, "or a duration, such as 72h"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "allowed"), BAD)
def test_what_is_not_allowed_is_a_tool_error_that_says_what_is(call, tool, arguments, allowed):
    assert allowed in refusal(call(tool, **arguments))


def test_an_unknown_tool_is_an_error_of_the_protocol(call):
    with pytest.raises(MCPError, match="no such tool here; there are recall, get_memory"):
        call("forget")


def test_many_calls_at_once_get_each_its_own_answer(call):
    alone = {
        limit: call("recall", query="kiln", limit=limit).structured_content for limit in (1, 2, 3)
    }
    asked_ = [("recall", {"query": "kiln", "limit": 1 + n % 3}) for n in range(30)]
    for (_, arguments), result in zip(asked_, call.together(*asked_), strict=True):
        assert result.structured_content == alone[arguments["limit"]]


def test_nobody_sees_half_a_write(call):
    """Key and content of each write agree; every answer shows one write, whole."""
    writes = [("remember", {"key": "half", "content": f"wheel {n} {n}"}) for n in range(10)]
    reads = [("get_memory", {"key": "half"})] * 10 + [("recall", {"query": "wheel half"})] * 10
    call("remember", key="half", content="wheel 0 0")
    mixed = [each for trio in zip(writes, reads[:10], reads[10:], strict=True) for each in trio]
    for (name, _), result in zip(mixed, call.together(*mixed), strict=True):
        found = result.structured_content
        if name == "recall":
            (shown,) = [item for item in found["items"] if item["key"] == "half"]
        else:
            shown = found if name == "get_memory" else found["memory"]
        _, first, second = shown["content"].split()
        assert first == second
    # the first write of the test, those at once, and none lost
    version = call("get_memory", key="half").structured_content["version"]
    assert version == 11


def test_an_agents_own_rows_are_nobody_elses_whatever_is_asked(call):
    """Through the tools of the agent `me`; what `she` keeps to herself never shows."""
    answers = [
        call("recall", query="kiln key under the stone", limit=50, min_importance=0, full=True),
        call("recall", query="kiln", scope="agent", full=True),
        call("recall", query="kiln", created_by="she", tags=["kind:pinned"]),
        call("get_memory", key="note"),
        call("get_project_knowledge", project_id="p"),
        call("remember", key="echo", content=HERS, scope="agent"),
    ]
    mine = answers.pop()
    assert "near_dup_key" not in mine.structured_content
    for answer in answers:
        assert "only hers" not in answer.content[0].text
    assert answers[3].structured_content["id"] == "mine"


# --- HTTP alone ---------------------------------------------------------------------------------


def run(work):
    return asyncio.run(work)


HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
ACCEPT = {"Accept": "application/json, text/event-stream"}


def posted(**headers: str) -> int:
    """Status of an opening request with some headers."""

    async def work():
        async with http() as url, httpx2.AsyncClient() as wire:
            port = httpx2.URL(url).port
            given = {name: value.replace("PORT", str(port)) for name, value in headers.items()}
            answer = await wire.post(url, json=HELLO, headers={**ACCEPT, **given})
            return answer.status_code

    return run(work())


GOOD = f"Bearer {MINE}"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": GOOD}, 200),
        ({"Authorization": f"bearer {MINE}"}, 200),
        ({}, 401),
        ({"Authorization": MINE}, 401),
        ({"Authorization": f"Basic {MINE}"}, 401),
        ({"Authorization": f"Bearer {MINE}x"}, 401),
        ({"Authorization": f"Bearer {MINE[:-1]}"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": GOOD, "Host": "localhost:PORT"}, 200),
        ({"Authorization": GOOD, "Host": "evil.example:PORT"}, 421),
        ({"Authorization": GOOD, "Host": "127.0.0.1:1"}, 421),
        ({"Authorization": GOOD, "Host": "127.0.0.1.evil.example:PORT"}, 421),
        ({"Authorization": GOOD, "Origin": "http://localhost:PORT"}, 200),
        ({"Authorization": GOOD, "Origin": "http://evil.example"}, 403),
        ({"Authorization": GOOD, "Origin": "http://localhost:1"}, 403),
        ({"Authorization": GOOD, "Origin": "null"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 401),
    ],
)
def test_only_a_known_token_from_our_own_host_and_origin_is_let_in(headers, status):
    assert posted(**headers) == status


def test_the_sdks_client_without_the_token_gets_nothing():
    async def work():
        async with http() as url, client_of(url, "wrong-token-0123456789") as client:
            return await client.list_tools()

    with pytest.raises(ExceptionGroup) as refused:
        run(work())
    assert refused.value.subgroup(MCPError) is not None


def test_the_token_says_who_calls():
    async def work():
        async with http() as url, client_of(url, HIS) as hers, client_of(url, MINE) as mine:
            theirs = await hers.call_tool("get_memory", {"key": "note"})
            own = await mine.call_tool("get_memory", {"key": "note"})
            await mine.call_tool("remember", {"key": "by-me", "content": "for all of us"})
            seen = await hers.call_tool("get_memory", {"key": "by-me"})
            return [r.structured_content for r in (theirs, own, seen)]

    theirs, own, seen = run(work())
    assert (theirs["id"], own["id"], seen["created_by"]) == ("hers", "mine", "me")


def test_a_session_is_closed_to_another_token():
    async def work():
        async with http() as url, httpx2.AsyncClient() as wire:
            opened = await wire.post(url, json=HELLO, headers={**ACCEPT, "Authorization": GOOD})
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
            asked_ = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            statuses = []
            for token in (HIS, MINE):
                headers = {**ACCEPT, **session, "Authorization": f"Bearer {token}"}
                answer = await wire.post(url, json=asked_, headers=headers)
                statuses.append(answer.status_code)
            return statuses

    assert run(work()) == [404, 200]


def test_read_only_there_is_no_remember():
    async def work():
        async with http(writable=False) as url, client_of(url) as client:
            offered = [tool.name for tool in (await client.list_tools()).tools]
            with pytest.raises(MCPError, match="no such tool here"):
                await client.call_tool("remember", {"key": "kk", "content": "x"})
            return offered

    assert run(work()) == ["recall", "get_memory", "get_project_knowledge"]


class Slow(ServedMemories):
    """Takes its time, and counts what it was asked."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.answered: list[str] = []

    def slow(self, tenancy, arguments):
        time.sleep(0.3)
        self.answered.append(arguments["key"])
        return self.get_memory(tenancy, arguments)


def test_a_client_that_disconnects_harms_nobody(monkeypatch):
    served = Slow(dataset(), setup(), None)
    monkeypatch.setattr(described, "_GET_MEMORY", described._GET_MEMORY._replace(call=Slow.slow))

    async def work():
        async with http(writable=False, memories=lambda: served) as url:
            async with httpx2.AsyncClient() as wire:
                headers = {**ACCEPT, "Authorization": GOOD}
                opened = await wire.post(url, json=HELLO, headers=headers)
                headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
                for number in range(4):
                    body = {
                        "jsonrpc": "2.0", "id": 10 + number, "method": "tools/call",
                        "params": {"name": "get_memory", "arguments": {"key": f"gone-{number}"}},
                    }  # fmt: skip
                    with pytest.raises(httpx2.TimeoutException):
                        await wire.post(url, json=body, headers=headers, timeout=0.1)
            async with client_of(url) as client:
                result = await client.call_tool("get_memory", {"key": "kiln-hot"})
                return result.structured_content["id"]

    assert run(work()) == "hot"
    assert served.answered[-1] == "kiln-hot"


def test_a_bug_ends_the_call_and_not_the_server(monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("at /the/inside")

    monkeypatch.setattr(described, "_GET_MEMORY", described._GET_MEMORY._replace(call=broken))

    async def work():
        async with http() as url, client_of(url) as client:
            failed = await client.call_tool("get_memory", {"key": "kiln-hot"})
            after = await client.call_tool("recall", {"query": "kiln"})
            return refusal(failed), after.is_error

    told, after = run(work())
    assert told == "get_memory failed inside the server; its log says why"
    assert not after
    assert "at /the/inside" in caplog.text


@pytest.mark.parametrize(
    "arguments",
    [
        '{"query": "kiln \\ud800"}',
        '{"query": "k", "limit": 1e400}',
        '{"query": "k", "full": NaN}',
        "[]",
    ],
)
def test_json_that_is_none_is_refused_and_the_server_goes_on(arguments):
    async def work():
        async with http() as url, httpx2.AsyncClient() as wire:
            headers = {**ACCEPT, "Authorization": GOOD, "Content-Type": "application/json"}
            opened = await wire.post(url, json=HELLO, headers=headers)
            headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
            body = (
                '{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": '
                f'{{"name": "recall", "arguments": {arguments}}}}}'
            )
            odd = await wire.post(url, content=body, headers=headers)
            body = body.replace(arguments, '{"query": "kiln"}')
            even = await wire.post(url, content=body, headers=headers)
            return odd.text, even.text

    odd, even = run(work())
    assert '"error"' in odd or '"isError":true' in odd
    assert "kiln-hot" in even
