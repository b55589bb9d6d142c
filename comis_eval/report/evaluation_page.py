"""The page of one evaluation, or of two of the same queries side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isnan

import numpy as np

from comis_eval.config import Config
from comis_eval.evaluation import Evaluation
from comis_eval.metrics import ALL, Mean
from comis_eval.report.browser import Side, browser
from comis_eval.report.categories import categories
from comis_eval.report.differences import (
    Difference,
    Moved,
    changed_settings,
    differences,
    movers,
)
from comis_eval.report.drawing import number, plain, signed
from comis_eval.report.factors import Spread, factors
from comis_eval.report.funnel import funnel
from comis_eval.report.headline import headline, interval
from comis_eval.report.lanes import lanes
from comis_eval.report.markup import Html, data_block, element, joined, table
from comis_eval.report.page import Page, Section, figure, numbers
from comis_eval.report.scatter import scatter
from comis_eval.report.texts import Texts
from comis_eval.text import printable

HEADLINE = (
    "ndcg@10", "recall@5", "hit@5", "mrr@10", "context_recall", "utility", "judged@5",
)  # fmt: skip
"""The figures that stand at the top, those of them that were measured."""

MAIN = ("ndcg@10", "utility", "context_recall")
"""The figure that pictures and the list of queries show: the first of these that was measured."""

_TRUST = (
    "policy_leak", "scope_leak", "laundered", "resurrected", "over_block", "trust_inversion@5",
    "untrusted_share@5",
)  # fmt: skip
_ID = 80


def evaluation_page(sides: Sequence[Side], texts: Texts | None) -> Page:
    """Lay out the page.

    Args:
        sides: One evaluation, or two of the same queries.
        texts: What the dataset adds; None: ids only.
    """
    named = {side.name: side.evaluation for side in sides}
    first = sides[0].evaluation
    main = main_metric(first)
    data = []
    if any(side.trace is not None for side in sides):
        shown = browser(sides, main, texts)
        data = [data_block("overview", shown.overview), data_block("memories", shown.memories)]
        data += [data_block(f"query-{place}", told) for place, told in enumerate(shown.queries)]
    sections = [
        Section("figures", "Figures", _figures(named, main)),
        *(_comparison(sides, main) if len(sides) == 2 else ()),
        Section("categories", "Categories", _categories(named, main)),
        Section("factors", "Score factors", _factors(sides)),
        Section("trust", "Trust", _trust(named)),
        Section("lanes", "Lanes", _lanes(named)),
        Section("queries", "Queries", _queries(bool(data), texts)),
        Section("settings", "Settings", _settings(named)),
    ]
    name = printable(str(first.dataset.get("name")), limit=_ID)
    title = (
        f"Recall on {name}: {' against '.join(reversed(named))}"
        if len(named) > 1
        else f"Recall on {name}"
    )
    return Page(title, _head(title, named), sections, data, _foot(first))


def main_metric(evaluation: Evaluation) -> str:
    """The figure that pictures show."""
    measured = [name for name in (*MAIN, *evaluation.values) if name in evaluation.values]
    return measured[0]


def _head(title: str, named: Mapping[str, Evaluation]) -> Html:
    first = next(iter(named.values()))
    data, settings = first.dataset, first.settings
    facts = [
        ("Dataset", f"{data.get('name')} {data.get('version', '')}, split {data.get('split')} (seed {first.seed})"),
        ("Fingerprint", str(data.get("fingerprint"))),
        ("Relevance", f"gain {settings.get('gain')}, relevant from grade {settings.get('relevance_level')}, "
                      f"k {', '.join(map(str, settings.get('k', ())))}; utility at k0 {settings.get('k0')}, "
                      f"c0 {settings.get('c0')}"),
    ]  # fmt: skip
    for name, evaluation in named.items():
        counts = evaluation.counts
        told = (
            f"{counts['queries']} queries: {counts.get('scored')} scored, "
            f"{counts.get('unanswerable')} unanswerable, {counts.get('failed')} failed; "
            f"{evaluation.pipeline}, configuration {evaluation.config_hash[:12]}"
        )
        facts.append((name if len(named) > 1 else "Queries", told))
    pairs = [joined([element("dt", term), element("dd", what)]) for term, what in facts]
    return joined([element("h1", title), element("dl", *pairs, class_="facts"), *_alarms(named)])


def _alarms(named: Mapping[str, Evaluation]) -> list[Html]:
    """What nobody may overlook, above everything else."""
    told: list[tuple[str, str]] = []
    for name, evaluation in named.items():
        whose = f" in {name}" if len(named) > 1 else ""
        for lane in evaluation.dead_lanes:
            told.append((f"Dead lane{whose}: {lane}", " found nothing for any query."))
        if failed := evaluation.counts.get("failed"):
            told.append((f"{failed} queries failed{whose}", "; they score 0 in every mean."))
        if evaluation.leaks:
            broken = sum(leak.get("why") in evaluation.enforces for leak in evaluation.leaks)
            promise = f"; {broken} of a kind that the pipeline promises to stop" if broken else ""
            told.append((f"{len(evaluation.leaks)} leaks{whose}", f"{promise}. See Trust."))
    return [element("p", element("strong", what), rest, class_="alarm") for what, rest in told]


def _figures(named: Mapping[str, Evaluation], main: str) -> Html:
    first = next(iter(named.values()))
    main_names = [name for name in HEADLINE if name in first.values]
    tiles = [_tile(name, named) for name in main_names if name in first.means[ALL]]
    standing = headline(named, main)
    parts = [element("div", *tiles, class_="tiles")]
    if not isnan(standing.headroom):
        parts.append(_headroom(standing.headroom, main, first))
    parts.append(
        figure(
            standing, "standing",
            f"{main} of this evaluation among reference rankings of the same memories. Circle or "
            "diamond with its 95% interval: evaluated; square: a plain ranking; the oracle is the "
            "best order of the same candidates."
        )
    )  # fmt: skip
    whole = {**{name: e.means[ALL] for name, e in named.items()}, **first.references}
    marks = ["this" if name in named else "" for name in whole]
    parts.append(_means_table(whole, main_names, marks, "Reference rows beside it"))
    rest = [name for name in first.means[ALL] if name not in main_names and name not in _TRUST]
    every = [
        (metric, *(cell for e in named.values() for cell in _value_n(e.means[ALL].get(metric))))
        for metric in rest
        if not metric.startswith("unwanted_after_")
    ]
    heads = [word for name in named for word in (name if len(named) > 1 else "figure", "n")]
    parts.append(numbers("Every other figure", table(["metric", *heads], every)))
    return joined([*parts, *_notes(named)])


def _tile(metric: str, named: Mapping[str, Evaluation]) -> Html:
    lines = [element("span", metric, class_="name")]
    for (_, evaluation), role in zip(named.items(), ("first", "second"), strict=False):
        mean = evaluation.means[ALL].get(metric)
        several = f" {role}" if len(named) > 1 else ""
        lines.append(
            element("span", "-" if mean is None else number(mean.value), class_=f"figure{several}")
        )
    first = next(iter(named.values()))
    mean = first.means[ALL][metric]
    low, high = interval(first, metric)
    beside = (
        f"n {mean.n}"
        if isnan(low) or len(named) > 1
        else f"{number(low)} to {number(high)}, n {mean.n}"
    )
    return element("div", *lines, element("span", beside, class_="beside"), class_="tile")


def _headroom(headroom: float, main: str, evaluation: Evaluation) -> Html:
    best = evaluation.mean(main) + headroom
    better = [
        f"{name} ({number(row[main].value)})"
        for name, row in evaluation.references.items()
        if name != "oracle" and main in row and row[main].value > evaluation.mean(main)
    ]
    told = f"Headroom {number(headroom)}: the best order of what the lanes found reaches {main} {number(best)}."
    if not better:
        return element("p", told, class_="calm")
    return element(
        "p", told, element("strong", f" Ranked better by {', '.join(better)}."), class_="alarm"
    )


def _means_table(
    rows: Mapping[str, Mapping[str, Mean]],
    metrics: Sequence[str],
    marks: Sequence[str],
    caption: str,
) -> Html:
    body = [
        (name, str(row[metrics[0]].n) if metrics and metrics[0] in row else "-",
         *(number(row[metric].value) if metric in row else "-" for metric in metrics))
        for name, row in rows.items()
    ]  # fmt: skip
    return table(["", "n", *metrics], body, caption=caption, rows=marks)


def _notes(named: Mapping[str, Evaluation]) -> list[Html]:
    notes = dict.fromkeys(note for e in named.values() for note in e.notes)
    return [element("p", f"Note: {note}", class_="note") for note in notes]


def _comparison(sides: Sequence[Side], main: str) -> Iterable[Section]:
    one, two = sides
    metrics = [name for name in one.evaluation.values if not name.startswith("unwanted_after_")]
    found = differences(one.evaluation, two.evaluation, metrics)
    pairs = scatter(one.evaluation, two.evaluation, main, (one.name, two.name))
    moved = movers(one.evaluation, two.evaluation, main, (one.trace, two.trace))
    told = (
        f"Of {pairs.better + pairs.worse + pairs.same} queries {pairs.better} are better, "
        f"{pairs.worse} worse and {pairs.same} the same in {main}; {pairs.undefined} have no value "
        "in both."
    )
    intro = (
        f"From {one.name} to {two.name}, paired over the queries where both are defined, with 95% "
        "bootstrap intervals by group. One metric at a time: for a verdict over several, use "
        "comis-eval gate."
    )
    content = [
        element("p", intro, class_="lead"),
        _differences_table(found, (one.name, two.name)),
        figure(
            pairs, "scatter",
            f"{told} Above the diagonal (triangles up): better; below it: worse. Larger marks are "
            "several queries." if not pairs.lower_is_better else
            f"{told} Below the diagonal (triangles up): better; above it: worse."
        ),
        element("h3", "What lost most"), _movers_table(moved.lost, one.evaluation, (one.name, two.name)),
        element("h3", "What gained most"), _movers_table(moved.gained, one.evaluation, (one.name, two.name)),
    ]  # fmt: skip
    yield Section("changes", "Changes", joined(content))


def _differences_table(found: Sequence[Difference], names: tuple[str, str]) -> Html:
    moved = [d for d in found if d.difference != 0 and not isnan(d.difference)]
    still = len(found) - len(moved)
    rows = [
        (d.metric, number(d.first), number(d.second), signed(d.difference),
         "-" if isnan(d.low) else f"{signed(d.low)} to {signed(d.high)}", d.verdict or "", str(d.n))
        for d in moved
    ]  # fmt: skip
    laid = table(
        ["metric", *names, "change", "95% interval", "", "n"], rows, rows=[d.verdict for d in moved]
    )
    rest = f"{still} of {len(found)} metrics are the same in both." if still else ""
    return joined([laid, *([element("p", rest, class_="muted")] if rest else [])])


def _movers_table(moved: Sequence[Moved], evaluation: Evaluation, names: tuple[str, str]) -> Html:
    if not moved:
        return element("p", "No query.", class_="muted")
    rows = [
        (element("a", printable(evaluation.query_ids[m.query], limit=_ID), href=f"#query={m.query}", class_="id"),
         printable(evaluation.categories[m.query], limit=_ID),
         m.stage or "not known: a trace is missing", number(m.first), number(m.second),
         signed(m.second - m.first))
        for m in moved
    ]  # fmt: skip
    return table(["query", "category", "first differs at", *names, "change"], rows, texts=3)


def _categories(named: Mapping[str, Evaluation], main: str) -> Html:
    first = next(iter(named.values()))
    pictured = [name for name in dict.fromkeys((main, "utility")) if name in first.values]
    pictures = [
        figure(
            categories(named, metric), f"categories-{place}",
            f"{metric} with 95% bootstrap intervals by group; in brackets n. Few queries make wide "
            "intervals: a category whose interval holds another's figure cannot be told from it."
        )
        for place, metric in enumerate(pictured)
    ]  # fmt: skip
    metrics = [name for name in HEADLINE if name in first.values]
    tables = [
        _means_table(
            {_category(category, e): row for category, row in e.means.items()},
            metrics,
            ["this" if category == ALL else "" for category in e.means],
            name if len(named) > 1 else "",
        )
        for name, e in named.items()
    ]
    return joined([*pictures, numbers("As numbers", *tables)])


def _category(name: str, evaluation: Evaluation) -> str:
    outside = name not in (ALL, *evaluation.settings["headline"])
    return f"{name} (not in all)" if outside else name


def _factors(sides: Sequence[Side]) -> Html:
    parts = []
    for place, side in enumerate(sides):
        whose = f" of {side.name}" if len(sides) > 1 else ""
        found = None if side.trace is None else factors(side.trace)
        if found is None:
            why = (
                "there is no trace beside the evaluation" if side.trace is None else "no candidates"
            )
            parts.append(element("p", f"Not measured{whose}: {why}.", class_="note"))
            continue
        parts.append(
            figure(
                found, f"factors-{place}",
                f"What each boost{whose} multiplies scores by. Thin line: least to most; thick: 5% to "
                "95%; box: middle half; mark: median. On the dashed line a boost moves nothing.",
                numbers("As numbers", _spreads_table("all candidates", found.candidates),
                        _spreads_table("in the context", found.context)),
            )
        )  # fmt: skip
    return joined(parts)


def _spreads_table(caption: str, spreads: Sequence[Spread]) -> Html:
    heads = ["factor", "least", "5%", "25%", "median", "75%", "95%", "most", "unmoved", "n"]
    rows = [(s.factor, *(number(v) for v in s[1:8]), f"{s.neutral:.0%}", str(s.n)) for s in spreads]
    return table(heads, rows, caption=caption)


def _trust(named: Mapping[str, Evaluation]) -> Html:
    parts: list[Html] = []
    counted = funnel(named)
    if counted is None:
        parts.append(element("p", "Not measured: memories by stage.", class_="note"))
    else:
        parts.append(
            figure(
                counted, "funnel",
                "Memories that the policy keeps out (trust, scope) or that are planted, over all "
                "queries, by the stage they were still there after. What is left after budget is in "
                "somebody's context."
            )
        )  # fmt: skip
    heads = [
        word
        for name in named
        for word in (name if len(named) > 1 else "found", "n", "at most (95%)")
    ]
    rows = [
        (metric, *(cell for e in named.values() for cell in _trust_cells(metric, e)))
        for metric in _TRUST
        if any(metric in e.means[ALL] for e in named.values())
    ]
    parts.append(table(["", *heads], rows))
    for name, evaluation in named.items():
        parts.append(_leaks(name if len(named) > 1 else "", evaluation))
    return joined(parts)


def _trust_cells(metric: str, evaluation: Evaluation) -> tuple[str, str, str]:
    mean, bound = evaluation.means[ALL].get(metric), evaluation.bounds.get(metric)
    value, n = _value_n(mean)
    return value, n, "-" if bound is None else number(bound)


def _value_n(mean: Mean | None) -> tuple[str, str]:
    return ("-", "-") if mean is None else (number(mean.value), str(mean.n))


def _leaks(name: str, evaluation: Evaluation) -> Html:
    whose = f" of {name}" if name else ""
    if not evaluation.leaks:
        queries = evaluation.counts["queries"]
        told = f"No leak{whose}: no context of {queries} queries held a memory that the policy keeps out."
        return element("p", told, class_="calm")
    place_of = {query_id: place for place, query_id in enumerate(evaluation.query_ids)}
    rows = [
        (_query_link(leak.get("query_id"), place_of), _cell(leak.get("memory_id")), _cell(leak.get("why")),
         _cell(leak.get("stage")), "yes" if leak.get("why") in evaluation.enforces else "no")
        for leak in evaluation.leaks
    ]  # fmt: skip
    heads = ["query", "memory", "why", "got in at", "promised to be stopped"]
    laid = table(heads, rows, texts=5)
    told = f"{len(rows)} leaks{whose}: memories that the policy keeps out, and a context held."
    return joined(
        [
            element("p", element("strong", told), class_="alarm"),
            laid if len(rows) <= 20 else numbers(f"All {len(rows)}", laid),
        ]
    )


def _query_link(query_id: object, place_of: Mapping[str, int]) -> str:
    shown = _cell(query_id)
    if not isinstance(query_id, str) or query_id not in place_of:
        return shown
    return element("a", shown, href=f"#query={place_of[query_id]}", class_="id")


def _cell(value: object) -> str:
    return "-" if value is None else printable(str(value), limit=_ID)


def _lanes(named: Mapping[str, Evaluation]) -> Html:
    found = lanes(named)
    if found is None:
        return element("p", element("strong", "No lane ran."), class_="alarm")
    dead = [
        element(
            "p",
            element("strong", f"{reach.lane} is dead"),
            f": it ran on {reach.queries} queries and found nothing.",
            class_="alarm",
        )
        for reach in found.reaches
        if reach.dead
    ]
    drawn = figure(found, "lanes", "Queries for which each lane found anything.")
    slow = [
        element(
            "p",
            f"Latency{f' of {name}' if len(named) > 1 else ''}: "
            + ", ".join(f"{key} {plain(float(ms))} ms" for key, ms in e.latency_ms.items()),
        )
        for name, e in named.items()
        if e.latency_ms
    ]
    return joined([*dead, drawn, *slow])


def _queries(traced: bool, texts: Texts | None) -> Html:
    if not traced:
        why = (
            "There is no trace beside the evaluation file, so what became of each candidate is not "
            "known. Evaluate again with --out and keep NAME.trace.parquet beside NAME.json."
        )
        return element("p", why, class_="note")
    told = (
        "Choose a query to see every stage of its recall, every candidate with its ranks, factors "
        "and scores, and what became of it."
    )
    if texts is None:
        told += " Ids only: texts are shown by a report written with --dataset."
    chooser = element(
        "div",
        element("label", "Find", for_="find"),
        Html('<input id="find" type="search" autocomplete="off" spellcheck="false">'),
        element("label", "Order", for_="order"),
        Html(
            '<select id="order"><option value="worst">worst first</option>'
            '<option value="lost">lost most first</option>'
            '<option value="gained">gained most first</option>'
            '<option value="file">as in the dataset</option></select>'
        ),
        Html('<p class="count" aria-live="polite"></p>'),
        Html("<ol></ol>"),
        class_="chooser",
    )
    chosen = Html('<div class="chosen" aria-live="polite"></div>')
    return joined(
        [
            element("p", told, class_="lead"),
            Html("<noscript><p>The query browser needs JavaScript.</p></noscript>"),
            Html(f'<div id="browser" class="browser" hidden>{chooser}{chosen}</div>'),
        ]
    )


def _settings(named: Mapping[str, Evaluation]) -> Html:
    first = next(iter(named.values()))
    default = Config().to_tree()
    parts = []
    trees = {name: e.config for name, e in named.items()}
    if len(trees) == 2:
        one, two = trees.values()
        parts.append(
            _settings_table("Settings that differ", changed_settings(one, two), list(trees))
        )
    changed = changed_settings(default, first.config)
    whose = f" of {next(iter(named))}" if len(named) > 1 else ""
    parts.append(
        _settings_table(
            f"Settings{whose} that differ from the defaults", changed, ["default", "here"]
        )
    )
    for name, e in named.items():
        whole = json.dumps(e.config, indent=1, ensure_ascii=False)
        parts.append(
            numbers(
                f"The whole configuration{f' of {name}' if len(named) > 1 else ''}",
                element("pre", whole),
            )
        )
    versions = ", ".join(f"{name} {v}" for name, v in first.versions.items())
    return joined([*parts, element("p", f"Made with {versions}.", class_="muted")])


def _settings_table(
    caption: str, changed: Mapping[str, tuple[object, object]], heads: Sequence[str]
) -> Html:
    if not changed:
        return element("p", f"{caption}: none.")
    rows = [(path, *(_value(value) for value in pair)) for path, pair in changed.items()]
    return table(["setting", *heads], rows, caption=caption)


def _value(value: object) -> str:
    return printable(json.dumps(value, ensure_ascii=False), limit=200)


def _foot(evaluation: Evaluation) -> Html:
    undefined = int(sum(np.isnan(values).all() for values in evaluation.values.values()))
    told = "A dash is a value that is undefined; it is not 0."
    if undefined:
        told += f" {undefined} metrics are undefined for every query."
    return element("p", told)
