"""``comis-eval report``: one HTML file that people read."""

from __future__ import annotations

from pathlib import Path

import click

from comis_eval.cli.terminal import console, line, progress
from comis_eval.errors import EvaluationError
from comis_eval.report import write_report


@click.command
@click.argument("source", metavar="EVALUATION_OR_STUDY")
@click.argument("other", metavar="[OTHER]", required=False)
@click.option(
    "--dataset",
    metavar="DATASET",
    help="The evaluated dataset: adds texts, trust and grades; without it, ids only.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The HTML file to write.",
)
def command(source: str, other: str | None, *, dataset: str | None, out: Path) -> None:
    """Write a report of an evaluation, of two, or of a sweep.

    EVALUATION_OR_STUDY is a file that `evaluate --out` wrote, a baseline, or the folder of a
    study. With OTHER, a second evaluation of the same queries, the report shows what changed
    from the first to it. It is one HTML file, and opening it loads nothing else.

    \b
    Example:
        comis-eval report main.json branch.json --dataset datasets/starter --out report.html
    """
    if not out.absolute().parent.is_dir():
        raise EvaluationError(f"--out {out}: there is no folder {out.parent}; make it first")
    with progress() as tell:
        write_report(source, other, dataset=dataset, out=out, progress=tell)
    line(console(err=True), f"written: {out}")
