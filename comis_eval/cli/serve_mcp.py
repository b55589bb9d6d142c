"""``comis-eval serve-mcp``: the recall tool for agents, over standard streams or HTTP."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from comis_eval.cli import options
from comis_eval.cli.recall import Moment
from comis_eval.datasets import Dataset, load_dataset
from comis_eval.errors import ConfigError
from comis_eval.models.cache import cache_dir
from comis_eval.serve.desk import Desk
from comis_eval.serve.memories import ServedMemories, Setup, by_the_clock
from comis_eval.serve.tools import tools
from comis_eval.text import printable
from comis_eval.types import Tenancy

TOKEN = "COMIS_EVAL_MCP_TOKEN"  # noqa: S105 - the variable's name
_SUFFIXES = (".db", ".sqlite", ".sqlite3")


class _Source(NamedTuple):
    """What is served.

    Attributes:
        name: What it is called.
        opened: Opens it, on the thread that will own it.
        moment: The usual moment of asking, ms; None: the clock's.
        tenancies: Whose memories there are, those who ask first; empty: unknown.
        database: Whether it is a store's file.
    """

    name: str
    opened: Callable[[Setup], ServedMemories]
    moment: int | None
    tenancies: Sequence[Tenancy]
    database: bool


@click.command
@click.argument("source", metavar="DATASET_OR_DB")
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve streamable HTTP on this loopback port (0: any free) instead of standard streams.",
)
@click.option(
    "--agent",
    "agents",
    metavar="ID",
    multiple=True,
    help="Whose connection it is; with --http repeatable, a token for each. Default: a dataset's "
    "most common agent, else 'default'.",
)
@click.option("--tenant", metavar="ID", help="The agents' tenant; default: as their memories say.")
@click.option(
    "--writable",
    is_flag=True,
    help="Offer remember too. A database is written; a dataset never: its copy in memory is.",
)
@click.option(
    "--now",
    "moment",
    type=Moment(),
    help="Moment of every call; default: a dataset's usual one, for a database the clock's.",
)
@click.option(
    "--project",
    "projects",
    metavar="SLUG=ID",
    multiple=True,
    help="Which project a project:SLUG tag means; may be repeated.",
)
@options.served
def command(
    source: str,
    *,
    port: int | None,
    agents: tuple[str, ...],
    tenant: str | None,
    writable: bool,
    moment: int | None,
    projects: tuple[str, ...],
    **given: Any,
) -> None:
    """Serve memories to agents over the Model Context Protocol.

    DATASET_OR_DB is a dataset folder, the name of one in datasets/, or the file of a store.
    Without --http it serves one client over standard input and output. With it, clients send
    a token, from the variable COMIS_EVAL_MCP_TOKEN or made and printed to standard error.

    \b
    Example:
        comis-eval serve-mcp datasets/starter --agent ada
        comis-eval serve-mcp memories.db --http 8765 --agent ada --agent bob --writable
    """
    _check_installed()
    _check_agents(agents, port)
    asked = options.Options(**given)
    config = asked.configuration()
    served = _source(source, writable=writable)
    at = served.moment if moment is None else moment
    setup = Setup(
        config=config,
        now=by_the_clock if at is None else lambda: at,
        writable=writable,
        projects=_projects(projects),
        cache=None if asked.no_cache else cache_dir(),
    )
    callers = [_tenancy(served, agent, tenant) for agent in agents or (None,)]
    offered = tools(
        config.harness.recall_tool, writable=writable, kept=writable and served.database
    )
    desk = Desk(lambda: served.opened(setup))
    lasting = "written to the file" if served.database else "gone at the end"
    writes = f"writable, what is remembered is {lasting}" if writable else "read-only"
    told = f"serving {served.name} ({writes})"
    if port is None:
        from comis_eval.serve.server import serve_stdio

        over = f"{told} to {_named(callers[0])} over standard streams"
        with _ended_at_once():
            asyncio.run(serve_stdio(desk, offered, callers[0], lambda: _say(over)))
        return
    from comis_eval.serve.http import listening, serve_http, url_of

    tokens = _tokens(callers)
    whose = {token: caller for caller, (token, _) in zip(callers, tokens, strict=True)}
    with listening(port) as opened:
        url = url_of(opened)

        def ready() -> None:
            _say(f"{told} at {url}")
            for caller, (token, shown) in zip(callers, tokens, strict=True):
                _say(f"token of {_named(caller)}: {token if shown else f'as {TOKEN} says'}")

        asyncio.run(serve_http(desk, offered, whose, opened, ready))


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """Let a signal end the process: the thread that waits for a client cannot be woken.

    Nothing is left half done, since every write is a transaction.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_installed() -> None:
    try:
        importlib.import_module("mcp")
    except ImportError as error:
        raise ConfigError(
            f"serve-mcp needs the official MCP SDK ({error}); pip install 'comis_eval[mcp]'"
        ) from error


def _check_agents(agents: tuple[str, ...], port: int | None) -> None:
    if port is None and len(agents) > 1:
        raise click.UsageError(
            "standard streams are one agent's; give one --agent, or --http PORT",
            click.get_current_context(),
        )
    if "" in agents or len(set(agents)) < len(agents):
        raise click.UsageError(
            "--agent: every agent needs a name of its own", click.get_current_context()
        )


def _source(source: str, *, writable: bool) -> _Source:
    path = Path(source)
    new = writable and not path.exists() and path.suffix in _SUFFIXES
    if path.is_file() or new:
        return _Source(
            path.name,
            lambda setup: ServedMemories.of_database(path, setup),
            None,
            (),
            database=True,
        )
    dataset = load_dataset(source)
    usual = Counter(query.now for query in dataset.queries).most_common(1)[0][0]
    return _Source(
        f"dataset {dataset.name}",
        lambda setup: ServedMemories.of_dataset(dataset, setup),
        usual,
        _tenancies(dataset),
        database=False,
    )


def _tenancies(dataset: Dataset) -> list[Tenancy]:
    """Everybody's, the queries' most common one first."""
    asking = Counter(query.tenancy.named for query in dataset.queries)
    owning = Counter(memory.tenancy for memory in dataset.memories)
    return [tenancy for each in (asking, owning) for tenancy, _ in each.most_common()]


def _tenancy(source: _Source, agent: str | None, tenant: str | None) -> Tenancy:
    """The connection of an agent; one that has no memories yet is of the most common tenant."""
    known = [t for t in source.tenancies if tenant in (None, t.tenant_id)]
    mine = [t for t in known if agent in (None, t.agent_id)]
    if mine:
        return mine[0]
    home = tenant if tenant is not None else (known[0].tenant_id if known else "default")
    return Tenancy(home, agent or "default")


def _projects(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    for slug, _, project in pairs:
        if not slug or not project:
            raise click.UsageError(
                f"--project: '{slug}' names no project; it must be SLUG=ID",
                click.get_current_context(),
            )
    return {slug: project for slug, _, project in pairs}


def _tokens(callers: Sequence[Tenancy]) -> list[tuple[str, bool]]:
    """A token for each caller, and whether it is to be shown."""
    from comis_eval.serve.http import check_token, new_token

    given = os.environ.get(TOKEN)
    if given is None:
        return [(new_token(), True) for _ in callers]
    if len(callers) > 1:
        raise ConfigError(
            f"{TOKEN} is one token and there are {len(callers)} agents; unset it to get a token "
            "for each, or start a server for each"
        )
    return [(check_token(given), False)]


def _named(caller: Tenancy) -> str:
    return f"agent {caller.agent_id} of tenant {caller.tenant_id}"


def _say(told: str) -> None:
    """Tell whoever started it; standard output is the protocol's."""
    click.echo(f"comis-eval: {printable(told)}", err=True)
