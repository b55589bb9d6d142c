"""``comis-eval sample``: real queries of a log, drawn to be labelled."""

from __future__ import annotations

import time
from pathlib import Path

import click

from comis_eval.cli import options
from comis_eval.cli.terminal import WRONG, console, line, print_json, progress
from comis_eval.datasets.faults import listed
from comis_eval.datasets.fields import UnusableError
from comis_eval.datasets.fields import name as dataset_name
from comis_eval.datasets.sampling import draw, write_sample
from comis_eval.datasets.sampling.sample import MAX_BAD
from comis_eval.errors import DatasetError


@click.command
@click.argument("query_log", type=options.FILE)
@options.NEW_FOLDER
@click.option(
    "-n", "n", type=click.IntRange(min=1), default=200, show_default=True, help="How many queries."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draw."
)
@click.option(
    "--max-bad",
    type=click.FloatRange(0, 1),
    default=MAX_BAD,
    show_default=True,
    help="Share of lines that may be unusable.",
)
@click.option(
    "--now",
    type=int,
    help="When queries were asked whose line does not say, ms; the moment of the draw.",
)
@options.JSON
def command(
    query_log: Path,
    *,
    folder: Path,
    n: int,
    seed: int,
    max_bad: float,
    now: int | None,
    as_json: bool,
) -> None:
    """Draw a stratified sample of real queries to label.

    QUERY_LOG is a .txt with a query a line, or a .jsonl of objects with text (or query) and
    perhaps ts, tenantId, agentId and turns. The folder gets the queries, and a card and
    weights that say how they were drawn; put memories.jsonl beside them and judge.

    \b
    Example:
        comis-eval sample queries.jsonl --out mine -n 300 --seed 7
    """
    try:
        name = dataset_name(folder.name)
    except UnusableError as error:
        raise DatasetError(f"--out: the folder's name is the dataset's{error.args[0]}") from error
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DatasetError(f"--out {folder} exists and is not empty; name another or remove it")
    moment = time.time_ns() // 1_000_000 if now is None else now
    with progress() as tell:
        sample = draw(query_log, n=n, seed=seed, now=moment, max_bad=max_bad, progress=tell)
    write_sample(sample, folder, name=name)
    if sample.bad:
        err = console(err=True)
        for told in listed(sample.bad).split("\n"):
            line(err, f"{query_log.parent}/{told}", WRONG)
        line(err, f"{len(sample.bad)} of {sample.lines} lines could not be used and are left out")
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "lines": sample.lines,
                "unusable": [fault._asdict() for fault in sample.bad],
                "distinct": sample.distinct,
                "strata": len(sample.strata),
                "drawn": len(sample.drawn),
                "ignored": list(sample.ignored),
            }
        )
        return
    line(
        console(),
        f"{folder}: {len(sample.drawn)} of {sample.distinct} different queries "
        f"({sample.usable} usable lines, {len(sample.strata)} strata), seed {seed}",
    )
