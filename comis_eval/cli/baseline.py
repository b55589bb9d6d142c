"""``comis-eval baseline``: what later evaluations are held against."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from comis_eval.cli import options
from comis_eval.cli.gate import FOLDER
from comis_eval.cli.terminal import console, line, print_json, short_hash, table, titled
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, read_evaluation, trace
from comis_eval.evaluation.file import as_json as evaluation_document
from comis_eval.gating.baseline import (
    checked_name,
    faults,
    find,
    names,
    read_baseline,
    write_baseline,
)
from comis_eval.gating.render import figure, signed
from comis_eval.metrics import ALL

_LEFT_OUT = ("rows", "references", "bounds", "notes")


@click.group
def command() -> None:
    """Set or show baselines, what later evaluations are held against.

    \b
    Example:
        comis-eval baseline set new.json --as starter
        comis-eval baseline show starter
    """


@command.command("set")
@click.argument("evaluation", type=options.FILE)
@click.option("--as", "name", required=True, help="Its name: letters, digits, '.', '_', '-'.")
@FOLDER
@click.option(
    "--accept-faults",
    is_flag=True,
    help="Bless it in spite of leaks, failed queries or dead lanes.",
)
def set_(evaluation: Path, *, name: str, folder: Path, accept_faults: bool) -> None:
    """Bless an evaluation under a name, to be committed and reviewed.

    One of that name is replaced; what changes is printed.

    \b
    Example:
        comis-eval baseline set new.json --as starter
    """
    measured, out = read_evaluation(evaluation), console()
    path = folder / f"{checked_name(name)}.json"
    before = _replaced(path, out)
    try:
        there = measured.trace is not None and trace.beside(measured, evaluation).is_file()
        held = trace.whole(measured, evaluation)[1] if there else None
        write_baseline(measured, name, folder=folder, accept_faults=accept_faults, trace=held)
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be written: {error.strerror}") from error
    _show_change(before, measured, out)
    for fault in faults(measured):
        line(out, f"accepted: {fault}")
    kept = "and its trace beside it; commit both" if there else "without a trace; commit it"
    line(out, f"written: {path}, {kept} to make it count")


def _replaced(path: Path, out: Console) -> Evaluation | None:
    """The baseline that will be replaced, as far as it can be read."""
    if not path.is_file():
        return None
    try:
        return read_baseline(path)
    except EvaluationError as error:
        line(out, f"the one it replaces cannot be read: {error}")
        return None


@command.command()
@click.argument("name", required=False)
@FOLDER
@options.JSON
def show(name: str | None, *, folder: Path, as_json: bool) -> None:
    """Show a baseline, or list those there are.

    \b
    Example:
        comis-eval baseline show starter
    """
    if name is None:
        found = list(names(folder))
        if as_json:
            print_json(found)
        else:
            line(console(), ", ".join(found) or f"no baseline in {folder}")
        return
    path = find(name, folder=folder)
    baseline = read_baseline(path)
    if as_json:
        whole = evaluation_document(baseline, trace=baseline.trace)
        print_json({key: value for key, value in whole.items() if key not in _LEFT_OUT})
    else:
        _show(baseline, path, console())


def _show(baseline: Evaluation, path: Path, out: Console) -> None:
    data, counts = baseline.dataset, baseline.counts
    line(out, f"{path}: {data['name']} {data['version']}  split {data['split']}", "bold")
    line(out, f"fingerprint {data['fingerprint']}")
    line(
        out,
        f"{baseline.pipeline}  config {short_hash(baseline.config_hash)}  "
        f"{counts['queries']} queries, {counts['failed']} failed",
    )
    line(out, ", ".join(f"{name} {version}" for name, version in baseline.versions.items()))
    rows = [(name, figure(mean.value), str(mean.n)) for name, mean in baseline.means[ALL].items()]
    titled(out, "Figures of all", table(["metric", "figure", "n"], rows, numbers=["figure", "n"]))


def _show_change(before: Evaluation | None, after: Evaluation, out: Console) -> None:
    if before is None:
        return
    if before.dataset["fingerprint"] != after.dataset["fingerprint"]:
        line(out, "the one it replaces was measured on another dataset")
        return
    rows = []
    for name, mean in before.means[ALL].items():
        new = after.means[ALL].get(name)
        if new is not None and new.value != mean.value and not (new.n == mean.n == 0):
            rows.append(
                (name, figure(mean.value), figure(new.value), signed(new.value - mean.value))
            )
    columns = ["metric", "replaced", "new", "change"]
    if rows:
        titled(out, "What changes", table(columns, rows, numbers=columns[1:]))
    else:
        line(out, "it replaces one with the same figures")
