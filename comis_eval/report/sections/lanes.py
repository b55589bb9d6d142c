"""The lanes, and those among them that are dead."""

from __future__ import annotations

from comis_eval.report.drawing import plain
from comis_eval.report.lanes import lanes
from comis_eval.report.markup import Html, element, joined
from comis_eval.report.page import figure
from comis_eval.report.sections.common import Named, alarm, of


def section(named: Named) -> Html:
    """Lay out each lane's queries, and a live system's latency."""
    slow = [
        element("p", f"Latency{of(name, named)}: {_latency(e.latency_ms)}.")
        for name, e in named.items()
        if e.latency_ms
    ]
    found = lanes(named)
    if found is None:
        return joined([*([] if slow else [alarm("No lane ran.")]), *slow])
    dead = [
        alarm(
            f"{reach.lane}{of(reach.evaluation, named)} is dead",
            f": it ran on {reach.queries} queries and found nothing.",
        )
        for reach in found.reaches
        if reach.dead
    ]
    drawn = figure(found, "lanes", "Queries for which each lane found anything.")
    return joined([*dead, drawn, *slow])


def _latency(ms: object) -> str:
    given = ms if isinstance(ms, dict) else {}
    return ", ".join(f"{name} {plain(float(value))} ms" for name, value in given.items())
