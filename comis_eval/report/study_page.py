"""The page of a sweep: what it advises, what that gains, and how it was found."""

from __future__ import annotations

from comis_eval.report.markup import element, joined
from comis_eval.report.page import Page, Section, facts
from comis_eval.report.sections import advice, knobs, search
from comis_eval.report.sections.common import shown
from comis_eval.report.study import Result, Study

_FOOT = "A dash is a value that is undefined or was not measured; it is not 0."


def study_page(study: Study) -> Page:
    """Lay out the page; what the study did not measure is said in its place."""
    result = study.result
    title = f"Sweep {shown(result.study)}"
    sections = [
        Section("advice", "Recommendation", advice.section(study)),
        Section("gains", "Gain by category", advice.by_category(study)),
        Section("search", "Search", search.section(study)),
        Section("knobs", "Knobs", knobs.section(study)),
        Section("costs", "Quality and cost", search.costs(study)),
        Section("references", "Reference rows", search.references(result)),
    ]
    head = joined([element("h1", title), facts(_facts(result))])
    return Page(title, head, sections, (), element("p", _FOOT))


def _facts(result: Result) -> list[tuple[str, str]]:
    data = result.dataset
    counts = ", ".join(f"{count} {shown(kind)}" for kind, count in result.counts.items())
    return [
        ("Dataset", f"{shown(data.get('name'))} {shown(data.get('version'))}"),
        ("Fingerprint", shown(data.get("fingerprint"))),
        ("Objective", ", ".join(map(shown, result.objectives)) or "-"),
        ("Sampler", f"{shown(result.sampler)}, seed {shown(result.seed)}"),
        ("Trials", counts or "-"),
    ]
