"""How a search went, and what quality costs."""

from __future__ import annotations

from math import nan

from comis_eval.report.drawing import number, plain, signed
from comis_eval.report.history import history
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.page import figure, numbers
from comis_eval.report.pareto import Pareto, pareto
from comis_eval.report.sections.common import note, shown
from comis_eval.report.study import Result, Study

_LUCK = (
    " The band is what the best of {} trials would seem to gain by luck alone, in 95 of 100 "
    "searches: a best inside it tells nothing."
)
_FRONT = "{} against {}: no trial beats one of the front on every objective at once."


def section(study: Study) -> Html:
    """Lay out the trials one by one."""
    found, floor, best = history(study), study.result.floor, study.result.best
    if found is None:
        return note("Not measured: the trials.")
    caption = f"{shown(found.objective)} on the tuning queries, trial by trial."
    caption += " What luck alone gives was not measured." if floor is None else ""
    caption += _LUCK.format(floor.n_trials) if floor is not None else ""
    told = []
    if best is not None:
        told.append(f"best on the tuning queries: trial {best.number}")
    if floor is not None:
        mean, most = _gain(floor.mean), _gain(floor.percentile_95)
        told.append(f"luck alone: {mean} on average, {most} at the 95th percentile")
    if found.failed:
        told.append(f"{found.failed} trials failed and have no figure")
    line = "; ".join(told)
    said = [element("p", f"{line[:1].upper()}{line[1:]}.")] if told else []
    return joined([figure(found, "history", caption), *said])


def costs(study: Study) -> Html:
    """Lay out the first objective against each of the others."""
    if len(study.result.objectives) < 2:
        return note("Not measured: the sweep had one objective, so there is no trade.")
    found = pareto(study)
    if not found:
        return note("Not measured: the Pareto front.")
    return joined(_trade(trade, f"pareto-{place}") for place, trade in enumerate(found))


def references(result: Result) -> Html:
    """Lay out the reference rows beside which the winner stands."""
    if not result.references:
        return note("Not measured: reference rows.")
    metrics = list(dict.fromkeys(metric for row in result.references.values() for metric in row))
    body = [
        (name, *(_figure(row.get(metric)) for metric in metrics))
        for name, row in result.references.items()
    ]
    return table(["", *metrics], body)


def _trade(trade: Pareto, ident: str) -> Html:
    front = sorted((t for t in trade.trades if t.front), key=lambda t: t.cost)
    rows = [(str(t.number), number(t.quality), plain(t.cost)) for t in front]
    laid = table(["trial", *trade.objectives], rows)
    caption = _FRONT.format(*map(shown, trade.objectives))
    return figure(trade, ident, caption, numbers(f"The front, {len(rows)} trials", laid))


def _gain(value: float | None) -> str:
    return signed(nan if value is None else value)


def _figure(value: float | None) -> str:
    return number(nan if value is None else value)
