"""The page of metrics: every entry of the registry, with its formula in words."""

from __future__ import annotations

import inspect
from math import isnan

import docstring
import markup

from comis_eval.metrics.definition import Definition
from comis_eval.metrics.registry import METRICS

INTRODUCTION = """\
Every metric by the name that `--metric`, `--objective` and a gate's policy take. `@k` is a \
cut-off and must be given, `[@k]` may be. The ranking is the whole final order, the context is \
what is injected. A query for which a metric is undefined has no value; it never counts as 0. \
[What the metrics answer](../metrics.md) says when to look at which.
"""

_ON = {"ranking": "the ranking", "context": "the context", "queries": "sizes or the trace"}
_QUERIES = {
    "all": "all",
    "answerable": "with a memory of grade 1 or more",
    "relevant": "with a relevant memory",
    "unanswerable": "unanswerable",
    "attacked": "attacked",
    "superseded": "with an outdated and a current answer",
}
_REDUCE = {
    "mean": "mean of the defined values",
    "total": "total",
    "utility": "weighted: answerable and unanswerable part",
}


def page() -> str:
    """An overview, then each metric's own words."""
    rows = [_overview(one) for one in METRICS.values()]
    columns = ["Metric", "Scored on", "Queries", "Better", "A failed query", "Figure of a set"]
    own = [
        markup.heading(2, one.name, one.name) + "\n\n" + docstring.rendered(_words(one))
        for one in METRICS.values()
    ]
    return markup.page("# Metrics by name", INTRODUCTION, markup.table(columns, rows), *own)


def _overview(one: Definition) -> tuple[str, ...]:
    failed = "left out" if isnan(one.when_failed) else f"scores {one.when_failed:g}"
    return (
        f'<a href="#{one.name}">{markup.code(one.pattern)}</a>',
        _ON[one.on],
        _QUERIES[one.queries],
        "higher" if one.higher_is_better else "lower",
        failed,
        _REDUCE[one.reduce],
    )


def _words(one: Definition) -> str:
    """The formula's docstring.

    Raises:
        LookupError: If it has none: a metric without words is not documented.
    """
    words = inspect.getdoc(one.formula)
    if not words:
        raise LookupError(f"the formula of {one.name} has no docstring")
    return words
