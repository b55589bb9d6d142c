"""``comis-eval plan``: how many queries would decide."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from rich.console import Console

from comis_eval.ablation import measure
from comis_eval.cli import options
from comis_eval.cli.ablate import METRIC
from comis_eval.cli.terminal import console, line, more, print_json, progress, table, titled
from comis_eval.comparison import Plan, plan
from comis_eval.gating.render import finite
from comis_eval.metrics import parse

_SHOWN = 15
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command
@click.argument("dataset")
@options.configured
@options.run
@METRIC
@click.option(
    "--margin",
    type=click.FloatRange(min=0, min_open=True),
    required=True,
    help="Loss that matters, in the metric's unit.",
)
@click.option("--power", type=_SHARE, default=0.8, show_default=True, help="Chance to show it.")
@click.option("--level", type=_SHARE, default=0.05, show_default=True, help="Significance level.")
@options.JSON
def command(
    dataset: str,
    *,
    metric: str,
    margin: float,
    power: float,
    level: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Say how many queries would show a loss of the margin.

    How far real changes scatter over queries is taken from the changes that `ablate` makes
    to the current configuration, one at a time: what moves the ranking more needs more
    queries. Their effects play no part.

    \b
    Example:
        comis-eval plan datasets/starter --margin 0.02
    """
    asked = options.Options(**given)
    metric, config, chosen = parse(metric).name, asked.configuration(), asked.dataset(dataset)
    with progress() as tell:
        found = measure(
            chosen,
            config,
            metric=metric,
            pipeline=asked.pipeline,
            retriever=asked.retriever(chosen, tell),
            progress=tell,
        )
    planned = plan(
        [f"{variant.name}: {variant.said}" for variant in found.variants],
        found.differences,
        found.groups,
        found.weights,
        margin=margin,
        power=power,
        level=level,
    )
    if as_json:
        print_json(_document(metric, planned))
    else:
        _show(metric, planned, console())


def _show(metric: str, planned: Plan, out: Console) -> None:
    line(
        out,
        f"to show a loss of {planned.margin:g} in {metric} with {100 * planned.power:g}% power: "
        f"{planned.typical} queries for half of the changes below, {planned.most} for all",
        "bold",
    )
    line(
        out,
        f"at hand: {planned.n_queries} queries in {planned.n_groups} groups, enough for "
        f"{planned.decided} of {len(planned.needs)} changes",
    )
    out.print()
    columns = ["change", "spread", "groups", "queries", "shown by those at hand"]
    rows = [
        (
            need.change,
            f"{need.spread:.4f}",
            str(need.groups),
            str(need.queries),
            f"{need.detectable:.4f}",
        )
        for need in planned.needs[:_SHOWN]
    ]
    titled(
        out,
        "What each change would take",
        table(columns, rows, numbers=columns[1:]),
        rest=more(_SHOWN, len(planned.needs), "--json"),
    )


def _document(metric: str, planned: Plan) -> dict[str, Any]:
    told = asdict(planned)
    needs = [need._asdict() for need in planned.needs]
    summary = {
        "typical_queries": planned.typical,
        "most_queries": planned.most,
        "decided": planned.decided,
    }
    return dict(finite({"metric": metric, **told, **summary, "needs": needs}))
