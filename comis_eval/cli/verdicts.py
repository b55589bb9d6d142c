"""A verdict and other comparisons as tables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from comis_eval.cli.terminal import (
    UNDEFINED,
    WRONG,
    cell,
    line,
    more,
    short_hash,
    table,
    titled,
)
from comis_eval.comparison import Delta
from comis_eval.gating import Explanation, Side, Verdict
from comis_eval.gating.render import SHOWN, figure, headline, signed, stages
from comis_eval.metrics import ALL

_ID_CHARS = 32
_WHAT_CHARS = 60
_NAME_CHARS = 24
_FIGURES = ("before", "after", "difference", "interval", "p", "n")
_STYLES = {"regression": WRONG, "leak": WRONG, "undecided": "yellow", "improvement": "green"}


def show_verdict(verdict: Verdict, *, out: Console) -> None:
    """Print a verdict, the outcome last."""
    _show_sides(verdict.baseline, verdict.candidate, out)
    if verdict.touched:
        listed = ", ".join(verdict.touched[:SHOWN])
        rest = len(verdict.touched) - SHOWN
        line(
            out,
            f"the change touches what it is judged by, which was taken from commit "
            f"{short_hash(verdict.reference or '')}: {listed}"
            f"{f' and {rest} more' if rest > 0 else ''}",
            WRONG,
        )
    checks = [
        (c.name, cell(c.outcome, style=_STYLES.get(c.outcome, "")), cell(c.told, limit=400))
        for c in verdict.checks
    ]
    titled(out, "Checks", table(["check", "", "found"], checks, whole=["check"]))
    rows = [
        (
            *delta_cells(gated.delta),
            f"{gated.margin:g}",
            cell(gated.outcome, style=_STYLES.get(gated.outcome, "")),
        )
        for gated in verdict.gated
    ]
    columns = ["figure", *_FIGURES, "margin", "verdict"]
    titled(
        out,
        "Gated (differences: higher is better; p corrected; '?': a paired t test disagrees)",
        table(columns, rows, numbers=columns[1:-1]),
    )
    if verdict.explanation is not None:
        _show_explanation(verdict.explanation, out)
    if verdict.reported:
        show_deltas("Reported, not gated", verdict.reported, out)
    for note in verdict.notes:
        line(out, f"note: {note}")
    for reason in verdict.reasons:
        line(out, f"- {reason}")
    style = _STYLES.get(verdict.outcome, "bold")
    line(out, f"{headline(verdict)} (exit status {verdict.exit_status})", style)


def show_deltas(
    title: str, deltas: Iterable[Delta], out: Console, *, names: Iterable[str] = ()
) -> None:
    """Print differences as a table.

    Args:
        title: Its title.
        deltas: One a row.
        out: Where to.
        names: What the other evaluations are called; none when there is only one.
    """
    called = list(names)
    columns = [*(["evaluation"] if called else []), "figure", *_FIGURES]
    rows = [
        (*([called[delta.other - 1]] if called else []), *delta_cells(delta)) for delta in deltas
    ]
    titled(out, title, table(columns, rows, numbers=_FIGURES))


def delta_cells(delta: Delta) -> tuple[object, ...]:
    """A figure's name, both values, the difference, its interval, p and n."""
    f = delta.figures
    name = delta.metric if delta.category == ALL else f"{delta.metric} of {delta.category}"
    return (
        cell(name, limit=_NAME_CHARS + len(delta.metric)),
        figure(delta.before),
        figure(delta.after),
        signed(f.mean),
        f"{signed(f.low)} .. {signed(f.high)}" if f.interval != "undefined" else UNDEFINED,
        figure(delta.p_adjusted) + ("" if f.agree else " ?"),
        str(f.n_queries),
    )


def _show_sides(baseline: Side, candidate: Side, out: Console) -> None:
    line(
        out,
        f"{baseline.dataset} {baseline.version}  fingerprint {short_hash(baseline.fingerprint)}  "
        f"split {baseline.split}  {baseline.queries} queries",
        "bold",
    )
    for what, side in (("baseline", baseline), ("candidate", candidate)):
        line(
            out,
            f"{what}: {side.label}  {side.pipeline}  config {short_hash(side.config_hash)}  "
            f"{side.failed} failed",
        )
    out.print()


def _show_explanation(found: Explanation, out: Console) -> None:
    name = found.metric if found.category == ALL else f"{found.metric} of {found.category}"
    line(out, f"What moved in {name}: {found.lost} queries lost, {found.gained} gained", "bold")
    if found.stages:
        line(
            out,
            f"of the {len(found.moved)} that moved most, the two first part at: {stages(found)}",
        )
    if found.untraced:
        line(out, f"no stage is told: {found.untraced}")
    rows = [
        (
            cell(one.query_id, limit=_ID_CHARS),
            cell(one.category, limit=_NAME_CHARS),
            figure(one.before),
            figure(one.after),
            "" if one.parting is None else one.parting.stage,
            cell("" if one.parting is None else one.parting.what, limit=_WHAT_CHARS),
        )
        for one in found.moved[:SHOWN]
    ]
    columns = ["query", "category", "before", "after", "parts at", "in"]
    out.print(table(columns, rows, numbers=columns[2:4]))
    rest = more(SHOWN, len(found.moved), "--json")
    if rest is not None:
        line(out, rest)
    out.print()
