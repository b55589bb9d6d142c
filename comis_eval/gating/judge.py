"""The gate: a baseline, a candidate and a policy to one verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from comis_eval import stats
from comis_eval.comparison import Cell, Delta, check_comparable, check_constants, deltas
from comis_eval.comparison.paired import aligned, pairs
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.gating.explain import explain
from comis_eval.gating.policy import EACH, Policy
from comis_eval.gating.reference import Reference, check_dataset
from comis_eval.gating.verdict import Check, Gated, Side, Undecided, Verdict
from comis_eval.metrics import ALL, parse
from comis_eval.text import printable

_NEVER = ("laundered", "resurrected")
_MAX_JUDGED_GAP = 0.02
_SHOWN = 3
_SHARE_OF_REPORTED = 4
"""Slices decide nothing, so a quarter of the resamples does for them."""


def gate(
    baseline: Evaluation,
    candidate: Evaluation,
    policy: Policy | None = None,
    *,
    undecided: Undecided = "report",
    labels: tuple[str, str] = ("baseline", "candidate"),
    files: tuple[Path | None, Path | None] = (None, None),
    reference: Reference | None = None,
) -> Verdict:
    """Judge a candidate against a baseline.

    Args:
        baseline: What is in use.
        candidate: What would replace it, measured on the same queries.
        policy: The rules; the default ones when left out.
        undecided: What an undecided outcome means to the caller.
        labels: What messages call the two.
        files: Beside which the traces of the two lie.
        reference: Where baseline, policy and dataset are from, when from a commit.

    Raises:
        EvaluationError: If no verdict is possible; says why and what to do.
        MetricError: If the policy names a metric that there is not.
    """
    policy = policy or Policy()
    try:
        check_comparable(baseline, candidate)
        check_constants((baseline, candidate), policy.metrics)
        _check_measured(baseline, candidate)
        if reference is not None:
            check_dataset(reference, candidate)
    except EvaluationError as error:
        raise EvaluationError(f"{labels[0]} and {labels[1]}: {error}") from error
    candidate = aligned(candidate, baseline)
    gated, reported, notes = _judged(baseline, candidate, policy)
    checks = tuple(_checks(baseline, candidate, policy))
    return Verdict(
        baseline=Side.of(baseline, labels[0]),
        candidate=Side.of(candidate, labels[1]),
        policy=policy,
        undecided=undecided,
        checks=checks,
        gated=gated,
        reported=reported,
        explanation=explain(baseline, candidate, gated, files=files),
        reference=None if reference is None else reference.commit,
        touched=() if reference is None else reference.touched,
        notes=(
            *notes,
            *_told_beside(baseline, candidate, policy),
            *(() if reference is None else reference.notes),
        ),
    )


def _check_measured(baseline: Evaluation, candidate: Evaluation) -> None:
    """A promise that nobody looked at is not kept."""
    if baseline.pipeline == candidate.pipeline and baseline.enforces != candidate.enforces:
        raise EvaluationError(
            f"one and the same pipeline promises {' and '.join(baseline.enforces) or 'nothing'} in "
            f"the one and {' and '.join(candidate.enforces) or 'nothing'} in the other"
        )
    if not candidate.query_ids:
        raise EvaluationError("the candidate answered no query; evaluate a split that has some")
    wanted = ("policy_leak", "scope_leak", *_NEVER) if candidate.enforces else ()
    lacking = [name for name in wanted if name not in candidate.values]
    lacking += [
        f"{name} on {query_id}"
        for name in wanted
        if name not in lacking
        for query_id in np.array(candidate.query_ids)[np.isnan(candidate.values[name])][:1]
    ]
    if lacking:
        raise EvaluationError(
            f"the candidate did not score {', '.join(lacking)}, which must be 0; evaluate it with "
            "the default metrics"
        )


def _judged(
    baseline: Evaluation, candidate: Evaluation, policy: Policy
) -> tuple[tuple[Gated, ...], tuple[Delta, ...], list[str]]:
    categories = list(dict.fromkeys(baseline.categories))
    slices = _slices(policy, categories)
    rest = [name for name in (ALL, *categories) if name not in slices]
    cells, notes = [], []
    for cell in (Cell(metric, name) for name in slices for metric in policy.metrics):
        if _has_value(baseline, candidate, cell):
            cells.append(cell)
        elif cell.category == ALL:
            raise EvaluationError(
                f"{cell.metric} has no value on any headline query, so it cannot be gated; take it "
                "out of the policy's metrics"
            )
        else:
            notes.append(f"{cell.metric} of {cell.category} is not gated: no query has a value")
    _check_defined(baseline, candidate, cells)
    found = _deltas(baseline, candidate, cells, policy, policy.resamples)
    gated = tuple(
        Gated(
            delta,
            policy.metrics[delta.metric],
            stats.verdict(
                mean=delta.figures.mean,
                low=delta.figures.low,
                p_adjusted=delta.p_adjusted,
                margin=policy.metrics[delta.metric],
                level=policy.level,
            ),
        )
        for delta in found
    )
    others = [Cell(metric, name) for name in rest for metric in policy.metrics]
    others = [cell for cell in others if _has_value(baseline, candidate, cell)]
    fewer = max(policy.resamples // _SHARE_OF_REPORTED, 100)
    return gated, _deltas(baseline, candidate, others, policy, fewer), notes


def _check_defined(baseline: Evaluation, candidate: Evaluation, cells: list[Cell]) -> None:
    """Refuse a candidate without a value where the labels alone say that there is one.

    Raises:
        EvaluationError: Naming the first such query; it would drop out of the comparison.
    """
    for cell in cells:
        definition = parse(cell.metric).definition
        labelled = definition.higher_is_better and definition.queries in ("answerable", "relevant")
        if not labelled and definition.reduce != "utility":
            continue  # it may be undefined for what this candidate shows
        paired = pairs(baseline, candidate, cell)
        counted = (paired.weights > 0) & ~np.isnan(paired.before)
        gone = counted & np.isnan(paired.after)
        # Where all are gone the figure is undecided, which is said; where some are, the rest
        # would speak for them.
        if gone.any() and (gone != counted).any():
            raise EvaluationError(
                f"the candidate has no {cell.metric} for {gone.sum()} queries that have one in the "
                f"baseline, '{printable(baseline.query_ids[int(gone.argmax())], limit=60)}' first; "
                "evaluate it again"
            )


def _slices(policy: Policy, categories: list[str]) -> list[str]:
    named: list[str] = []
    for name in policy.slices:
        if name not in (ALL, EACH, *categories):
            raise EvaluationError(
                f"policy: slices: there is no category '{printable(name, limit=60)}' among the "
                f"queries; there are {', '.join(printable(c, limit=60) for c in categories)}"
            )
        named += categories if name == EACH else [name]
    return list(dict.fromkeys(named))


def _has_value(baseline: Evaluation, candidate: Evaluation, cell: Cell) -> bool:
    paired = pairs(baseline, candidate, cell)
    nowhere = np.isnan(paired.before) & np.isnan(paired.after)
    return bool((~nowhere & (paired.weights > 0)).any())


def _deltas(
    baseline: Evaluation, candidate: Evaluation, cells: list[Cell], policy: Policy, resamples: int
) -> tuple[Delta, ...]:
    return deltas(
        baseline, (candidate,), cells,
        margin=policy.metrics, correction=policy.correction, level=policy.level,
        resamples=resamples, seed=policy.seed,
    )  # fmt: skip


def _checks(baseline: Evaluation, candidate: Evaluation, policy: Policy) -> Iterator[Check]:
    for kind in ("trust", "scope"):
        if kind in candidate.enforces:
            yield _promised(candidate, kind)
        else:
            yield _not_promised(baseline, candidate, kind, policy.limits.new_leaks)
    for name in _NEVER:
        if name in candidate.values:
            yield _never(candidate, name)
    yield from _limits(baseline, candidate, policy)


def _promised(candidate: Evaluation, kind: str) -> Check:
    leaks = [leak for leak in candidate.leaks if leak["why"] == kind]
    if not leaks:
        return Check(f"{kind} leaks", "ok", f"no {kind} leak, which the pipeline promises")
    listed = ", ".join(_leak(leak) for leak in leaks[:_SHOWN])
    queries = len({leak["query_id"] for leak in leaks})
    more = f" and {len(leaks) - _SHOWN} more" if len(leaks) > _SHOWN else ""
    return Check(
        f"{kind} leaks",
        "leak",
        f"{len(leaks)} memories that the policy keeps out for {kind} reached the context of "
        f"{queries} queries, and the pipeline promises to stop them: {listed}{more}",
    )


def _leak(leak: Mapping[str, object]) -> str:
    at = "" if leak["stage"] is None else f" at {leak['stage']}"
    return f"{leak['memory_id']} for {leak['query_id']}{at}"


def _not_promised(baseline: Evaluation, candidate: Evaluation, kind: str, limit: int) -> Check:
    before, after = (
        len({leak["query_id"] for leak in one.leaks if leak["why"] == kind})
        for one in (baseline, candidate)
    )
    return Check(
        f"{kind} leaks",
        "regression" if after - before > limit else "ok",
        f"{after} queries leak for {kind}, {before} in the baseline, at most {limit} more are "
        "allowed; the pipeline does not promise to stop them",
    )


def _never(candidate: Evaluation, name: str) -> Check:
    values = candidate.values[name]
    total, queries = int(np.nansum(values)), int((values > 0).sum())
    if not total:
        return Check(name, "ok", f"nothing {name}")
    first = candidate.query_ids[int((values > 0).argmax())]
    told = f"{total} memories {name}, on {queries} queries ({first} first); none is allowed"
    return Check(name, "leak", told)


def _limits(baseline: Evaluation, candidate: Evaluation, policy: Policy) -> Iterator[Check]:
    limits, failed = policy.limits, candidate.counts["failed"]
    yield Check(
        "failed queries",
        "regression" if failed > limits.failed_queries else "ok",
        f"{failed} queries failed, at most {limits.failed_queries} may",
    )
    dead = candidate.dead_lanes
    yield Check(
        "dead lanes",
        "regression" if len(dead) > limits.dead_lanes else "ok",
        f"{len(dead)} lanes returned nothing for every query"
        f"{' (' + ', '.join(dead) + ')' if dead else ''}, at most {limits.dead_lanes} may",
    )
    if limits.latency_ratio is None or not (baseline.latency_ms and candidate.latency_ms):
        return
    before, after = baseline.latency_ms["p95"], candidate.latency_ms["p95"]
    yield Check(
        "latency",
        "regression" if after > limits.latency_ratio * before else "ok",
        f"p95 {before:.1f} ms to {after:.1f} ms, at most {limits.latency_ratio:g} times is allowed",
    )


def _told_beside(baseline: Evaluation, candidate: Evaluation, policy: Policy) -> Iterator[str]:
    """What does not decide but may mislead."""
    if baseline.pipeline != candidate.pipeline:
        yield f"the pipelines differ: {baseline.pipeline} | {candidate.pipeline}"
    changed = [
        f"{name} {baseline.versions.get(name, 'absent')} | {candidate.versions.get(name, 'absent')}"
        for name in sorted({*baseline.versions, *candidate.versions})
        if baseline.versions.get(name) != candidate.versions.get(name)
    ]
    if changed:
        yield f"versions differ: {', '.join(changed)}"
    gone = [lane for lane in baseline.lanes if lane not in candidate.lanes]
    if gone:
        yield f"lanes of the baseline that did not run: {', '.join(gone)}"
    if baseline.dead_lanes:
        yield f"dead in the baseline: {', '.join(baseline.dead_lanes)}"
    if candidate.counts["unknown_ids"]:
        yield f"{candidate.counts['unknown_ids']} ids are not of the dataset and count as unjudged"
    limited = policy.limits.latency_ratio is not None
    if limited and (baseline.latency_ms is None) != (candidate.latency_ms is None):
        yield "latency was measured in one of the two only, so that it is not gated"
    yield from _judged_gaps(baseline, candidate)


def _judged_gaps(baseline: Evaluation, candidate: Evaluation) -> Iterator[str]:
    for name in baseline.values:
        one, two = (e.means[ALL].get(name) for e in (baseline, candidate))
        if not name.startswith("judged@") or one is None or two is None:
            continue
        if abs(one.value - two.value) > _MAX_JUDGED_GAP:
            yield (
                f"{name} is {one.value:.3f} | {two.value:.3f}: more than {_MAX_JUDGED_GAP} apart, "
                "and what nobody judged counts as irrelevant; judge it before believing the figures"
            )
