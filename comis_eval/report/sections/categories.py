"""Figures by category, with intervals that say how little a few queries tell."""

from __future__ import annotations

from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL
from comis_eval.report.categories import categories
from comis_eval.report.markup import Html, joined
from comis_eval.report.page import figure, numbers
from comis_eval.report.sections.common import HEADLINE, Named, means_table, measured

_CAPTION = (
    "{} by category; in brackets n. Whiskers: 95% bootstrap interval by group. Where two intervals "
    "overlap widely, the queries cannot tell the categories apart."
)


def section(named: Named, main: str) -> Html:
    """Lay out the main figure, utility, and the numbers of every headline figure."""
    pictured = measured((main, "utility"), named)
    pictures = [
        figure(categories(named, metric), f"categories-{place}", _CAPTION.format(metric))
        for place, metric in enumerate(pictured)
    ]
    top = measured(HEADLINE, named) or [main]
    tables = [
        means_table(
            {_label(category, e): row for category, row in e.means.items()},
            top,
            bold=[ALL],
            caption=name if len(named) > 1 else "",
        )
        for name, e in named.items()
    ]
    return joined([*pictures, numbers("As numbers", *tables)])


def _label(category: str, evaluation: Evaluation) -> str:
    outside = category not in (ALL, *evaluation.settings["headline"])
    return f"{category} (not in all)" if outside else category
