"""``comis-eval cache``: what is kept on disk so that nothing is embedded twice."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from comis_eval.candidates.cache import SUFFIX
from comis_eval.cli.options import JSON
from comis_eval.cli.terminal import UNDEFINED, console, line, print_json, table, titled
from comis_eval.models.cache import CacheEntry, cache_dir, clear, entries

_TABLE = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}|\.[0-9a-f]{{16}}\.\w+\.partial")


@click.group
def command() -> None:
    """List or clear what is kept on disk.

    \b
    Example:
        comis-eval cache ls
    """


@command.command
@JSON
def ls(*, as_json: bool) -> None:
    """List the cache: vectors a model, and candidates tables together.

    The folder is $COMIS_EVAL_CACHE, else $XDG_CACHE_HOME/comis_eval, else
    ~/.cache/comis_eval.

    \b
    Example:
        comis-eval cache ls --json
    """
    folder = cache_dir()
    held = _held(folder)
    if as_json:
        print_json({"folder": str(folder), "entries": [entry._asdict() for entry in held]})
        return
    rows = [
        (
            entry.kind,
            entry.name or "damaged or empty",
            str(entry.files),
            UNDEFINED if entry.rows is None else str(entry.rows),
            size(entry.bytes),
        )
        for entry in held
    ]
    columns = ["kind", "model", "files", "texts", "size"]
    title = f"{folder}: {size(sum(entry.bytes for entry in held))}"
    titled(console(), title, table(columns, rows, numbers=columns[2:]))


@command.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear_(*, yes: bool) -> None:
    """Delete the cache's files; the next evaluation embeds again.

    \b
    Example:
        comis-eval cache clear --yes
    """
    folder = cache_dir()
    freed = sum(entry.bytes for entry in _held(folder))
    if not yes:
        if not _asks():
            raise click.UsageError(
                "there is no terminal to ask at; say --yes", click.get_current_context()
            )
        click.confirm(f"Delete {size(freed)} in {folder}?", abort=True)
    deleted = clear(folder)
    for path in _tables(folder):
        path.unlink(missing_ok=True)
        deleted.append(path)
    line(console(), f"{folder}: {len(deleted)} files deleted, {size(freed)} ({freed} bytes) freed")


def _held(folder: Path) -> list[CacheEntry]:
    """Everything kept: an entry a model, and one for the candidates tables."""
    held = entries(folder)
    if tables := _tables(folder):
        sizes = sum(path.stat().st_size for path in tables)
        held.append(CacheEntry("candidates", UNDEFINED, len(tables), sizes, None))
    return held


def _tables(folder: Path) -> list[Path]:
    """Candidates tables, and what a writer that was stopped left of one; nothing else."""
    inner = folder / "candidates"
    found = inner.iterdir() if inner.is_dir() else ()
    return sorted(path for path in found if _TABLE.fullmatch(path.name) and path.is_file())


def _asks() -> bool:
    return sys.stdin.isatty()


def size(count: int) -> str:
    """Show bytes in the largest unit that leaves a whole number before the point."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
