"""``comis-eval export``: from a dataset folder to the files of another format."""

from __future__ import annotations

from pathlib import Path

import click

from comis_eval.cli.options import JSON
from comis_eval.cli.terminal import console, line, print_json, table, titled
from comis_eval.datasets import load_dataset
from comis_eval.datasets.exporters import EXPORTERS
from comis_eval.datasets.write import check_free


@click.command
@click.argument("dataset")
@click.option(
    "--as",
    "format_",
    type=click.Choice(tuple(EXPORTERS)),
    required=True,
    help="The format to write.",
)
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder to make; it must not exist, or be empty.",
)
@JSON
def command(dataset: str, *, format_: str, folder: Path, as_json: bool) -> None:
    """Write a dataset in another format: TREC or BEIR.

    Prints what was written, and what the format has no place for: of how many records, and
    what became of it.

    \b
    Example:
        comis-eval export datasets/starter --as beir --out starter-beir
    """
    check_free(folder)
    report = EXPORTERS[format_](load_dataset(dataset), folder)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "counts": report.counts,
                "losses": [loss._asdict() for loss in report.losses],
            }
        )
        return
    out = console()
    rows = [(name, str(number)) for name, number in report.counts.items()]
    titled(out, f"{dataset} -> {folder}", table(["", "records"], rows, numbers=["records"]))
    for loss in report.losses:
        line(out, str(loss))
