"""What a sweep recommends, what that gains on unseen queries, and what to paste."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

from comis_eval.report.drawing import number, signed
from comis_eval.report.flat import current_values
from comis_eval.report.gains import gains
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.page import figure, numbers
from comis_eval.report.sections.common import note, shown
from comis_eval.report.sections.knobs import told_value
from comis_eval.report.study import Advice, Chosen, Confirmation, Study

_CAPTION = "Winner minus current in {}, with 95% intervals. A triangle: the interval leaves out 0."


def section(study: Study) -> Html:
    """Lay out verdict, confirmation and the winner's settings."""
    result = study.result
    return joined(
        [
            _verdict(result.decision),
            _confirmed(result.confirmation),
            *([] if result.winner is None else _winner(result.winner, study)),
            *(note(f"Note: {told}") for told in result.notes),
        ]
    )


def by_category(study: Study) -> Html:
    """Lay out the gain in each category."""
    found = gains(study)
    if found is None:
        return note("Not measured: the gain by category.")
    rows = [
        (
            change.category,
            str(change.n),
            number(change.current),
            number(change.winner),
            signed(change.gain),
            "-" if isnan(change.low) else f"{signed(change.low)} to {signed(change.high)}",
        )
        for change in found.changes
    ]
    heads = ["category", "n", "current", "winner", "gain", "95% interval"]
    caption = _CAPTION.format(shown(found.objective))
    return figure(found, "gains", caption, numbers("As numbers", table(heads, rows)))


def _verdict(advice: Advice | None) -> Html:
    if advice is None:
        return note("Not measured: a recommendation.")
    outcome = shown(advice.outcome)
    said = element("strong", outcome[:1].upper() + outcome[1:])
    verdict = element("p", said, class_="calm" if advice.outcome == "adopt" else "note")
    reasons = [element("li", reason) for reason in advice.reasons]
    return joined([verdict, *([element("ul", *reasons)] if reasons else [])])


def _confirmed(found: Confirmation | None) -> Html:
    if found is None:
        return note("Not measured: the gain on queries that the search never saw.")
    gain, low, high, least = (
        nan if value is None else value for value in (found.mean, found.low, found.high, found.mdd)
    )
    counted = f"{shown(found.n_queries)} queries, {shown(found.n_groups)} groups"
    return _tiles(
        [
            ("gain on unseen queries", signed(gain), f"95%: {signed(low)} to {signed(high)}"),
            ("p by permutation", _p(found.p), f"paired t: {_p(found.p_t)}"),
            ("least gain that would show", number(least), counted),
        ]
    )


def _tiles(tiles: Sequence[tuple[str, str, str]]) -> Html:
    laid = [
        element(
            "div",
            element("span", name, class_="name"),
            element("span", value, class_="figure"),
            element("span", beside, class_="beside"),
            class_="tile",
        )
        for name, value, beside in tiles
    ]
    return element("div", *laid, class_="tiles roomy")


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def _winner(winner: Chosen, study: Study) -> list[Html]:
    now = current_values(study)
    moved = [
        (path, told_value(now[path]) if path in now else "-", told_value(value))
        for path, value in winner.values.items()
        if path not in now or now[path] != value
    ]
    caption = f"Trial {winner.number}, the winner: what it changes"
    changes = (
        table(["knob", "current", "winner"], moved, caption=caption)
        if moved
        else element("p", "The winner has the current settings.")
    )
    paste = [numbers("The fragment to paste", element("pre", winner.rag))] if winner.rag else []
    return [changes, *paste]
