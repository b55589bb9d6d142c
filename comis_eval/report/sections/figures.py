"""The headline: the figures, the reference rows beside them and the headroom above."""

from __future__ import annotations

from math import isnan, nan

from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL
from comis_eval.report.drawing import LOOKS, number
from comis_eval.report.headline import ORACLE, headline, interval
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.page import figure, numbers
from comis_eval.report.sections.common import (
    BY_STAGE,
    HEADLINE,
    TRUST,
    Named,
    means_table,
    measured,
    note,
    value_and_n,
)

_CAPTION = (
    "{} among plain rankings of the same memories (squares), and the best order of the same "
    "candidates (oracle, triangle). Whiskers: 95% interval by group."
)


def section(named: Named, main: str) -> Html:
    """Lay out the headline."""
    first = next(iter(named.values()))
    top = measured(HEADLINE, named) or [main]
    tiles = element("div", *(_tile(metric, named) for metric in top), class_="tiles")
    standing = headline(named, main)
    whole = {**{name: e.means[ALL] for name, e in named.items()}, **first.references}
    return joined(
        [
            tiles,
            *_headroom(standing.headroom, main, first),
            figure(standing, "standing", _CAPTION.format(main)),
            means_table(whole, top, bold=list(named), caption="With the reference rows"),
            numbers("Every other figure", _rest(named, top)),
            *(note(f"Note: {told}") for told in _notes(named)),
        ]
    )


def _tile(metric: str, named: Named) -> Html:
    lines = [element("span", metric, class_="name")]
    for evaluation, (role, _) in zip(named.values(), LOOKS, strict=False):
        value, _ = value_and_n(evaluation.means[ALL].get(metric))
        several = f" {role}" if len(named) > 1 else ""
        lines.append(element("span", value, class_=f"figure{several}"))
    first = next(iter(named.values()))
    _, n = value_and_n(first.means[ALL].get(metric))
    low, high = interval(first, metric) if len(named) == 1 else (nan, nan)
    beside = f"n {n}" if isnan(low) else f"{number(low)} to {number(high)}, n {n}"
    return element("div", *lines, element("span", beside, class_="beside"), class_="tile")


def _headroom(headroom: float, main: str, evaluation: Evaluation) -> list[Html]:
    if isnan(headroom):
        return []
    here = evaluation.mean(main)
    told = (
        f"Headroom {number(headroom)}: the best order of what the lanes found reaches {main} "
        f"{number(here + headroom)}."
    )
    better = [
        f"{name} ({number(row[main].value)})"
        for name, row in evaluation.references.items()
        if name != ORACLE and main in row and row[main].value > here
    ]
    if not better:
        return [element("p", told, class_="calm")]
    loud = element("strong", f" Better ranked by {', '.join(better)}.")
    return [element("p", told, loud, class_="alarm")]


def _rest(named: Named, top: list[str]) -> Html:
    first = next(iter(named.values()))
    heads = [word for name in named for word in (name if len(named) > 1 else "figure", "n")]
    rows = [
        (metric, *(cell for e in named.values() for cell in value_and_n(e.means[ALL].get(metric))))
        for metric in measured(first.means[ALL], named)
        if metric not in (*top, *TRUST) and not metric.startswith(BY_STAGE)
    ]
    return table(["metric", *heads], rows)


def _notes(named: Named) -> list[str]:
    return list(dict.fromkeys(told for e in named.values() for told in e.notes))
