"""The page of commands: the help of each, as it prints it."""

from __future__ import annotations

from collections.abc import Iterator

import click
import markup

from comis_eval.cli import main

INTRODUCTION = """\
The help of every command, as `comis-eval COMMAND --help` prints it. Exit statuses: 0, 2 for an \
error that was expected (one line on stderr), 5 when the work is saved but could not be tracked, \
130 after Ctrl-C; `gate` has [its own](../ci.md). Anything else is a bug, and keeps its traceback.
"""

_WIDTH = 96


def page() -> str:
    """Every command and every command of a group, in the order of the help."""
    parts = [markup.heading(2, path, _anchor(path)) + "\n\n" + told for path, told in helps()]
    return markup.page("# Commands", INTRODUCTION, *parts)


def helps() -> Iterator[tuple[str, str]]:
    """Each command's path and its help in a block of code."""
    for context in _contexts(_context(main, "comis-eval")):
        yield context.command_path, markup.block(context.get_help())


def _anchor(path: str) -> str:
    return path.replace(" ", "-")


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is None:
                raise LookupError(f"{context.command_path} lists {name}, which is not there")
            yield from _contexts(_context(inner, name, context))


def _context(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    settings = {"terminal_width": _WIDTH, **command.context_settings}
    return click.Context(command, info_name=name, parent=parent, **settings)
