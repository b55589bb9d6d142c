"""A sweep's outcome as people read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console

from comis_eval.cli.terminal import WRONG, cell, figure, line, short_hash, table, titled
from comis_eval.config import config_hash
from comis_eval.tuning.confirm import MARGIN
from comis_eval.tuning.sweep import SweepResult

_UNJUDGED = 8
"""How many unjudged (query, memory) pairs are named."""


def show_sweep(result: SweepResult, out: Console) -> None:
    """Print what was searched, what was found, what it gains unseen, and what to do."""
    _show_search(result, out)
    if result.choice is not None:
        _show_winner(result, out)
        _show_beside(result, out)
    else:
        _show_front(result, out)
    _show_held_out(result, out)
    _show_advice(result, out)


def _show_search(result: SweepResult, out: Console) -> None:
    counts, dataset = result.study.counts, result.dataset
    rag, utility = result.current.rag, result.current.harness.utility
    scored = sum(query.answerable for query in dataset.queries)
    names = ", ".join(objective.name for objective in result.study.objectives)
    on = f"{dataset.name} {short_hash(dataset.fingerprint)}, {len(dataset.queries)} queries"
    line(out, f"study {result.name}: {names} on {on}, seed {result.seed}, {result.sampler}")
    line(out, f"{scored} scored, {len(dataset.queries) - scored} unanswerable, 0 failed; "
              f"in use: config {short_hash(config_hash(result.current))}; gain linear, relevant "
              f"from grade 1, k0 {utility.k0 or rag.max_results}, "
              f"c0 {utility.c0 or rag.max_context_chars}")  # fmt: skip
    line(out, f"{counts.run} of {counts.planned} trials: {counts.distinct} distinct, "
              f"{counts.duplicate} repeated, {counts.infeasible} infeasible, "
              f"{counts.failed} failed")  # fmt: skip
    for note in result.notes:
        line(out, f"note: {note}")


def _show_winner(result: SweepResult, out: Console) -> None:
    record, space = result.winner, result.study.task.space
    if record is None or result.choice is None:
        return
    standing = space.values_of(result.current)
    rows = []
    for knob in space.knobs:
        here, there = standing.get(knob.path), record.params.get(knob.path)
        rows.append((
            cell(knob.path),
            cell(_shown(here)),
            cell(_shown(there), style="bold" if here != there else ""),
            cell(_range(result.flat.get(knob.path, ()))),
            cell(result.importances.get(knob.path)),
        ))  # fmt: skip
    columns = ("knob", "in use", "winner", "makes no difference within", "importance")
    titled(
        out,
        f"Knobs: in use, of the winning trial {record.number}, and how far each may move alone",
        table(columns, rows, numbers=("importance",), whole=("knob",)),
    )
    gain, floor = result.choice.tuned_gain, result.choice.floor
    line(out, f"gain on the queries of the search: {gain:+.4f}")
    if floor is not None:
        line(out, f"by luck alone the best of {floor.n_trials} trials gains {floor.mean:+.4f} on "
                  f"average, {floor.percentile_95:+.4f} one time in twenty")  # fmt: skip
    out.print()


def _show_beside(result: SweepResult, out: Console) -> None:
    if not result.references:
        return
    names = ("utility", "ndcg@10", "recall@5", "hit@5", "context_chars")
    rows = [
        (cell(name), *(cell(row.get(metric)) for metric in names))
        for name, row in result.references.items()
    ]
    title = "On the whole dataset, which the search has seen, beside plain rankings"
    titled(out, title, table(("", *names), rows, numbers=names))


def _show_front(result: SweepResult, out: Console) -> None:
    names = [objective.name for objective in result.study.objectives]
    rows = [
        (cell(str(record.number)), *(cell(value) for value in record.values))
        for record in result.study.pareto
    ]
    title = "The front: no trial is better on every objective"
    titled(out, title, table(("trial", *names), rows, numbers=names))


def _show_held_out(result: SweepResult, out: Console) -> None:
    looked = result.held_out
    if looked is None:
        return
    found, name = looked.comparison, result.study.objectives[0].name
    how = (
        "the test split, opened for this"
        if looked.kind == "test"
        else "every query, answered by a search that never saw it"
    )
    line(out, f"Held out: {how}", "bold")
    line(out, f"gain in {name} {found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}] (95%), "
              f"p {found.p:.4f}, t {found.p_t:.4f}{'' if found.agree else ' (they disagree)'}, "
              f"{found.n_queries} queries in {found.n_groups} groups")  # fmt: skip
    decided = found.queries_for_margin
    line(out, f"smallest difference that this many queries show: {figure(found.mdd)}")
    if decided is not None:
        line(out, f"a difference of {MARGIN} takes about {decided} queries")
    if looked.opened_before:
        line(out, f"queries of this dataset were held out {looked.opened_before} times before; "
                  "each look makes the next one less of a test", WRONG)  # fmt: skip
    rows = [
        (cell(category), cell(row["current"]), cell(row["winner"]), cell(row["low"]),
         cell(row["high"]), cell(str(row["n"])))
        for category, row in looked.per_category.items()
    ]  # fmt: skip
    columns = ("in use", "unseen winner", "low", "high", "n")
    titled(out, f"{name} by category", table(("category", *columns), rows, numbers=columns))


def _show_advice(result: SweepResult, out: Console) -> None:
    adopt = result.decision.outcome == "adopt"
    if result.choice is not None:
        line(out, result.decision.sentence, "bold green" if adopt else "bold")
    for reason in result.decision.reasons:
        line(out, f"- {reason}")
    if result.unjudged and result.choice is not None:
        before, after = result.judged
        line(out, f"judged@k: {figure(before)} in use, {figure(after)} of the winner")
        shown = ", ".join(f"{query} {memory}" for query, memory in result.unjudged[:_UNJUDGED])
        rest = len(result.unjudged) - _UNJUDGED
        line(out, f"never judged: {shown}" + (f" and {rest} more (--json)" if rest > 0 else ""))


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)


def _range(values: Iterable[Any]) -> str | None:
    seen = list(values)
    if not seen:
        return None
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in seen)
    if numbers and len(seen) == 2:
        return f"{seen[0]} to {seen[1]}"
    return ", ".join(map(str, seen))
