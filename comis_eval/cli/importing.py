"""``comis-eval import``: from a file of another format to a dataset folder."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from comis_eval.cli.options import JSON
from comis_eval.cli.terminal import console, line, print_json, table, titled
from comis_eval.datasets import Dataset, write_dataset
from comis_eval.datasets.importers import IMPORTERS, ImportReport
from comis_eval.errors import DatasetError
from comis_eval.text import printable


@click.command
@click.argument("format_", metavar="FORMAT")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="The dataset folder to make; it must not exist, or be empty.",
)
@JSON
def command(format_: str, source: Path, *, folder: Path, as_json: bool) -> None:
    """Turn a file of another format into a dataset folder.

    Prints how many records came in, went out and were dropped, and every reason.

    \b
    Example:
        comis-eval import locomo locomo10.json --out datasets/locomo
    """
    if format_ not in IMPORTERS:
        raise DatasetError(
            f"there is no format '{printable(format_, limit=40)}'; there are {', '.join(IMPORTERS)}"
        )
    _check_free(folder)
    dataset, report = IMPORTERS[format_](source)
    write_dataset(dataset, folder)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "fingerprint": dataset.fingerprint,
                "counts": {
                    kind: {**count._asdict(), "dropped": count.dropped}
                    for kind, count in report.counts.items()
                },
                "notes": [note._asdict() for note in report.notes],
            }
        )
    else:
        _show(dataset, report, folder, console())


def _check_free(folder: Path) -> None:
    """Refuse early what writing would refuse after minutes of importing."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"--out {folder} exists and is not empty; name another or remove it")


def _show(dataset: Dataset, report: ImportReport, folder: Path, out: Console) -> None:
    rows = [
        (kind, str(count.found), str(count.kept), str(count.dropped))
        for kind, count in report.counts.items()
    ]
    columns = ["", "in", "out", "dropped"]
    titled(out, f"{dataset.name} -> {folder}", table(columns, rows, numbers=columns[1:]))
    for note in report.notes:
        line(out, str(note))
    line(out, f"fingerprint {dataset.fingerprint}")
