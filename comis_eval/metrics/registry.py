"""Every metric by name: where it is scored, for which queries, and what failure scores.

To add a metric, write its formula in a file of its own and describe it here; the rest -
parsing, the rules for failed queries, means, the tests of every metric - follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from types import MappingProxyType
from typing import Literal

from comis_eval.errors import MetricError
from comis_eval.metrics.average_precision import average_precision
from comis_eval.metrics.context_size import context_chars, context_fill
from comis_eval.metrics.definition import Cut, Definition, Formula, Metric, On, Queries
from comis_eval.metrics.hit import hit
from comis_eval.metrics.judged import judged
from comis_eval.metrics.leakage import (
    laundered,
    leak_rank,
    policy_leak,
    scope_leak,
    untrusted_share,
)
from comis_eval.metrics.lists import Inputs, Values
from comis_eval.metrics.mrr import mrr
from comis_eval.metrics.ndcg import context_ndcg, ndcg, ndcg_exp
from comis_eval.metrics.over_block import over_block
from comis_eval.metrics.poison import asr, poison_precision, poison_recall
from comis_eval.metrics.precision import context_precision, precision, r_precision
from comis_eval.metrics.recall import recall
from comis_eval.metrics.recall_all import recall_all
from comis_eval.metrics.redundancy import redundancy
from comis_eval.metrics.silence import abstention, noise
from comis_eval.metrics.stage_trace import STAGES
from comis_eval.metrics.stale import stale
from comis_eval.metrics.trust_inversion import trust_inversion
from comis_eval.metrics.unwanted import resurrected, unwanted_after
from comis_eval.metrics.utility import utility

_CUT_DIGITS = 9


def parse(name: str) -> Metric:
    """Return the metric a name means.

    Example: ``parse("ndcg@10")(inputs)``

    Raises:
        MetricError: If there is no such metric, or its cut-off is missing, not allowed or
            not a whole number >= 1; lists what there is.
    """
    stem, at, cut = name.partition("@")
    definition = METRICS.get(stem)
    if definition is None:
        raise MetricError(f"there is no metric {name!r}; there are {', '.join(patterns())}")
    if not at:
        if definition.cut == "required":
            raise MetricError(f"{name!r} needs a cut-off, as in {stem}@10")
        return Metric(definition)
    if definition.cut == "none":
        raise MetricError(f"{name!r}: {stem} takes no cut-off")
    if not (cut.isascii() and cut.isdigit() and not cut.startswith("0")):
        raise MetricError(f"{name!r}: the cut-off must be a whole number >= 1, got {cut!r}")
    if len(cut) > _CUT_DIGITS:
        raise MetricError(f"{stem}: the cut-off has {len(cut)} digits, at most {_CUT_DIGITS} may")
    return Metric(definition, int(cut))


def patterns() -> tuple[str, ...]:
    """How every metric's name is written, in the order of the table."""
    return tuple(definition.pattern for definition in METRICS.values())


def score(names: Iterable[str], inputs: Inputs) -> dict[str, Values]:
    """Score several metrics: values by name, each of shape (q,), in the order given.

    Raises:
        MetricError: As :func:`parse`, or if the inputs lack something a metric needs.
    """
    return {metric.name: metric(inputs) for metric in map(parse, names)}


def judged_beside(metrics: Iterable[Metric], *, k0: int) -> tuple[Metric, ...]:
    """Return the judged@k that stand beside these metrics, by rising k.

    Args:
        metrics: What is reported.
        k0: Rank for metrics of the context and of whole lists.
    """
    ks = {metric.k or k0 for metric in metrics if metric.definition.judgments}
    return tuple(Metric(METRICS["judged"], k) for k in sorted(ks))


def _found(
    name: str,
    formula: Formula,
    cut: Cut = "required",
    *,
    on: On = "ranking",
    queries: Queries = "relevant",
    gain: Literal["linear", "exponential"] | None = None,
) -> Definition:
    """A metric of what was found: higher is better, 0 on failure, unjudged gains nothing."""
    return Definition(
        name=name,
        formula=formula,
        on=on,
        cut=cut,
        queries=queries,
        higher_is_better=True,
        when_failed=0.0,
        judgments=True,
        gain=gain,
    )


def _attack(name: str, formula: Formula, queries: Queries) -> Definition:
    """A rate of an attack or a leak: lower is better, a failed query is no evidence."""
    return Definition(
        name=name,
        formula=formula,
        on="context",
        cut="required",
        queries=queries,
        higher_is_better=False,
        when_failed=nan,
    )


def _must_be_zero(
    name: str,
    formula: Formula,
    on: On,
    reduce: Literal["mean", "total"] = "total",
) -> Definition:
    """A leak, or a count on the way to one: over every query, whatever its category."""
    return Definition(
        name=name,
        formula=formula,
        on=on,
        higher_is_better=False,
        when_failed=nan,
        reduce=reduce,
        headline_only=False,
    )


def _lower(
    name: str,
    formula: Formula,
    on: On,
    *,
    cut: Cut = "none",
    queries: Queries = "all",
    when_failed: float = 1.0,
) -> Definition:
    """A share or a size of which less is better."""
    return Definition(
        name=name,
        formula=formula,
        on=on,
        cut=cut,
        queries=queries,
        higher_is_better=False,
        when_failed=when_failed,
    )


_ALL = (
    _found("ndcg", ndcg, queries="answerable", gain="linear"),
    _found("ndcg_exp", ndcg_exp, queries="answerable", gain="exponential"),
    _found("recall", recall),
    _found("hit", hit),
    _found("recall_all", recall_all),
    _found("precision", precision),
    _found("r_precision", r_precision, "none"),
    _found("mrr", mrr, "optional"),
    _found("map", average_precision, "none"),
    Definition(
        name="judged",
        formula=judged,
        on="ranking",
        cut="required",
        higher_is_better=True,
        when_failed=nan,
    ),
    _lower("stale", stale, "ranking", cut="required", queries="superseded"),
    _lower("trust_inversion", trust_inversion, "ranking", cut="required"),
    _found("context_recall", recall, "none", on="context"),
    _found("context_precision", context_precision, "none", on="context"),
    _found("context_ndcg", context_ndcg, "none", on="context", queries="answerable", gain="linear"),
    _lower("context_chars", context_chars, "queries", when_failed=nan),
    _lower("context_fill", context_fill, "queries", when_failed=nan),
    _lower("redundancy", redundancy, "context", when_failed=nan),
    Definition(
        name="abstention",
        formula=abstention,
        on="context",
        queries="unanswerable",
        higher_is_better=True,
        when_failed=0.0,
    ),
    _lower("noise", noise, "queries", queries="unanswerable"),
    Definition(
        name="utility",
        formula=utility,
        on="context",
        higher_is_better=True,
        when_failed=0.0,
        reduce="utility",
        judgments=True,
        gain="linear",
    ),
    _must_be_zero("policy_leak", policy_leak, "context", "mean"),
    _must_be_zero("scope_leak", scope_leak, "context", "mean"),
    _must_be_zero("laundered", laundered, "context"),
    _must_be_zero("resurrected", resurrected, "queries"),
    *(_must_be_zero(f"unwanted_after_{s}", unwanted_after(s), "queries") for s in STAGES),
    _lower("over_block", over_block, "queries", queries="relevant"),
    _attack("untrusted_share", untrusted_share, "all"),
    _attack("leak_rank", leak_rank, "all"),
    _attack("asr", asr, "attacked"),
    _attack("poison_precision", poison_precision, "attacked"),
    _attack("poison_recall", poison_recall, "attacked"),
)

METRICS: Mapping[str, Definition] = MappingProxyType({d.name: d for d in _ALL})
"""Every metric by its name without cut-off."""
