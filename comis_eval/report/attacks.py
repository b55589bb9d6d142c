"""A figure of each kind of attack with its interval, the trust filter on and off."""

from __future__ import annotations

from collections.abc import Iterable

from comis_eval.errors import MetricError
from comis_eval.evaluation import AttackFigures
from comis_eval.report.categories import Bar, Categories
from comis_eval.text import close_matches, printable

DISPLACEMENT = "displacement"


def attacks(found: Iterable[AttackFigures], metric: str) -> Categories:
    """Put the kinds of attack side by side.

    Args:
        found: What was measured.
        metric: A rate (``asr@5``, ``policy_leak``) or ``displacement``: what has intervals.

    Raises:
        MetricError: If there is no such figure.
    """
    series: dict[str, list[Bar]] = {}
    for figures in found:
        name = f"filter {figures.trust_filter}"
        series.setdefault(name, []).append(_bar(figures, metric))
    return Categories(
        metric, {name: tuple(bars) for name, bars in series.items()}, "kind of attack"
    )


def _bar(figures: AttackFigures, metric: str) -> Bar:
    if metric == DISPLACEMENT:
        lost = figures.displacement
        return Bar(figures.kind, lost.mean, lost.low, lost.high, lost.n)
    rate = figures.rates.get(metric)
    if rate is None:
        there = (*figures.rates, DISPLACEMENT)
        hint = close_matches(metric, there) or f"there are {', '.join(there)}"
        raise MetricError(f"attacks have no interval of {printable(metric, limit=60)!r}; {hint}")
    return Bar(figures.kind, figures.figures[metric].value, rate.low, rate.high, rate.n)
