"""What people see: tables, figures and progress, with no text that could steer a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from time import monotonic
from typing import Any, Protocol

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from comis_eval.text import printable

WIDTH = 120
"""Columns of output that goes to no terminal."""

UNDEFINED = "-"
"""How a figure is shown that does not exist: it is not 0."""

WRONG = "bold red"
"""The style of what somebody must look at."""


class Tell(Protocol):
    """Shows how far a step is."""

    def __call__(self, step: str, done: int, total: int, detail: str = "", /) -> None:
        """Show that so much of a step is done, and what is to be said of it by now."""


def console(*, err: bool = False) -> Console:
    """Where a command prints; rich itself heeds NO_COLOR."""
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else WIDTH
    return _Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


class _Console(Console):
    """Leaves a closed pipe to the command line, which exits as other programs do."""

    def on_broken_pipe(self) -> None:
        """Pass on the BrokenPipeError that is being handled; rich would exit with 1."""
        raise  # noqa: PLE0704  (called while the error is handled)


def print_json(value: Any) -> None:
    """Print for a machine, in ASCII, which every encoding has and no terminal obeys."""
    click.echo(json.dumps(value, indent=1, allow_nan=False))


def line(out: Console, text: str, style: str = "") -> None:
    """Print one line, however long; whatever stands in it is shown, not obeyed."""
    out.print(Text(printable(text), style), soft_wrap=True)


def cell(value: object, *, limit: int | None = None, style: str = "") -> Text:
    """Show a value in a table: a number as a figure, text on one line without its teeth."""
    if value is None:
        return Text(UNDEFINED, style)
    if isinstance(value, float):
        return Text(figure(value), style)
    return Text(printable(str(value), limit=limit), style)


def figure(value: float) -> str:
    """Show a figure with three decimals, and a dash where it is undefined."""
    return UNDEFINED if isnan(value) else f"{value:.3f}"


def short_hash(digest: str) -> str:
    """Return as much of a hash as people compare."""
    return digest[:12]


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Iterable[str] = (),
    whole: Iterable[str] = (),
) -> Table:
    """Lay out rows.

    Args:
        columns: One heading a column.
        rows: One cell a column; a Text is taken as it is, anything else by :func:`cell`.
        numbers: Headings of the columns that are aligned to the right and never wrapped.
        whole: Headings of other columns that are never wrapped.
    """
    laid = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    right = set(numbers)
    unwrapped = right | set(whole)
    for column in columns:
        is_number = column in right
        laid.add_column(
            Text(column),
            justify="right" if is_number else "left",
            no_wrap=column in unwrapped,
            overflow="fold",
        )
    for row in rows:
        laid.add_row(*(value if isinstance(value, Text) else cell(value) for value in row))
    return laid


def titled(out: Console, title: str, laid: Table, *, rest: str | None = None) -> None:
    """Print a table under its title, what it leaves out below, and a blank line."""
    line(out, title, "bold")
    out.print(laid)
    if rest is not None:
        line(out, rest)
    out.print()


def more(shown: int, there: int, where: str = "--limit, or --json") -> str | None:
    """Say how many are not shown and where they are; None when all are."""
    return None if there <= shown else f"... and {there - shown} more ({where})"


_REDRAW_SECONDS = 0.1


@contextmanager
def progress() -> Iterator[Tell | None]:
    """A bar on stderr while something long runs; None when stderr is no terminal."""
    out = console(err=True)
    if not out.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    # Drawn when told, not by a thread of its own, so that commands may fork.
    with Progress(*columns, console=out, transient=True, auto_refresh=False) as bar:
        tasks: dict[str, Any] = {}
        drawn = 0.0

        def tell(step: str, done: int, total: int, detail: str = "", /) -> None:
            nonlocal drawn
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            said = f"{step}{detail}"
            bar.update(tasks[step], completed=done, total=total, description=said)
            if done >= total or monotonic() - drawn >= _REDRAW_SECONDS:
                bar.refresh()
                drawn = monotonic()

        yield tell
