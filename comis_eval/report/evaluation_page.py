"""The page of one evaluation, or of two of the same queries side by side."""

from __future__ import annotations

from collections.abc import Sequence

from comis_eval.comparison import Parting
from comis_eval.report.browser import Side, browser
from comis_eval.report.markup import Html, data_block, element, joined
from comis_eval.report.page import Page, Section, facts
from comis_eval.report.sections import (
    categories,
    changes,
    factors,
    figures,
    lanes,
    queries,
    settings,
    trust,
)
from comis_eval.report.sections.common import Named, alarm, main_metric, measured, shown
from comis_eval.report.texts import Texts

_FOOT = "A dash is a value that is undefined or was not measured; it is not 0."


def evaluation_page(
    sides: Sequence[Side],
    texts: Texts | None = None,
    partings: Sequence[Parting | None] | None = None,
) -> Page:
    """Lay out the page.

    Args:
        sides: One evaluation, or two of the same queries.
        texts: What the dataset adds; None: ids only.
        partings: Where each query's two ways part; None: not known.
    """
    named = {side.name: side.evaluation for side in sides}
    main = main_metric(named)
    traced, two = any(side.trace is not None for side in sides), len(sides) == 2
    browsed = queries.section(traced=traced, with_texts=texts is not None, two=two)
    sections = [
        Section("figures", "Figures", figures.section(named, main)),
        *_changes(sides, main, partings),
        Section("categories", "Categories", categories.section(named, main)),
        Section("factors", "Score factors", factors.section(sides)),
        Section("trust", "Trust", trust.section(named)),
        Section("lanes", "Lanes", lanes.section(named)),
        Section("queries", "Queries", browsed),
        Section("settings", "Settings", settings.section(named)),
    ]
    title = f"Recall on {shown(sides[0].evaluation.dataset.get('name'))}"
    if two:
        title += f": from {sides[0].name} to {sides[1].name}"
    head = joined([element("h1", title), _facts(named), *_alarms(named)])
    data = _data(sides, main, texts, partings) if traced else []
    return Page(title, head, sections, data, element("p", _FOOT))


def _changes(
    sides: Sequence[Side], main: str, partings: Sequence[Parting | None] | None
) -> list[Section]:
    if len(sides) < 2:
        return []
    told = changes.section(sides[0], sides[1], main, partings)
    return [Section("changes", "Changes", told)]


def _facts(named: Named) -> Html:
    first = next(iter(named.values()))
    data, known = first.dataset, first.settings
    version, split = shown(data.get("version")), shown(data.get("split"))
    told = [
        ("Dataset", f"{shown(data.get('name'))} {version}, split {split} (seed {first.seed})"),
        ("Fingerprint", shown(data.get("fingerprint"))),
        (
            "Scoring",
            f"gain {shown(known.get('gain'))}, relevant from grade "
            f"{shown(known.get('relevance_level'))}, k {shown(known.get('k')).strip('[]')}; "
            f"utility at k0 {shown(known.get('k0'))}, c0 {shown(known.get('c0'))}",
        ),
    ]
    for name, evaluation in named.items():
        counts = {key: shown(count) for key, count in evaluation.counts.items()}
        kinds = [f"{counts.get(kind, '-')} {kind}" for kind in ("scored", "unanswerable", "failed")]
        made = f"{shown(evaluation.pipeline)}, configuration {evaluation.config_hash[:12]}"
        asked = f"{counts['queries']} queries: {', '.join(kinds)}; {made}"
        told.append((name if len(named) > 1 else "Queries", asked))
    return facts(told)


def _alarms(named: Named) -> list[Html]:
    """What nobody may overlook, above everything else."""
    told = []
    for name, evaluation in named.items():
        where = f" in {name}" if len(named) > 1 else ""
        for lane in evaluation.dead_lanes:
            told.append(alarm(f"Dead lane{where}: {shown(lane)}", " found nothing for any query."))
        failed = evaluation.counts.get("failed")
        if failed:
            told.append(alarm(f"{failed} queries failed{where}", "; they score 0 in every mean."))
        if evaluation.leaks:
            broken = sum(leak.get("why") in evaluation.enforces for leak in evaluation.leaks)
            rest = f"; {broken} of a kind that the pipeline promises to stop. See Trust."
            told.append(alarm(f"{len(evaluation.leaks)} leaks{where}", rest))
    return told


def _data(
    sides: Sequence[Side],
    main: str,
    texts: Texts | None,
    partings: Sequence[Parting | None] | None,
) -> list[Html]:
    named = {side.name: side.evaluation for side in sides}
    metrics = measured(sides[0].evaluation.values, named)
    found = browser(sides, metrics, main, texts, partings)
    blocks = [data_block("overview", found.overview), data_block("memories", found.memories)]
    return blocks + [data_block(f"query-{n}", query) for n, query in enumerate(found.queries)]
