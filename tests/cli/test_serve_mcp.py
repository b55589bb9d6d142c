"""``comis-eval serve-mcp``: whose connection it is, where writes go, and what is printed where."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from comis_eval.cli import serve_mcp
from comis_eval.cli.serve_mcp import TOKEN
from comis_eval.config import RecallToolConfig
from comis_eval.serve.tools import tools
from comis_eval.store import Store
from comis_eval.types import Tenancy
from tests.builders import NOW
from tests.cli.world import error, run

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def calling(number, name, **arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def talk(*arguments, messages, env=None, wait=True):
    """Start a server, send it messages, and return (answers by id, stderr, status)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "comis_eval", "serve-mcp", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    answers = {}
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if wait and "id" in message:
            answer = json.loads(process.stdout.readline())
            answers[answer["id"]] = answer
    rest, told = process.communicate(timeout=60)
    for line in rest.splitlines():
        answer = json.loads(line)  # standard output holds nothing but the protocol
        answers[answer["id"]] = answer
    return answers, told, process.returncode


def test_standard_output_is_the_protocols_and_the_end_of_input_ends_the_server(dataset):
    answers, told, status = talk(
        dataset, "--lanes", "fts",
        messages=[HELLO, READY, calling(2, "recall", query="kiln", full=True)],
    )  # fmt: skip
    items = answers[2]["result"]["structuredContent"]["items"]
    assert {item["id"] for item in items} >= {"kiln-hot", "kiln-web"}
    assert "theirs" not in {item["id"] for item in items}
    assert status == 0
    assert told == (
        "comis-eval: serving dataset world (read-only) to agent default of tenant default "
        "over standard streams\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_whose_client_is_silent(dataset, number):
    with subprocess.Popen(
        [sys.executable, "-m", "comis_eval", "serve-mcp", str(dataset)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stderr.readline().startswith(b"comis-eval: serving")
            time.sleep(0.5)  # until it waits for its client
            process.send_signal(number)
            assert process.wait(timeout=20) == -number
        finally:
            process.kill()


def test_a_client_that_leaves_in_the_middle_of_a_call_ends_the_server(dataset):
    _, told, status = talk(
        dataset, "--lanes", "fts", wait=False,
        messages=[HELLO, READY, *(calling(n, "recall", query="kiln") for n in range(2, 9))],
    )  # fmt: skip
    assert status == 0
    assert "Traceback" not in told


def test_a_writable_dataset_is_not_written_and_a_writable_database_is(dataset, tmp_path):
    note = calling(2, "remember", key="apron", content="the apron is on the hook")
    answers, told, _ = talk(dataset, "--lanes", "fts", "--writable", messages=[HELLO, READY, note])
    assert answers[2]["result"]["structuredContent"]["outcome"] == "created"
    assert "(writable, what is remembered is gone at the end)" in told
    path = tmp_path / "new.db"
    answers, told, _ = talk(
        str(path), "--lanes", "fts", "--writable", "--agent", "ada", messages=[HELLO, READY, note]
    )
    assert "(writable, what is remembered is written to the file)" in told
    with Store.open(path) as store:
        (kept,) = store.corpus().memories
    assert (kept.key, kept.created_by, kept.tenancy) == ("apron", "ada", Tenancy("default", "ada"))


@pytest.fixture
def started(monkeypatch):
    """Run the command without serving; what it would have served, and to whom."""
    seen = {}

    async def stdio(desk, tools, tenancy, ready):
        async with desk:
            ready()
            seen.update(desk=desk, tools=tools, tenancies=[tenancy], memories=desk._memories)

    async def http(desk, tools, tokens, opened, ready):
        ready()
        seen.update(tools=tools, tokens=tokens, tenancies=list(tokens.values()))
        seen["address"] = opened.getsockname()

    monkeypatch.setattr("comis_eval.serve.server.serve_stdio", stdio)
    monkeypatch.setattr("comis_eval.serve.http.serve_http", http)

    def start(*arguments):
        result = run("serve-mcp", *arguments)
        assert (result.exit_code, result.stdout) == (0, "")
        return {**seen, "told": result.stderr}

    return start


def test_the_agent_is_the_connections(dataset, started):
    assert started(dataset)["tenancies"] == [Tenancy()]
    assert started(dataset, "--agent", "a2")["tenancies"] == [Tenancy("t2", "a2")]
    assert started(dataset, "--agent", "new")["tenancies"] == [Tenancy("default", "new")]
    assert started(dataset, "--tenant", "t2")["tenancies"] == [Tenancy("t2", "a2")]
    assert started(dataset, "--tenant", "t3")["tenancies"] == [Tenancy("t3", "default")]


def test_a_dataset_is_asked_at_its_own_time_and_a_database_by_the_clock(dataset, started, tmp_path):
    assert started(dataset)["memories"]._setup.now() == NOW
    at = started(dataset, "--now", "2026-01-01T00:00:00Z")["memories"]._setup.now()
    assert at == 1_767_225_600_000
    Store.open(tmp_path / "s.db").close()
    by_clock = started(str(tmp_path / "s.db"))["memories"]._setup.now
    assert by_clock is serve_mcp.by_the_clock


def test_each_agent_has_a_token_that_nobody_can_guess(dataset, started):
    seen = started(dataset, "--http", "0", "--agent", "a", "--agent", "b")
    assert seen["address"][0] == "127.0.0.1"
    assert [t.agent_id for t in seen["tenancies"]] == ["a", "b"]
    first, second = seen["tokens"]
    assert first != second
    assert min(len(first), len(second)) >= 43
    for token in (first, second):
        assert f": {token}\n" in seen["told"]
    assert f"http://127.0.0.1:{seen['address'][1]}/mcp" in seen["told"]


def test_a_token_of_ones_own_is_taken_from_the_environment_and_not_shown(
    dataset, started, monkeypatch
):
    monkeypatch.setenv(TOKEN, "a-token-of-my-own-choice")
    seen = started(dataset, "--http", "0")
    assert list(seen["tokens"]) == ["a-token-of-my-own-choice"]
    assert "a-token-of-my-own-choice" not in seen["told"]
    assert f"as {TOKEN} says" in seen["told"]


@pytest.mark.parametrize("token", ["", "short", "has spaces in the middle", "ümläut" * 4])
def test_a_weak_token_is_refused_and_not_repeated(dataset, monkeypatch, token):
    monkeypatch.setenv(TOKEN, token)
    told = error("serve-mcp", dataset, "--http", "0")
    assert "the token must be 16 or more visible ASCII characters" in told
    assert not token or token not in told


def test_remember_is_offered_only_when_writable(dataset, started):
    assert "remember" not in started(dataset)["tools"]
    offered = started(dataset, "--writable")["tools"]["remember"]
    assert "forgets what was remembered when it stops" in offered.description


def test_slugs_of_projects_are_given(dataset, started):
    seen = started(dataset, "--writable", "--project", "mesh=p-1", "--project", "mesh-dev=p-1")
    assert seen["memories"]._setup.projects == {"mesh": "p-1", "mesh-dev": "p-1"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["none.db"], "no dataset 'none.db'"),
        (["DATASET", "--agent", "a", "--agent", "b"], "standard streams are one agent's"),
        (["DATASET", "--agent", ""], "every agent needs a name of its own"),
        (["DATASET", "--http", "0", "--agent", "a", "--agent", "a"], "a name of its own"),
        (["DATASET", "--http", "70000"], "70000 is not in the range"),
        (["DATASET", "--project", "mesh"], "'mesh' names no project; it must be SLUG=ID"),
        (["DATASET", "--lanes", "entity"], "starts from the hits of fts or vector"),
    ],
)
def test_what_cannot_be_served_is_one_line(dataset, arguments, why):
    told = error("serve-mcp", *(dataset if part == "DATASET" else part for part in arguments))
    assert why in told
    assert told.count("\n") == 1


def test_two_agents_and_one_token_of_ones_own_is_refused(dataset, monkeypatch):
    monkeypatch.setenv(TOKEN, "a-token-of-my-own-choice")
    told = error("serve-mcp", dataset, "--http", "0", "--agent", "a", "--agent", "b")
    assert "is one token and there are 2 agents" in told


def test_a_file_that_is_no_store_is_refused(tmp_path):
    path = tmp_path / "notes.db"
    path.write_text("not a database " * 100)
    assert "file is not a database" in error("serve-mcp", str(path))
    assert path.read_text() == "not a database " * 100


def test_a_port_that_is_taken_is_refused(dataset):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = error("serve-mcp", dataset, "--http", str(port))
    assert f"port {port} of 127.0.0.1: Address already in use; choose another" in told


def test_without_the_sdk_the_extra_is_named(dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pip install 'comis_eval[mcp]'" in error("serve-mcp", dataset)


def test_the_help_imports_no_protocol():
    program = (
        "import sys\nfrom comis_eval.cli import main\n"
        "try:\n    main(['serve-mcp', '--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('mcp', 'starlette', 'uvicorn') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


PAGE = (Path(__file__).parents[2] / "docs" / "serve-mcp.md").read_text("utf-8")


@pytest.mark.parametrize(
    "option", [p.opts[0] for p in serve_mcp.command.params if isinstance(p, click.Option)]
)
def test_the_page_tells_every_option(option):
    assert f"`{option}" in PAGE


def test_the_page_tells_every_tool_and_what_it_answers():
    offered = tools(RecallToolConfig(), writable=True, kept=True)
    for tool in offered.values():
        assert f"| `{tool.name}` |" in PAGE
        for name in tool.answer["properties"]:
            assert f"`{name}`" in PAGE or tool.name == "get_memory"
    for name in offered["remember"].arguments["properties"]:
        assert f"`{name}`" in PAGE


@pytest.mark.slow
def test_what_is_served_measures_as_the_tool_itself(dataset, tmp_path):
    served = f"[{sys.executable}, -m, comis_eval, serve-mcp, {dataset}, --lanes, fts]"
    ways = {
        "recall-tool": ["--lanes", "fts"],
        "remote": [
            "--set", "harness.remote.transport=stdio",
            "--set", f"harness.remote.command={served}",
            "--set", "harness.remote.arguments={full: true}",
        ],
    }  # fmt: skip
    rows = {}
    for pipeline, options in ways.items():
        out = tmp_path / f"{pipeline}.json"
        result = run("evaluate", dataset, "--pipeline", pipeline, *options, "--out", str(out))
        assert result.exit_code == 0, result.output
        rows[pipeline] = json.loads(out.read_text("utf-8"))["rows"]
    for figure in ("query_id", "ndcg@10", "recall@10", "scope_leak"):
        assert rows["remote"][figure] == rows["recall-tool"][figure]
    assert sum(rows["remote"]["ndcg@10"][:2]) > 0
