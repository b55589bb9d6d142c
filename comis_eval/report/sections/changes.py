"""From the first evaluation to the second: what moved, for which queries, from which stage on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan

from comis_eval.comparison import STAGES, Compared, Delta, Parting, compare_evaluations
from comis_eval.evaluation import Evaluation
from comis_eval.report.browser import Side
from comis_eval.report.drawing import number, signed
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.movers import Moved, movers
from comis_eval.report.page import figure, numbers
from comis_eval.report.scatter import Scatter, scatter
from comis_eval.report.sections.common import note, query_link, shown

_LEAD = (
    "From {} to {}, paired over the queries where both are defined; differences are turned so that "
    "higher is better. 95% intervals by group; p corrected over the table by MaxT."
)

Partings = Sequence[Parting | None] | None
"""Where each query's two ways part; None as a whole: not known."""


def section(one: Side, two: Side, main: str, partings: Partings) -> Html:
    """Lay out the changes."""
    first, second, names = one.evaluation, two.evaluation, (one.name, two.name)
    compared = compare_evaluations(first, second)
    pairs = scatter(first, second, main, names)
    moved = movers(first, second, main)
    return joined(
        [
            element("p", _LEAD.format(*names), class_="lead"),
            _deltas(compared.headline, compared.level, names),
            _by_category(compared, names),
            figure(pairs, "scatter", _caption(pairs)),
            _stages(partings),
            element("h3", f"Queries that lost most in {main}"),
            _movers(moved.lost, first, names, partings),
            element("h3", f"Queries that gained most in {main}"),
            _movers(moved.gained, first, names, partings),
            *(note(f"Note: {told}") for told in compared.notes),
        ]
    )


def _deltas(deltas: Sequence[Delta], level: float, names: tuple[str, str]) -> Html:
    rows = [
        (
            delta.metric,
            number(delta.before),
            number(delta.after),
            signed(delta.figures.mean),
            _interval(delta),
            _p(delta.p_adjusted),
            _verdict(delta, level),
            str(delta.figures.n_queries),
        )
        for delta in deltas
    ]
    heads = ["metric", *names, "change", "95% interval", "p", "", "n"]
    return table(heads, rows, rows=[_verdict(delta, level) for delta in deltas])


def _by_category(compared: Compared, names: tuple[str, str]) -> Html:
    moved = [delta for delta in compared.categories if delta.figures.mean]
    rows = [
        (
            delta.category,
            delta.metric,
            number(delta.before),
            number(delta.after),
            signed(delta.figures.mean),
            _interval(delta),
            _p(delta.p_adjusted),
            str(delta.figures.n_queries),
        )
        for delta in moved
        if not isnan(delta.figures.mean)
    ]
    if not rows:
        return element("p", "No category moved.", class_="muted")
    heads = ["category", "metric", *names, "change", "95% interval", "p", "n"]
    marks = [_verdict(d, compared.level) for d in moved if not isnan(d.figures.mean)]
    laid = table(heads, rows, texts=2, rows=marks)
    return numbers(f"By category, the {len(rows)} figures that moved", laid)


def _verdict(delta: Delta, level: float) -> str:
    if not delta.p_adjusted <= level:  # true for NaN too
        return ""
    return "better" if delta.figures.mean > 0 else "worse"


def _interval(delta: Delta) -> str:
    low, high = delta.figures.low, delta.figures.high
    return "-" if isnan(low) else f"{signed(low)} to {signed(high)}"


def _p(p: float) -> str:
    return "-" if isnan(p) else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _caption(pairs: Scatter) -> str:
    above, below = ("worse", "better") if pairs.lower_is_better else ("better", "worse")
    defined = pairs.better + pairs.worse + pairs.same
    return (
        f"Of {defined} queries {pairs.better} are better, {pairs.worse} worse and {pairs.same} the "
        f"same in {pairs.metric}; {pairs.undefined} lack a value. Above the diagonal: {above}; "
        f"below it: {below}. A larger mark stands for several queries."
    )


def _stages(partings: Partings) -> Html:
    """For how many queries the two part at each stage."""
    if partings is None:
        return note("At which stage the two part is not known: one has no trace beside its file.")
    counts = Counter(None if parting is None else parting.stage for parting in partings)
    told = ", ".join(f"{stage} {counts[stage]}" for stage in STAGES if counts[stage])
    same = f"{counts[None]} of {len(partings)} queries give the same from search to budget"
    parts = f"the others first part at: {told}" if told else "none parts"
    return element("p", f"{same}; {parts}.")


def _movers(
    moved: Sequence[Moved], evaluation: Evaluation, names: tuple[str, str], partings: Partings
) -> Html:
    if not moved:
        return element("p", "None.", class_="muted")
    rows = [
        (
            query_link(evaluation.query_ids[m.query], m.query),
            shown(evaluation.categories[m.query]),
            _stage(partings, m.query),
            number(m.first),
            number(m.second),
            signed(m.second - m.first),
        )
        for m in moved
    ]
    return table(["query", "category", "parts at", *names, "change"], rows, texts=3)


def _stage(partings: Partings, query: int) -> str:
    found = None if partings is None else partings[query]
    return "-" if found is None else found.stage
