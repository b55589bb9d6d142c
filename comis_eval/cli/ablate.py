"""``comis-eval ablate``: what each switch, lane and boost is worth, one at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from comis_eval.ablation import Ablation, ablate, as_document
from comis_eval.cli import options
from comis_eval.cli.terminal import (
    UNDEFINED,
    WRONG,
    cell,
    console,
    line,
    print_json,
    progress,
    table,
    titled,
)
from comis_eval.datasets import Dataset
from comis_eval.errors import EvaluationError
from comis_eval.files import replacing
from comis_eval.gating.render import figure, signed
from comis_eval.metrics import parse

METRIC = click.option(
    "--metric", default="utility", show_default=True, metavar="NAME", help="Which figure."
)


@click.command
@click.argument("dataset")
@options.configured
@options.run
@METRIC
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON."
)
@options.JSON
def command(dataset: str, *, metric: str, out: Path | None, as_json: bool, **given: Any) -> None:
    """Turn off or flip one thing at a time and measure what it does.

    Flipped are the switches in which the documented and the shipped system differ; turned
    off is what is on: each lane, rerank and each boost. Effects are of the change, so a
    negative one says that the thing helps.

    \b
    Example:
        comis-eval ablate datasets/starter --metric ndcg@10
    """
    asked = options.Options(**given)
    metric, config, chosen = parse(metric).name, asked.configuration(), asked.dataset(dataset)
    with progress() as tell:
        found = ablate(
            chosen,
            config,
            metric=metric,
            pipeline=asked.pipeline,
            seed=max(asked.seed, 0),
            retriever=asked.retriever(chosen, tell),
            progress=tell,
        )
    document = {**asked.head(chosen, config), **as_document(found)}
    if out is not None:
        _write(document, out)
    if as_json:
        print_json(document)
    else:
        _show(found, chosen, console())


def _write(document: dict[str, Any], path: Path) -> None:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    try:
        with replacing(path) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"--out {path}: cannot be written: {error.strerror}") from error
    line(console(err=True), f"written: {path}")


def _show(found: Ablation, dataset: Dataset, out: Console) -> None:
    line(
        out,
        f"{dataset.name} {dataset.version}: {found.metric} is {figure(found.current)} with the "
        "current configuration",
        "bold",
    )
    out.print()
    leaks = any(effect.leaking for effect in found.effects)
    columns = ["changed", "how", "effect", f"{100 * (1 - found.level):g}% interval", "p", "moved"]
    rows = []
    for effect in found.effects:
        f = effect.figures
        sure = effect.p_adjusted <= found.level
        ends = UNDEFINED if f.interval == "undefined" else f"{signed(f.low)} .. {signed(f.high)}"
        leaking = cell(str(effect.leaking), style=WRONG if effect.leaking else "")
        rows.append(
            (
                effect.name,
                effect.said,
                cell(signed(f.mean), style="bold" if sure else ""),
                ends,
                figure(effect.p_adjusted),
                str(effect.changed),
                *([leaking] if leaks else []),
            )
        )
    columns += ["leaking"] if leaks else []
    titled(
        out,
        "One change at a time (effect of the change, higher is better; p corrected by MaxT)",
        table(columns, rows, numbers=columns[2:], whole=columns[:1]),
    )
    for note in found.off:
        line(out, f"not ablated: {note}")
