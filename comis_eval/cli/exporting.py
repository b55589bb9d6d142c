"""``comis-eval export``: from a dataset folder to the files of another format."""

from __future__ import annotations

from pathlib import Path

import click

from comis_eval.cli import options
from comis_eval.cli.terminal import console, line, print_json, table, titled
from comis_eval.datasets import Dataset, load_dataset
from comis_eval.datasets.exporters import EXPORTERS, export_trec
from comis_eval.datasets.importers.trec import Hit, Run
from comis_eval.datasets.write import check_free
from comis_eval.errors import EvaluationError
from comis_eval.evaluation.file import read_evaluation
from comis_eval.report.trace import trace_of
from comis_eval.types import Fate

_RANKED = {str(fate) for fate in (Fate.INCLUDED, Fate.OVER_BUDGET, Fate.BEYOND_MAX_RESULTS)}
"""Fates of what the ranking holds: the rest was taken out of it."""


@click.command
@click.argument("dataset")
@click.option(
    "--as",
    "format_",
    type=click.Choice(tuple(EXPORTERS)),
    required=True,
    help="The format to write.",
)
@options.NEW_FOLDER
@click.option(
    "--run",
    "evaluation",
    metavar="EVALUATION",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --as trec: also write the rankings of an evaluation of this dataset (its --out).",
)
@options.JSON
def command(
    dataset: str, *, format_: str, folder: Path, evaluation: Path | None, as_json: bool
) -> None:
    """Write a dataset in another format: TREC or BEIR.

    Prints what was written, and what the format has no place for: of how many records, and
    what became of it.

    \b
    Example:
        comis-eval export datasets/starter --as beir --out starter-beir
    """
    if evaluation is not None and format_ != "trec":
        raise click.UsageError("--run needs --as trec", click.get_current_context())
    check_free(folder)
    data = load_dataset(dataset)
    if evaluation is None:
        report = EXPORTERS[format_](data, folder)
    else:
        report = export_trec(data, folder, _run(evaluation, data))
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


def _run(path: Path, data: Dataset) -> Run:
    """The rankings that an evaluation's figures are of.

    Scores only say the rank, so that tools which sort by score, rounded, keep the order.
    """
    evaluation = read_evaluation(path)
    if evaluation.dataset["fingerprint"] != data.fingerprint:
        raise EvaluationError(
            f"{path} is of a dataset with fingerprint {evaluation.dataset['fingerprint'][:12]}, "
            f"this one's is {data.fingerprint[:12]}; evaluate it, or export that one"
        )
    trace = trace_of(evaluation, path)
    if trace is None:
        raise EvaluationError(f"{path} has no trace beside it; evaluate again with --out")
    rankings: dict[str, tuple[Hit, ...]] = {}
    for place, query_id in enumerate(evaluation.query_ids):
        rows = trace.rows(place)
        pairs = zip(trace.memory_ids[rows], trace.fates[rows], strict=True)
        ids = [memory_id for memory_id, fate in pairs if fate in _RANKED]
        if ids:
            hits = (Hit(own, float(len(ids) - rank)) for rank, own in enumerate(ids))
            rankings[query_id] = tuple(hits)
    return Run(evaluation.pipeline, rankings)
