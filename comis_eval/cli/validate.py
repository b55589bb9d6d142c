"""``comis-eval validate``: every fault of a dataset folder, by file and line."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from comis_eval.cli import EXPECTED
from comis_eval.cli.options import JSON
from comis_eval.cli.terminal import WRONG, console, line, print_json
from comis_eval.datasets import Report, validate


@click.command
@click.argument("dataset")
@JSON
@click.pass_context
def command(ctx: click.Context, dataset: str, *, as_json: bool) -> None:
    """Check a dataset folder and report every fault in it.

    Faults make a dataset unusable, and the exit status 2; warnings tell what is allowed but
    probably not meant.

    \b
    Example:
        comis-eval validate datasets/starter
    """
    report = validate(dataset)
    if as_json:
        print_json(_document(report))
    else:
        _show(report, console())
    if report.faults:
        ctx.exit(EXPECTED)


def _show(report: Report, out: Console) -> None:
    for fault in report.faults:
        line(out, f"{report.folder}/{fault}", WRONG)
    for warning in report.warnings:
        line(out, f"warning: {report.folder}/{warning}")
    if report.dataset is None:
        line(out, f"{len(report.faults)} faults, {len(report.warnings)} warnings: unusable", WRONG)
        return
    data = report.dataset
    judgments = len(data.judgments)
    line(
        out,
        f"{data.name} is usable: {len(data.memories)} memories, {len(data.queries)} queries, "
        f"{judgments} judgments, {len(report.warnings)} warnings; fingerprint {data.fingerprint}",
    )


def _document(report: Report) -> dict[str, Any]:
    data = report.dataset
    return {
        "folder": str(report.folder),
        "faults": [fault._asdict() for fault in report.faults],
        "warnings": [warning._asdict() for warning in report.warnings],
        "dataset": None
        if data is None
        else {
            "name": data.name,
            "version": data.version,
            "fingerprint": data.fingerprint,
            "memories": len(data.memories),
            "queries": len(data.queries),
            "judgments": len(data.judgments),
        },
    }
