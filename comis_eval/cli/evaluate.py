"""``comis-eval evaluate``: a configuration's figures on a labelled query set."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click

from comis_eval.cli import options
from comis_eval.cli.figures import show_evaluation
from comis_eval.cli.terminal import console, line, print_json, progress
from comis_eval.config import Config
from comis_eval.config_file import dump_rag, dump_recall_tool
from comis_eval.datasets import Dataset, load_dataset
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import DEFAULT_METRICS, Evaluation, evaluate, file
from comis_eval.metrics import parse


@click.command
@click.argument("dataset")
@options.configured
@options.run_any
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="Score this too, such as recall@20; may be repeated.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the evaluation file, and its trace beside it.",
)
@click.option("--track", is_flag=True, help="Log the evaluation as an MLflow run.")
@click.option("--tracking-uri", metavar="URI", help="MLflow's; sqlite under experiments/.")
@options.JSON
def command(
    dataset: str,
    *,
    metrics: tuple[str, ...],
    out: Path | None,
    track: bool,
    tracking_uri: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure recall on a labelled query set.

    DATASET is a dataset folder, or the name of one in datasets/.

    \b
    Example:
        comis-eval evaluate datasets/starter --set rag.maxResults=8 --out eight.json
        comis-eval evaluate datasets/starter --pipeline recall-tool
    """
    started = round(time.time() * 1000)
    asked = options.Options(**given)
    added = tuple(parse(name).name for name in metrics)
    if out is not None and not out.absolute().parent.is_dir():
        raise EvaluationError(f"--out {out}: there is no folder {out.parent}; make it first")
    config, labelled = asked.configuration(), load_dataset(dataset)
    with progress() as tell:
        evaluation = evaluate(
            labelled,
            config,
            pipeline=asked.pipeline,
            split=asked.split,
            seed=asked.seed,
            metrics=(*DEFAULT_METRICS, *added),
            retriever=asked.retriever(labelled, tell),
        )
    if out is not None:
        _write(evaluation, out)
    if as_json:
        print_json(file.as_json(evaluation))
    else:
        show_evaluation(evaluation, config, added=added, out=console())
    if track or tracking_uri is not None:
        _track(evaluation, labelled, config, tracking_uri, started)


def _track(
    evaluation: Evaluation, dataset: Dataset, config: Config, uri: str | None, started: int
) -> None:
    from comis_eval.tracking import Tracker, dashboard_command
    from comis_eval.tuning.tracked import single

    with tempfile.TemporaryDirectory() as folder:
        files = {"evaluation.json": Path(folder) / "evaluation.json"}
        file.write_evaluation(evaluation, files["evaluation.json"])
        name, dump = (
            ("recall-tool.yaml", dump_recall_tool)
            if evaluation.pipeline == "recall-tool"
            else ("rag.yaml", dump_rag)
        )
        files[name] = Path(folder) / name
        files[name].write_text(dump(config), encoding="utf-8")
        told = single(evaluation, dataset, config, started_ms=started, artifacts=files)
        run = Tracker.open(uri).log_single(told)
    line(console(err=True), f"MLflow run {run}: {dashboard_command(uri)}")


def _write(evaluation: Evaluation, path: Path) -> None:
    try:
        file.write_evaluation(evaluation, path)
    except OSError as error:
        raise EvaluationError(f"--out {path}: cannot be written: {error.strerror}") from error
    beside = "without a trace" if evaluation.rankings is None else "and its trace beside it"
    line(console(err=True), f"written: {path}, {beside}")
