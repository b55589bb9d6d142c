"""An evaluation as tables, for somebody who wants to know what to do next."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from comis_eval.cli.terminal import WRONG, cell, figure, line, more, short_hash, table, titled
from comis_eval.config import Config
from comis_eval.config_file import describe, not_exportable
from comis_eval.evaluation import Evaluation
from comis_eval.evaluation.live import FAILED_NOTE
from comis_eval.metrics import ALL, STAGES, Mean
from comis_eval.text import printable

HEADLINE = (
    "ndcg@10", "recall@5", "hit@5", "mrr@10", "context_recall", "utility", "judged@5",
)  # fmt: skip
"""The columns of the main table; 100 columns of a terminal hold them beside their labels."""

LEAKS_SHOWN = 10
_LABEL_CHARS = 24
_ID_CHARS = 32
_SHARES = ("over_block", "trust_inversion@5", "untrusted_share@5")
_COUNTS = {"policy_leak": "queries", "scope_leak": "queries", "laundered": "memories"}
_DEAD = {
    "fts": "no query shares a word with a memory of its scope; look at tenancies and language",
    "vector": "no memory of a query's scope has an embedding; look at embeddings.ids",
    "entity": "memories name no entities, or none that two of them share",
    "temporal": "memories have no occurredAt, or none within rag.lanes.temporal.windowDays",
    "causal": "links.jsonl is not there, or ties no memory to what the search lanes find",
}


def show_evaluation(
    evaluation: Evaluation,
    config: Config,
    *,
    added: Sequence[str],
    out: Console,
) -> None:
    """Print an evaluation.

    Args:
        evaluation: What was measured.
        config: With which settings.
        added: Metrics to show in the main table beside HEADLINE.
        out: Where to.
    """
    main = [name for name in dict.fromkeys((*HEADLINE, *added)) if name in evaluation.values]
    main += [name for name in evaluation.values if name.startswith("judged@") and name not in main]
    rows = [(_category(name, evaluation), row) for name, row in evaluation.means.items()]
    rest = [name for name in evaluation.values if name not in main and not _on_trust(name)]
    _show_header(evaluation, config, out)
    failed = [note for note in evaluation.notes if FAILED_NOTE in note]
    for note in failed:  # what went wrong comes before figures that it spoils
        line(out, f"note: {note}", WRONG)
    if failed:
        out.print()
    _show_figures("Figures (n: queries behind the first)", rows, main, out)
    if evaluation.references:
        others = evaluation.references.items()
        _show_figures("The same memories, ranked otherwise", others, main, out)
        _show_headroom(evaluation, out)
    _show_rest(evaluation.means[ALL], rest, out)
    _show_lanes(evaluation, config, out)
    _show_trust(evaluation, out)
    for note in evaluation.notes:
        if note not in failed:
            line(out, f"note: {note}")


def _show_header(evaluation: Evaluation, config: Config, out: Console) -> None:
    data, counts, settings = evaluation.dataset, evaluation.counts, evaluation.settings
    version = f" {data['version']}" if data["version"] else ""
    ks = ", ".join(map(str, settings["k"]))
    changed = [f"{row.path}={json.dumps(row.value)}" for row in describe(config) if row.changed]
    switched = [path for path in not_exportable(config) if path.startswith("semantics.")]
    whatifs = [path for path in switched if path != "semantics.preset"]
    line(
        out,
        f"{data['name']}{version}  fingerprint {short_hash(data['fingerprint'])}  "
        f"split {data['split']} (seed {evaluation.seed})",
        "bold",
    )
    line(
        out,
        f"{counts['queries']} queries: {counts['scored']} scored, "
        f"{counts['unanswerable']} unanswerable, {counts['failed']} failed",
        WRONG if counts["failed"] else "",
    )
    line(
        out,
        f"{evaluation.pipeline}  semantics {config.semantics.preset}"
        f"{' with switches changed' if whatifs else ''}  "
        f"config {short_hash(evaluation.config_hash)}",
    )
    line(
        out,
        f"k {ks}  gain {settings['gain']}  relevant from grade {settings['relevance_level']}  "
        f"utility at k0 {settings['k0']}, c0 {settings['c0']}",
    )
    line(out, f"differs from the defaults: {', '.join(changed) or 'nothing'}")
    out.print()


def _category(name: str, evaluation: Evaluation) -> str:
    """Mark a category that the headline figures leave out."""
    shown = printable(name, limit=_LABEL_CHARS)
    return shown if name in (ALL, *evaluation.settings["headline"]) else f"{shown} (not in {ALL})"


def _on_trust(metric: str) -> bool:
    return metric in (*_COUNTS, *_SHARES, "resurrected") or metric.startswith("unwanted_after_")


def _show_figures(
    title: str,
    rows: Collection[tuple[str, Mapping[str, Mean]]],
    metrics: Sequence[str],
    out: Console,
) -> None:
    """Show one row a label; columns that the terminal has no room for come further down."""
    label_width = max((len(label) for label, _ in rows), default=0)
    for number, block in enumerate(_blocks(metrics, out.width - label_width - len("  queries"))):
        cells = [
            (label, str(row[block[0]].n) if block[0] in row else None, *_figures(row, block))
            for label, row in rows
        ]
        laid = table(["", "n", *block], cells, numbers=("n", *block))
        titled(out, title if number == 0 else f"{title}, continued", laid)


def _figures(row: Mapping[str, Mean], metrics: Sequence[str]) -> list[float | None]:
    return [row[name].value if name in row else None for name in metrics]


def _blocks(names: Sequence[str], room: int) -> Iterator[list[str]]:
    """Cut a list of columns into as many tables as the room asks for."""
    block: list[str] = []
    left = room
    for name in names:
        width = max(len(name), len("0.000")) + 2
        if block and width > left:
            yield block
            block, left = [], room
        block.append(name)
        left -= width
    if block:
        yield block


def _show_headroom(evaluation: Evaluation, out: Console) -> None:
    """Say what re-ranking could gain at most, and which plain ranking does better."""
    name = HEADLINE[0]
    if name not in evaluation.values:
        return
    here = evaluation.mean(name)
    found = {label: row[name].value for label, row in evaluation.references.items() if name in row}
    if "oracle" in found and found["oracle"] > here:
        line(
            out,
            f"headroom: the best order of what the lanes found has {name} "
            f"{figure(found['oracle'])}, {figure(found['oracle'] - here)} above this one",
        )
    for label, value in found.items():
        if label != "oracle" and value > here and figure(value) != figure(here):
            line(
                out,
                f"reference {label} ranks better: {name} {figure(value)} against {figure(here)}",
                WRONG,
            )
    out.print()


def _show_rest(row: Mapping[str, Mean], metrics: Sequence[str], out: Console) -> None:
    for number, block in enumerate(_blocks(metrics, out.width - len("figure"))):
        cells = [("figure", *_figures(row, block)), ("n", *(str(row[name].n) for name in block))]
        title = f"More figures of {ALL}"
        laid = table(["", *block], cells, numbers=block)
        titled(out, title if number == 0 else f"{title}, continued", laid)


def _show_lanes(evaluation: Evaluation, config: Config, out: Console) -> None:
    if evaluation.pipeline == "remote":  # it shows no lanes, but how long it took
        if evaluation.latency_ms is not None:
            told = ", ".join(f"{name} {ms:.1f} ms" for name, ms in evaluation.latency_ms.items())
            line(out, f"Latency of the answered queries: {told}")
            out.print()
        return
    queries = evaluation.counts["queries"]
    rows: list[tuple[object, ...]] = []
    asked = asked_lanes(config)
    if evaluation.pipeline == "recall-tool":
        asked = config.harness.lanes  # it has no other arms, whatever rag says
    for lane in asked:
        if lane not in evaluation.lanes:
            rows.append((lane, None, cell("DID NOT RUN: rag.enabled is false", style=WRONG)))
        elif lane in evaluation.dead_lanes:
            why = f"DEAD, nothing for any query: {_DEAD[lane]}"
            rows.append((lane, "0", cell(why, style=WRONG)))
        else:
            rows.append((lane, str(evaluation.lanes[lane]), Text("")))
    columns = ["lane", f"with hits, of {queries}", ""]
    titled(out, "Lanes", table(columns, rows, numbers=columns[1:2]))


def asked_lanes(config: Config) -> tuple[str, ...]:
    """The lanes that a configuration turns on, in their order."""
    spread = {
        "entity": config.rag.entity_lane.enabled,
        "temporal": config.rag.lanes.temporal.enabled,
        "causal": config.rag.lanes.causal.enabled,
    }
    return (*config.harness.lanes, *(lane for lane, on in spread.items() if on))


def _show_trust(evaluation: Evaluation, out: Console) -> None:
    rows: list[tuple[object, ...]] = []
    for name, unit in {**_COUNTS, "resurrected": "memories"}.items():
        if name not in evaluation.values:  # a live system does not show its stages
            continue
        values = evaluation.values[name]
        count, n = int(np.nansum(values)), int((~np.isnan(values)).sum())
        found = cell(f"{count} {unit}", style=WRONG if count else "")
        rows.append((name, found, str(n), evaluation.bounds.get(name)))
    for name in _SHARES:
        if name in evaluation.values:
            mean = evaluation.means[ALL][name]
            rows.append((name, mean.value, str(mean.n), None))
    columns = ["", "found", "n", "at most (95%)"]
    titled(out, "Trust", table(columns, rows, numbers=columns[1:]))
    names = {stage: f"unwanted_after_{stage}" for stage in STAGES}
    if set(names.values()) <= evaluation.values.keys():
        told = ", ".join(f"{stage} {evaluation.mean(name):.0f}" for stage, name in names.items())
        line(out, f"unwanted memories (trust, scope, poison) after: {told}")
        out.print()
    _show_leaks(evaluation, out)


def _show_leaks(evaluation: Evaluation, out: Console) -> None:
    if not evaluation.leaks:
        return
    rows = [
        (
            cell(leak["query_id"], limit=_ID_CHARS),
            cell(leak["memory_id"], limit=_ID_CHARS),
            leak["why"],
            leak["stage"],
            "yes" if leak["why"] in evaluation.enforces else "no",
        )
        for leak in evaluation.leaks[:LEAKS_SHOWN]
    ]
    title = "LEAKS: memories that the dataset's policy keeps out, and the context held"
    columns = ["query", "memory", "why", "got in at", "pipeline promises to stop it"]
    rest = more(LEAKS_SHOWN, len(evaluation.leaks), "all of them: --json or --out")
    titled(out, title, table(columns, rows), rest=rest)
