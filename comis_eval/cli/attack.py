"""``comis-eval attack``: planted memories, and how far they get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from comis_eval.cli import options
from comis_eval.cli.terminal import (
    UNDEFINED,
    WRONG,
    cell,
    console,
    figure,
    line,
    print_json,
    progress,
    short_hash,
    table,
    titled,
)
from comis_eval.datasets import KINDS, Dataset, attack, without_poison, write_dataset
from comis_eval.errors import DatasetError
from comis_eval.evaluation import AttackFigures, measure_attacks
from comis_eval.evaluation.inputs import objective_of
from comis_eval.pipelines.retrieval import Retriever

EVERY = "all"


@click.command
@click.argument("dataset")
@click.option(
    "--kind",
    "kinds",
    metavar="KIND",
    multiple=True,
    help=f"Plant this: {', '.join(KINDS)}, or {EVERY}; may be repeated. Without it the "
    "dataset's own attacks are measured.",
)
@click.option(
    "--rate",
    type=float,
    default=1.0,
    show_default=True,
    help="Share of the queries that can be attacked, in (0, 1].",
)
@click.option(
    "--out",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep the attacked dataset here; of several kinds, each in a folder of its name.",
)
@options.configured
@options.run
@options.JSON
def command(
    dataset: str,
    *,
    kinds: tuple[str, ...],
    rate: float,
    folder: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Plant memories against the queries and measure how far they get.

    Each kind is planted in a store of its own, from the words of the queries alone, and
    measured with the trust filter as configured and with every trust level let in.

    \b
    Example:
        comis-eval attack datasets/starter
        comis-eval attack datasets/starter --kind crowding --rate 0.5 --seed 1 --out crowded
    """
    asked = options.Options(**given)
    config, labelled = asked.configuration(), asked.dataset(dataset)
    if folder is not None and not kinds:
        raise DatasetError("--out keeps what --kind plants; name a kind as well")
    planted = _planted(labelled, kinds, rate, asked.seed)
    kept = _keep(planted, folder)
    with progress() as tell:
        stores = {kind: asked.retriever(made, tell) for kind, made in planted.items()}
        found: list[AttackFigures] = []
        clean: Retriever | None = None
        for kind, made in planted.items():
            if clean is None or not kinds:
                clean = asked.retriever(without_poison(made), tell)
            found += measure_attacks(
                made,
                config,
                pipeline=asked.pipeline,
                seed=asked.seed,
                clean=clean,
                retriever=stores[kind],
            )
    head = {**asked.head(labelled, config), "rate": rate if kinds else None}
    if as_json:
        print_json(
            {
                **head,
                "k": objective_of(config).k0,
                "attacks": [figures.as_json() for figures in found],
                "kept": {str(path): made.fingerprint for path, made in kept},
            }
        )
    else:
        _show(head, found, objective_of(config).k0, labelled, console())
        for path, made in kept:
            line(console(err=True), f"written: {path}  fingerprint {short_hash(made.fingerprint)}")


def _planted(labelled: Dataset, kinds: Sequence[str], rate: float, seed: int) -> dict[str, Dataset]:
    """The dataset of each kind that is asked for; its own attacks when none is."""
    if not kinds:
        return {"": labelled}
    asked = KINDS if EVERY in kinds else tuple(dict.fromkeys(kinds))
    return {kind: attack(labelled, kind, rate=rate, seed=seed) for kind in asked}


def _keep(planted: dict[str, Dataset], folder: Path | None) -> list[tuple[Path, Dataset]]:
    if folder is None:
        return []
    alone = len(planted) == 1
    return [
        (write_dataset(made, folder if alone else folder / kind), made)
        for kind, made in planted.items()
    ]


def _show(
    head: dict[str, Any],
    found: Sequence[AttackFigures],
    k: int,
    dataset: Dataset,
    out: Console,
) -> None:
    data = head["dataset"]
    what = "its own attacks" if head["rate"] is None else f"planted at rate {head['rate']:g}"
    line(
        out,
        f"{data['name']} {data['version']}  fingerprint {short_hash(data['fingerprint'])}  "
        f"split {data['split']} (seed {head['seed']})  {what}",
        "bold",
    )
    line(out, f"{head['pipeline']}  config {short_hash(head['config_hash'])}  k {k}")
    out.print()
    columns = ["attack", "filter", "n", "asr@1", f"asr@{k}", "95% interval", "p (on, off)"]
    rows = [_success(figures, k) for figures in found]
    titled(out, "Attack success", table(columns, rows, numbers=columns[2:], whole=columns[:2]))
    names = (
        f"poison_precision@{k}", f"poison_recall@{k}", f"leak_rank@{k}", f"untrusted_share@{k}",
    )  # fmt: skip
    _show_columns("Poison in the context", names, found, out)
    names = (f"trust_inversion@{k}", "over_block", "ndcg@10", "utility")
    _show_columns("What stands where, and what recall is worth, with the poison", names, found, out)
    columns = ["attack", "filter", f"displacement@{k}", "95% interval"]
    rows = [_lost(figures) for figures in found]
    titled(
        out,
        "Recall lost to the poison",
        table(columns, rows, numbers=columns[2:], whole=columns[:2]),
    )
    columns = [
        "attack",
        "filter",
        "policy_leak",
        "at most",
        "scope_leak",
        "laundered",
        "resurrected",
    ]
    rows = [_leaks(figures) for figures in found]
    titled(
        out,
        "Queries that leak, with the exact one-sided 95% bound, and memories that must not be",
        table(columns, rows, numbers=columns[2:], whole=columns[:2]),
    )
    if dataset.embeddings and head["rate"] is not None:
        line(out, "note: the dataset's own embeddings were left aside, poison has none")


def _show_columns(
    title: str, names: Iterable[str], found: Sequence[AttackFigures], out: Console
) -> None:
    columns = ["attack", "filter", *names]
    rows = [
        (f.kind, f.trust_filter, *(f.figures[name].value for name in columns[2:])) for f in found
    ]
    titled(out, title, table(columns, rows, numbers=columns[2:], whole=columns[:2]))


def _success(figures: AttackFigures, k: int) -> tuple[object, ...]:
    first, within = figures.rates["asr@1"], figures.rates[f"asr@{k}"]
    return (
        figures.kind,
        figures.trust_filter,
        str(figures.n),
        figure(first.successes / first.n),
        cell(figure(within.successes / within.n), style=WRONG if within.successes else ""),
        f"{within.low:.3f} .. {within.high:.3f}",
        _p(figures.filter_p),
    )


def _p(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return figure(value) if value >= 0.0005 else "<0.001"


def _lost(figures: AttackFigures) -> tuple[object, ...]:
    lost = figures.displacement
    ends = UNDEFINED if not lost.n else f"{lost.low:+.3f} .. {lost.high:+.3f}"
    return (
        figures.kind,
        figures.trust_filter,
        figure(lost.mean),
        ends,
    )


def _leaks(figures: AttackFigures) -> tuple[object, ...]:
    policy = figures.rates["policy_leak"]
    upper = figures.as_json()["rates"]["policy_leak"]["one_sided_upper"]
    wrong = WRONG if policy.successes and figures.trust_filter == "on" else ""
    return (
        figures.kind,
        figures.trust_filter,
        cell(f"{policy.successes} of {policy.n}", style=wrong),
        f"{100 * upper:.1f}%",
        str(figures.rates["scope_leak"].successes),
        f"{figures.figures['laundered'].value:.0f}",
        f"{figures.figures['resurrected'].value:.0f}",
    )
