"""``comis-eval config``: what a configuration says, and whether it can be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from comis_eval.cli import options
from comis_eval.cli.terminal import cell, console, line, print_json, short_hash, table, titled
from comis_eval.config import config_hash
from comis_eval.config_file import describe, dump_rag, not_exportable
from comis_eval.text import printable


@click.group
def command() -> None:
    """Show, check or export a configuration.

    \b
    Example:
        comis-eval config show --config config.yaml --agent helper
    """


@command.command
@options.configured
@click.option("--rag", "as_rag", is_flag=True, help="Print the rag fragment as YAML instead.")
@options.JSON
def show(*, as_rag: bool, as_json: bool, **given: Any) -> None:
    """Show every setting: its value, its default, and what it may be.

    \b
    Example:
        comis-eval config show --config config.yaml --set rag.maxResults=8
    """
    if as_rag and as_json:
        raise click.UsageError(
            "--rag prints YAML, --json JSON; give one", click.get_current_context()
        )
    config = options.Options(**given).configuration()
    if as_rag:
        click.echo(dump_rag(config), nl=False)
        return
    rows = describe(config)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    out = console()
    changed = sum(row.changed for row in rows)
    cells = [
        (
            cell(row.path, style="bold" if row.changed else ""),
            cell(json.dumps(row.value), style="bold" if row.changed else ""),
            json.dumps(row.default) if row.changed else "",
            row.allowed,
            row.description,
        )
        for row in rows
    ]
    title = (
        f"{changed} of {len(rows)} settings differ from the defaults; "
        f"config {short_hash(config_hash(config))}"
    )
    columns = ["setting", "value", "default", "allowed", ""]
    titled(out, title, table(columns, cells, whole=columns[:1]))


@command.command
@click.argument("file", type=options.FILE)
@options.changed
@options.JSON
def check(file: Path, *, as_json: bool, **given: Any) -> None:
    """Check that a configuration file can be used; tell every fault at once.

    \b
    Example:
        comis-eval config check config.yaml --agent helper
    """
    config = options.Options(**given).configuration(file)
    whatifs = not_exportable(config)
    if as_json:
        document = {"file": str(file), "config_hash": config_hash(config), "what_ifs": whatifs}
        print_json(document)
        return
    out = console()
    line(out, f"{file}: usable; config {short_hash(config_hash(config))}")
    for row in describe(config):
        if row.changed:
            line(out, f"  {row.path}: {json.dumps(row.value)} (default {json.dumps(row.default)})")
    if whatifs:
        line(out, f"  the product has no setting for: {', '.join(whatifs)}")


@command.command
@click.argument("study")
@click.option("--trial", type=click.IntRange(min=0), help="This trial instead of the advice.")
def export(study: str, *, trial: int | None) -> None:
    """Print what a sweep advises as a fragment to paste.

    STUDY is its name, or its folder.

    \b
    Example:
        comis-eval config export starter-1 > rag.yaml
    """
    from comis_eval.tuning.folder import exported

    # The fragment lay in a file since; what is no text of YAML is not sent to a terminal.
    for written in exported(study, trial).split("\n")[:-1]:
        click.echo(printable(written))
