"""Figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.common.pairs import Pair


def interval(found: Mapping[str, Any] | None) -> str:
    """A difference with its ends, as tables have it."""
    if found is None or found["mean"] is None:
        return "-"
    if found["low"] is None:
        return f"{found['mean']:+.3f}"
    return f"{found['mean']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"


def number(value: float | None, decimals: int = 3) -> str:
    """A figure, a dash where it is undefined."""
    return "-" if value is None else f"{value:.{decimals}f}"


def probability(value: float | None) -> str:
    """A p with four decimals; one too small for them says so."""
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def lined(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table of cells."""
    rows = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def pairs_table(results: Mapping[str, Any], pairs: Sequence[Pair], metrics: Sequence[str]) -> str:
    """A row a set and pair, both figures and the difference for each metric."""
    body = []
    for name, told in results["sets"].items():
        for pair in pairs:
            found = told["pairs"].get(pair.name)
            if found is None:
                continue
            first = found[metrics[0]]
            p = probability(first["p_adjusted"])
            body.append(
                [
                    name,
                    pair.first,
                    pair.second,
                    *(interval(found[metric]) for metric in metrics),
                    p,
                    f"{first['queries']} ({first['groups']})",
                ]
            )
    head = ["set", "arm", "less", *metrics, f"p ({metrics[0]}, MaxT)", "queries (groups)"]
    return lined(head, body)


def arms_table(results: Mapping[str, Any], metrics: Sequence[str]) -> str:
    """A row a set and arm."""
    body = [
        [name, arm, *(number(figures[metric]) for metric in metrics)]
        for name, told in results["sets"].items()
        for arm, figures in told["arms"].items()
    ]
    return lined(["set", "arm", *metrics], body)
