"""``comis-eval diff``: what changes between two configurations, without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from comis_eval.cli import options
from comis_eval.cli.terminal import (
    cell,
    console,
    figure,
    line,
    more,
    print_json,
    progress,
    table,
    titled,
)
from comis_eval.config import Config, config_hash
from comis_eval.config_file import describe
from comis_eval.datasets.contents import QUERIES
from comis_eval.difference import Difference, QueryDifference, difference
from comis_eval.errors import DatasetError
from comis_eval.evaluation import ranked
from comis_eval.text import printable

_ID_CHARS = 32
_IDS_SHOWN = 3
_WHAT_CHARS = 48


@click.command
@click.argument("dataset")
@click.argument("first", metavar="A.yaml", type=options.FILE)
@click.argument("second", metavar="B.yaml", type=options.FILE)
@options.changed
@options.run
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Rows shown of each table.",
)
@options.JSON
def command(
    dataset: str, first: Path, second: Path, *, limit: int, as_json: bool, **given: Any
) -> None:
    """Compare two configurations without labels.

    Says how many contexts change, how far the rankings agree, which memories move, and at
    which stage the two first part. The options change both configurations alike.

    \b
    Example:
        comis-eval diff datasets/starter now.yaml then.yaml --limit 20
    """
    asked = options.Options(**given)
    configs = [asked.configuration(path) for path in (first, second)]
    chosen = asked.dataset(dataset)
    if not chosen.queries:
        raise DatasetError(
            f"{chosen.name}: {QUERIES} is empty; write one query a line into it, "
            'such as {"id": "q1", "text": "...", "now": MILLISECONDS}'
        )
    with progress() as tell:
        retriever = asked.retriever(chosen, tell)
        # One retriever for both: what they share is indexed and embedded once.
        a, b = (ranked(asked.pipeline, retriever, config, chosen.queries) for config in configs)
    found = difference(a, b)
    if as_json:
        print_json({"dataset": chosen.name, "configs": _configs(configs), **_document(found)})
        return
    out = console()
    line(out, f"{chosen.name}, split {asked.split}: {first} | {second}", "bold")
    _show_settings(configs, out)
    _show(found, limit, out)


def _configs(configs: list[Config]) -> list[str]:
    return [config_hash(config) for config in configs]


def _show_settings(configs: list[Config], out: Console) -> None:
    pairs = zip(*map(describe, configs), strict=True)
    rows = [
        (one.path, json.dumps(one.value), json.dumps(two.value))
        for one, two in pairs
        if one.value != two.value
    ]
    if not rows:
        line(out, "the two configurations are the same")
        out.print()
        return
    titled(
        out,
        "What they set otherwise",
        table(["setting", "first", "second"], rows, whole=["setting"]),
    )


def _show(found: Difference, limit: int, out: Console) -> None:
    changed = sum(query.changed for query in found.queries)
    line(
        out,
        f"{changed} of {len(found.queries)} contexts change ({figure(found.changed_share)}); "
        f"mean rank-biased overlap of the rankings {figure(found.mean_overlap)} (1: the same)",
    )
    out.print()
    if not found.partings:
        line(out, "no query parts at any stage")
        return
    stages = [(stage, str(count)) for stage, count in found.partings.items()]
    titled(out, "Where they first part", table(["stage", "queries"], stages, numbers=["queries"]))
    if found.moved:
        moved = [
            (cell(m.memory_id, limit=_ID_CHARS), str(m.entered), str(m.left))
            for m in found.moved[:limit]
        ]
        columns = ["memory", "contexts entered", "left"]
        titled(
            out,
            "Who moved",
            table(columns, moved, numbers=columns[1:]),
            rest=more(limit, len(found.moved)),
        )
    worst = [query for query in found.worst if query.changed or query.parting]
    columns = ["query", "overlap", "entered", "left", "parts at", "in"]
    titled(
        out,
        "Queries that change most",
        table(columns, map(_row, worst[:limit]), numbers=["overlap"]),
        rest=more(limit, len(worst)),
    )


def _row(query: QueryDifference) -> tuple[object, ...]:
    stage, what = (query.parting.stage, query.parting.what) if query.parting else ("", "")
    moved = (_some(query.entered), _some(query.left))
    return (
        cell(query.query_id, limit=_ID_CHARS),
        query.overlap,
        *moved,
        stage,
        cell(what, limit=_WHAT_CHARS),
    )


def _some(ids: tuple[str, ...]) -> str:
    shown = [printable(memory_id, limit=_ID_CHARS) for memory_id in ids[:_IDS_SHOWN]]
    return ", ".join(shown) + (f", +{len(ids) - _IDS_SHOWN}" if len(ids) > _IDS_SHOWN else "")


def _document(found: Difference) -> dict[str, Any]:
    """Return everything found, the queries worst first."""
    return {
        "queries": len(found.queries),
        "changed_share": found.changed_share,
        "mean_overlap": found.mean_overlap,
        "partings": found.partings,
        "moved": [moved._asdict() for moved in found.moved],
        "worst": [
            {
                **query._asdict(),
                "parting": None if query.parting is None else query.parting._asdict(),
            }
            for query in found.worst
        ],
    }
