"""How far each boost moves scores."""

from __future__ import annotations

from collections.abc import Sequence

from comis_eval.report.browser import Side
from comis_eval.report.drawing import number
from comis_eval.report.factors import Spread, factors
from comis_eval.report.markup import Html, joined, table
from comis_eval.report.page import figure, numbers
from comis_eval.report.sections.common import note

_CAPTION = (
    "What each boost{} multiplies scores by. Thin line: least to most; thick: 5% to 95%; box: the "
    "middle half; mark: median. On the dashed line a boost moves nothing."
)
_HEADS = ("factor", "least", "5%", "25%", "median", "75%", "95%", "most", "unmoved", "n")


def section(sides: Sequence[Side]) -> Html:
    """Lay out the factors of each evaluation that has a trace."""
    several = len(sides) > 1
    return joined(
        _of(side, f"factors-{place}", f" of {side.name}" if several else "")
        for place, side in enumerate(sides)
    )


def _of(side: Side, ident: str, whose: str) -> Html:
    if side.trace is None:
        return note(f"Not measured{whose}: there is no trace beside the evaluation file.")
    found = factors(side.trace)
    if found is None:
        return note(f"Not measured{whose}: no lane found a candidate.")
    tables = (
        _table("all candidates", found.candidates),
        _table("in the context", found.context),
    )
    return figure(found, ident, _CAPTION.format(whose), numbers("As numbers", *tables))


def _table(caption: str, spreads: Sequence[Spread]) -> Html:
    rows = [
        (s.factor, *(number(value) for value in s[1:8]), f"{s.neutral:.0%}", str(s.n))
        for s in spreads
    ]
    return table(_HEADS, rows, caption=caption)
