"""The query browser's place on the page; the script fills it."""

from __future__ import annotations

from comis_eval.report.markup import Html, element, joined
from comis_eval.report.sections.common import note

_NO_TRACE = (
    "There is no trace beside the evaluation file, so what became of each candidate is not known. "
    "Evaluate again with --out, and keep NAME.trace.parquet beside NAME.json."
)
_LEAD = (
    "Choose a query to see every stage of its recall, every candidate with its ranks, factors and "
    "scores, and what became of it."
)
_IDS_ONLY = " Ids only: a report written with --dataset shows texts, trust and grades as well."
_ORDERS = (
    ("worst", "worst first"), ("lost", "lost most first"), ("gained", "gained most first"),
    ("file", "as in the dataset"),
)  # fmt: skip


def section(*, traced: bool, with_texts: bool, two: bool) -> Html:
    """Lay out the chooser, and where the chosen query goes."""
    if not traced:
        return note(_NO_TRACE)
    moved = ("lost", "gained")
    orders = [
        element("option", told, value=value) for value, told in _ORDERS if two or value not in moved
    ]
    controls = element(
        "div",
        element("label", "Find", for_="find"),
        Html('<input id="find" type="search" autocomplete="off" spellcheck="false">'),
        element("label", "Order", for_="order"),
        element("select", *orders, id="order"),
        element("p", class_="count", aria_live="polite"),
    )
    chooser = element("div", controls, element("ol"), class_="chooser")
    chosen = element("div", class_="chosen", aria_live="polite")
    return joined(
        [
            element("p", _LEAD if with_texts else _LEAD + _IDS_ONLY, class_="lead"),
            Html("<noscript><p>The query browser needs JavaScript.</p></noscript>"),
            Html(f'<div id="browser" class="browser" hidden>{chooser}{chosen}</div>'),
        ]
    )
