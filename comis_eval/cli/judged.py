"""What ``comis-eval judge`` prints of agreement and of an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from rich.console import Console

from comis_eval.cli.terminal import WRONG, console, line, more, print_json, table, titled
from comis_eval.judge import agreement as agreements
from comis_eval.judge import export as exports
from comis_eval.text import printable

_LISTED = 20


def tell_agreement(
    taken: agreements.Given, unsettled: Sequence[exports.Unsettled], as_json: bool
) -> None:
    """Print how far the judges agree, and where they do not."""
    found = agreements.compared(taken.grades)
    if as_json:
        print_json(
            {
                "compared": [_compared_document(one) for one in found],
                "unsettled": _unsettled_document(unsettled),
                **left_out_document(taken),
            }
        )
        return
    out = console()
    if not found:
        line(out, "no pair was judged twice: let another person judge, or see --second-pass")
    else:
        show_agreement(found, out)
        _show_unsettled(unsettled, out)
    _show_left_out(taken, out)


def show_agreement(found: Sequence[agreements.Compared], out: Console) -> None:
    """Print one row a comparison."""
    head = list(agreements.TABLE)
    titled(
        out,
        "Agreement: quadratically weighted kappa",
        table(head, agreements.rows(found), numbers=head[2:]),
    )


def _show_unsettled(unsettled: Sequence[exports.Unsettled], out: Console) -> None:
    if not unsettled:
        return
    rows = [
        (one.pair.query_id, one.pair.memory_id, _told(one.grades)) for one in unsettled[:_LISTED]
    ]
    titled(
        out,
        f"{len(unsettled)} pairs on which they differ",
        table(["query", "memory", "grades"], rows),
        rest=more(_LISTED, len(unsettled), "--disagreements FILE, or --json"),
    )


def _show_left_out(taken: agreements.Given, out: Console) -> None:
    for pairs, why in (
        (taken.stale, "their texts have changed since; judge them again"),
        (taken.unknown, "the dataset no longer has the query or the memory"),
    ):
        if pairs:
            first = " ".join(pairs[0][1])
            line(out, f"{len(pairs)} grades do not count, {first} first: {why}", WRONG)


def show_export(
    path: Path, planned: exports.Export, taken: agreements.Given, replace: bool, out: Console
) -> None:
    """Print what an export did, and what it left to people."""
    line(
        out,
        f"{path}: {len(planned.added)} judgments added, {planned.same} were there already, "
        f"{len(planned.differing)} {'replaced' if replace else 'differ and were left'}, "
        f"{len(planned.unsettled)} unsettled and not exported",
        "bold",
    )
    if planned.differing:
        rows = [(*d.pair, str(d.there), str(d.judged)) for d in planned.differing[:_LISTED]]
        titled(
            out,
            "Replaced" if replace else "Left as they were (--replace takes the judges' grade)",
            table(["query", "memory", "there", "judged"], rows, numbers=["there", "judged"]),
            rest=more(_LISTED, len(planned.differing), "--json"),
        )
    _show_unsettled(planned.unsettled, out)
    if planned.unsettled:
        line(out, "a third person settles them: --disagreements FILE, then judge --judge NAME "
             "--pairs FILE, then --export --resolver NAME")  # fmt: skip
    _show_left_out(taken, out)
    for ids, what in (
        (planned.unanswered, "have no memory of grade 1 or more: judge deeper, or set "
         "answerable: false in queries.jsonl"),
        (planned.answered, "are answerable: false but have one: drop the one or the other"),
    ):  # fmt: skip
        if ids:
            shown = ", ".join(printable(one, limit=40) for one in ids[:_LISTED])
            rest = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
            line(out, f"{len(ids)} queries {what}: {shown}{rest}", WRONG)
    line(out, "say in dataset.yaml (judgedBy) who judged")


def _told(given: Mapping[agreements.Grader, int]) -> str:
    return ", ".join(f"{grader}: {grade}" for grader, grade in given.items())


def _compared_document(one: agreements.Compared) -> dict[str, Any]:
    found = one.agreement._asdict()
    return {
        "first": one.first._asdict(),
        "second": one.second._asdict(),
        **{k: None if isinstance(v, float) and isnan(v) else v for k, v in found.items()},
        "disagreements": [
            {"query": d.pair.query_id, "memory": d.pair.memory_id,
             "first": d.first, "second": d.second}
            for d in one.disagreements
        ],
    }  # fmt: skip


def _unsettled_document(unsettled: Sequence[exports.Unsettled]) -> list[dict[str, Any]]:
    return [
        {
            "query": one.pair.query_id,
            "memory": one.pair.memory_id,
            "grades": [
                {**grader._asdict(), "grade": grade} for grader, grade in one.grades.items()
            ],
        }
        for one in unsettled
    ]


def left_out_document(taken: agreements.Given) -> dict[str, Any]:
    """Return the grades that do not count, as JSON."""
    return {
        what: [{**grader._asdict(), "query": p.query_id, "memory": p.memory_id} for grader, p in of]
        for what, of in (("stale", taken.stale), ("unknown", taken.unknown))
    }


def export_document(path: Path, planned: exports.Export, replace: bool) -> dict[str, Any]:
    """Return what an export did, as JSON."""
    return {
        "qrels": str(path),
        "added": len(planned.added),
        "same": planned.same,
        "differing": [
            {"query": d.pair.query_id, "memory": d.pair.memory_id, "there": d.there,
             "judged": d.judged, "replaced": replace}
            for d in planned.differing
        ],
        "unsettled": _unsettled_document(planned.unsettled),
        "unanswered": list(planned.unanswered),
        "answered": list(planned.answered),
    }  # fmt: skip
