"""The page of a sweep: what it advises, what that gains, and how it was found."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan

from comis_eval.report.drawing import number, plain, signed
from comis_eval.report.flat import current_values, flat, searched
from comis_eval.report.gains import gains
from comis_eval.report.history import history
from comis_eval.report.importance import importance
from comis_eval.report.markup import Html, element, joined, table
from comis_eval.report.page import Page, Section, figure, numbers
from comis_eval.report.pareto import pareto
from comis_eval.report.study import Confirmation, Result, Study, Value
from comis_eval.text import printable

_ID = 80


def study_page(study: Study) -> Page:
    """Lay out the page; what the study did not measure is said in its place."""
    result = study.result
    name = printable(result.study, limit=_ID)
    title = f"Sweep {name}"
    sections = [
        Section("advice", "Recommendation", _advice(study)),
        Section("gains", "Gain by category", _gains(study)),
        Section("search", "Search", _search(study)),
        Section("knobs", "Knobs", _knobs(study)),
        Section("costs", "Quality and cost", _costs(study)),
        Section("references", "Reference rows", _references(result)),
    ]
    foot = element("p", "A dash is a value that is undefined; it is not 0.")
    return Page(title, _head(title, result), sections, (), foot)


def _head(title: str, result: Result) -> Html:
    data = result.dataset
    counts = ", ".join(
        f"{count} {printable(what, limit=24)}" for what, count in result.counts.items()
    )
    facts = [
        ("Dataset", f"{data.get('name', '-')} {data.get('version', '')}"),
        ("Fingerprint", data.get("fingerprint", "-")),
        ("Objective", ", ".join(result.objectives) or "-"),
        ("Sampler", f"{result.sampler or '-'}, seed {'-' if result.seed is None else result.seed}"),
        ("Trials", counts or "-"),
    ]
    pairs = [joined([element("dt", term), element("dd", what)]) for term, what in facts]
    return joined([element("h1", title), element("dl", *pairs, class_="facts")])


def _advice(study: Study) -> Html:
    result = study.result
    parts: list[Html] = []
    if result.decision is None:
        parts.append(_not_measured("a recommendation"))
    else:
        adopt = result.decision.outcome == "adopt"
        outcome = printable(result.decision.outcome, limit=_ID)
        reasons = [element("li", reason) for reason in result.decision.reasons]
        said = element(
            "p",
            element("strong", outcome[:1].upper() + outcome[1:]),
            class_="calm" if adopt else "note",
        )
        parts += [said, *([element("ul", *reasons)] if reasons else [])]
    parts.append(_confirmation(result.confirmation))
    if result.winner is not None:
        now = current_values(study)
        moved = [
            (path, _value(now[path]) if path in now else "-", _value(value))
            for path, value in result.winner.values.items()
            if path not in now or now[path] != value
        ]
        parts.append(
            table(
                ["knob", "current", "winner"],
                moved,
                caption=f"Trial {result.winner.number}, the winner",
            )
            if moved
            else element("p", "The winner has the current settings.")
        )
        if result.winner.rag:
            parts.append(numbers("The rag fragment to paste", element("pre", result.winner.rag)))
    return joined(parts)


def _confirmation(found: Confirmation | None) -> Html:
    if found is None:
        return _not_measured("the gain on queries that the search never saw")
    ends = [nan if end is None else end for end in (found.low, found.high)]
    tiles = [
        ("gain on unseen queries", signed(found.mean), "winner minus current"),
        ("95% interval", f"{signed(ends[0])} to {signed(ends[1])}", "by group"),
        ("p", _p(found.p), f"paired t {_p(found.p_t)}"),
        ("least that shows", number(nan if found.mdd is None else found.mdd),
         f"{found.n_queries or '-'} queries, {found.n_groups or '-'} groups"),
    ]  # fmt: skip
    return element(
        "div",
        *(
            element(
                "div",
                element("span", name, class_="name"),
                element("span", value, class_="figure"),
                element("span", beside, class_="beside"),
                class_="tile",
            )
            for name, value, beside in tiles
        ),
        class_="tiles",
    )


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def _gains(study: Study) -> Html:
    found = gains(study)
    if found is None:
        return _not_measured("the gain by category")
    rows = [
        (c.category, str(c.n), number(c.current), number(c.winner), signed(c.gain),
         "-" if isnan(c.low) else f"{signed(c.low)} to {signed(c.high)}")
        for c in found.changes
    ]  # fmt: skip
    heads = ["category", "n", "current", "winner", "gain", "95% interval"]
    return figure(
        found, "gains",
        f"Winner minus current in {printable(found.objective, limit=_ID)}, with 95% intervals. A "
        "triangle: the interval leaves out 0.",
        numbers("As numbers", table(heads, rows)),
    )  # fmt: skip


def _search(study: Study) -> Html:
    found = history(study)
    if found is None:
        return _not_measured("the trials")
    luck = (
        f"The band is what the best of {study.result.floor.n_trials} trials would seem to gain by "
        "luck, in 95 of 100 searches: a best inside it says nothing."
        if study.result.floor is not None
        else "What luck alone would give was not measured."
    )
    failed = f" {found.failed} trials have no figure." if found.failed else ""
    drawn = figure(
        found,
        "history",
        f"{printable(found.objective, limit=_ID)} on the tuning queries, trial by trial. {luck}{failed}",
    )
    floor = study.result.floor
    best = study.result.best
    told = []
    if floor is not None:
        told.append(
            f"By luck: {signed(floor.mean)} on average, {signed(floor.percentile_95)} at the 95th percentile"
        )
    if best is not None:
        told.append(f"best on the tuning queries: trial {best.number}")
    return joined([drawn, *([element("p", f"{'; '.join(told)}.")] if told else [])])


def _knobs(study: Study) -> Html:
    parts: list[Html] = []
    shares, region = importance(study), flat(study)
    if shares is None:
        parts.append(_not_measured("the importance of the knobs"))
    else:
        parts.append(
            figure(
                shares, "importance", "Share of what the best trials owe to each knob (PED-ANOVA)."
            )
        )
    if region is None:
        parts.append(_not_measured("the flat region"))
    else:
        if region.regions:
            parts.append(
                figure(
                    region, "flat",
                    "Bar: what the knob may be within noise of the best; line: what was searched. A "
                    "wide bar is a knob that need not be tuned."
                )
            )  # fmt: skip
        rows = [
            (o.knob, ", ".join(map(_value, o.good)), _value(o.current), _value(o.winner))
            for o in region.options
        ]
        if rows:
            parts.append(table(["knob", "as good as the best", "current", "winner"], rows, texts=4))
    what = searched(study)
    if what:
        parts.append(
            numbers("What was searched", table(["knob", "values"], list(what.items()), texts=2))
        )
    return joined(parts)


def _costs(study: Study) -> Html:
    found = pareto(study)
    if not found:
        if len(study.result.objectives) < 2:
            return element("p", "Not measured: the sweep had one objective.", class_="note")
        return _not_measured("the Pareto front")
    return joined(
        figure(
            trade, f"pareto-{place}",
            f"{printable(trade.objectives[0], limit=_ID)} against {printable(trade.objectives[1], limit=_ID)}, "
            "every feasible trial once. No trial beats one of the front on every objective at once.",
            numbers("The front", _front(trade.objectives, [t[:3] for t in trade.trades if t.front])),
        )
        for place, trade in enumerate(found)
    )  # fmt: skip


def _front(objectives: tuple[str, str], trades: list[tuple[int, float, float]]) -> Html:
    rows = [
        (str(trial), number(quality), plain(cost))
        for trial, quality, cost in sorted(trades, key=lambda t: t[2])
    ]
    return table(["trial", *objectives], rows)


def _references(result: Result) -> Html:
    rows = result.references
    if not rows:
        return _not_measured("reference rows")
    metrics = list(dict.fromkeys(metric for row in rows.values() for metric in row))
    return table(["", *metrics], [(name, *_row(row, metrics)) for name, row in rows.items()])


def _row(row: Mapping[str, float | None], metrics: list[str]) -> list[str]:
    return [number(nan if row.get(metric) is None else row[metric] or 0.0) for metric in metrics]


def _not_measured(what: str) -> Html:
    return element("p", f"Not measured: {what}.", class_="note")


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return plain(value) if isinstance(value, int | float) else printable(str(value), limit=_ID)
