"""``comis-eval compare``: how far evaluations differ, and whether by more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from comis_eval.cli.options import JSON
from comis_eval.cli.terminal import console, figure, line, print_json, table, titled
from comis_eval.cli.verdicts import show_deltas
from comis_eval.comparison import Compared, compare_evaluations
from comis_eval.comparison.evaluations import Correction
from comis_eval.gating import load
from comis_eval.gating.render import delta_document
from comis_eval.metrics import parse


@click.command
@click.argument("evaluations", nargs=-1, required=True, metavar="A B [C ...]")
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="Compare this, such as recall@20; may be repeated; the headline figures without it.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Loss that matters: how many queries would show it is said.",
)
@click.option(
    "--correction",
    type=click.Choice(["maxt", "holm"]),
    default="maxt",
    show_default=True,
    help="How p is corrected over metrics and evaluations.",
)
@click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05,
    show_default=True, help="Significance level; intervals hold 1 - level.",
)  # fmt: skip
@click.option(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=10_000,
    show_default=True,
    help="Sign flips and bootstrap samples.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of both.")
@JSON
def command(
    evaluations: tuple[str, ...],
    *,
    metrics: tuple[str, ...],
    margin: float,
    correction: Correction,
    level: float,
    resamples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare evaluations of the same queries with the first of them.

    Each is a file that `evaluate --out` wrote, or a baseline. Differences are paired by
    query, drawn by group, and turned so that higher is better.

    \b
    Example:
        comis-eval compare now.json then.json --margin 0.01
    """
    if len(evaluations) < 2:
        raise click.UsageError("compare needs two files or more")
    read = [load(name)[0] for name in evaluations]
    compared = compare_evaluations(
        *read,
        metrics=[parse(name).name for name in metrics] or None,
        margin=margin,
        correction=correction,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    if as_json:
        print_json(_document(evaluations, compared))
    else:
        _show(evaluations, compared, margin, console())


def _show(names: tuple[str, ...], compared: Compared, margin: float, out: Console) -> None:
    for number, name in enumerate(names):
        line(out, f"{'first' if number == 0 else f'other {number}'}: {name}", "bold")
    how = {"maxt": "MaxT", "holm": "Holm"}[compared.correction]
    line(
        out,
        f"{100 * (1 - compared.level):g}% intervals; p corrected by {how} over each table; "
        "'?': a paired t test disagrees",
    )
    out.print()
    called = [Path(name).name for name in names[1:]] if len(names) > 2 else []
    show_deltas("All headline categories", compared.headline, out, names=called)
    _show_power(compared, margin, called, out)
    show_deltas("By category (exploratory)", compared.categories, out, names=called)
    for note in compared.notes:
        line(out, f"note: {note}")


def _show_power(compared: Compared, margin: float, called: list[str], out: Console) -> None:
    columns = [*(["evaluation"] if called else []), "figure", "dz", "detectable", "groups"]
    columns += ["queries for margin"] if margin else []
    rows = [
        (
            *([called[delta.other - 1]] if called else []),
            delta.metric,
            figure(delta.figures.dz),
            f"{delta.figures.mdd:.4f}",
            str(delta.figures.n_groups),
            *([_count(delta.figures.queries_for_margin)] if margin else []),
        )
        for delta in compared.headline
    ]
    titled(
        out,
        "What these queries could show (80% power)",
        table(columns, rows, numbers=columns[-4 if margin else -3 :]),
    )


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _document(names: tuple[str, ...], compared: Compared) -> dict[str, Any]:
    return {
        "first": names[0],
        "others": list(names[1:]),
        "correction": compared.correction,
        "level": compared.level,
        "headline": [delta_document(delta) for delta in compared.headline],
        "categories": [delta_document(delta) for delta in compared.categories],
        "notes": list(compared.notes),
    }
