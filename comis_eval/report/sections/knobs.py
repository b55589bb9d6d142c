"""Which knobs matter, and how far each may move without harm."""

from __future__ import annotations

from comis_eval.report.drawing import plain
from comis_eval.report.flat import Flat, flat, searched
from comis_eval.report.importance import importance
from comis_eval.report.markup import Html, joined, table
from comis_eval.report.page import figure, numbers
from comis_eval.report.sections.common import note, shown
from comis_eval.report.study import Study, Value

_IMPORTANCE = "Share of the difference between good trials and the rest that each knob explains."
_FLAT = (
    "Box: what the knob may be within noise of the best; line: what was searched. A wide box is a "
    "knob that need not be tuned."
)


def section(study: Study) -> Html:
    """Lay out importances, the flat region and the space."""
    shares, region = importance(study), flat(study)
    space = [(path, shown(values)) for path, values in searched(study).items()]
    parts = [
        note("Not measured: the importance of the knobs.")
        if shares is None
        else figure(shares, "importance", _IMPORTANCE),
        note("Not measured: the flat region.") if region is None else _region(region),
    ]
    if space:
        laid = table(["knob", "values"], space, texts=2)
        parts.append(numbers("What was searched", laid))
    return joined(parts)


def told_value(value: Value) -> str:
    """A knob's value as a configuration file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return plain(value) if isinstance(value, int | float) else shown(value)


def _region(region: Flat) -> Html:
    rows = [
        (o.knob, ", ".join(map(told_value, o.good)), told_value(o.current), told_value(o.winner))
        for o in region.options
    ]
    heads = ["knob", "as good as the best", "current", "winner"]
    return joined(
        [
            *([figure(region, "flat", _FLAT)] if region.regions else []),
            *([table(heads, rows, texts=4)] if rows else []),
        ]
    )
