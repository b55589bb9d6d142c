"""What the policy keeps out: how far it came, and every memory that got through."""

from __future__ import annotations

from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL
from comis_eval.report.drawing import number
from comis_eval.report.funnel import funnel
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.page import figure, numbers
from comis_eval.report.sections.common import (
    TRUST,
    Named,
    alarm,
    note,
    of,
    query_link,
    shown,
    value_and_n,
)

_CAPTION = (
    "Memories that the policy keeps out (trust, scope) or that are planted, over all queries, by "
    "the stage they were still there after. What is left after budget is in somebody's context."
)
_UNFOLDED = 20


def section(named: Named) -> Html:
    """Lay out the funnel, the rates with their bounds, and the leaks."""
    counted = funnel(named)
    return joined(
        [
            note("Not measured: unwanted memories by stage.")
            if counted is None
            else figure(counted, "funnel", _CAPTION),
            _rates(named),
            *(_leaks(of(name, named), evaluation) for name, evaluation in named.items()),
        ]
    )


def _rates(named: Named) -> Html:
    found = [name if len(named) > 1 else "found" for name in named]
    heads = [word for name in found for word in (name, "n", "at most (95%)")]
    rows = [
        (metric, *(cell for e in named.values() for cell in _cells(metric, e)))
        for metric in TRUST
        if any(metric in e.means[ALL] for e in named.values())
    ]
    return table(["", *heads], rows)


def _cells(metric: str, evaluation: Evaluation) -> tuple[str, str, str]:
    bound = evaluation.bounds.get(metric)
    found = value_and_n(evaluation.means[ALL].get(metric))
    return (*found, "-" if bound is None else number(bound))


def _leaks(whose: str, evaluation: Evaluation) -> Html:
    queries, leaks = evaluation.counts["queries"], evaluation.leaks
    if not leaks:
        told = f"No leak{whose}: no context of {queries} queries held what the policy keeps out."
        return element("p", told, class_="calm")
    place_of = {query_id: place for place, query_id in enumerate(evaluation.query_ids)}
    rows = []
    for leak in leaks:
        query_id = leak.get("query_id")
        known = isinstance(query_id, str) and query_id in place_of
        asked = query_link(str(query_id), place_of[str(query_id)]) if known else shown(query_id)
        promised = "yes" if leak.get("why") in evaluation.enforces else "no"
        told_of = (shown(leak.get(key)) for key in ("memory_id", "why", "stage"))
        rows.append((asked, *told_of, promised))
    laid = table(["query", "memory", "why", "got in at", "promised to be stopped"], rows, texts=5)
    folded = laid if len(rows) <= _UNFOLDED else numbers(f"All {len(rows)}", laid)
    loud = f"{len(rows)} leaks{whose}: the policy keeps these out, and a context held them."
    return joined([alarm(loud), folded])
