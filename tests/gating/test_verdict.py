"""The gate's outcomes in their order of gravity, and what it refuses to judge."""

from dataclasses import replace

import numpy as np
import pytest

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.gating import Policy, gate
from tests.gating.build import evaluation

nan = np.nan
POLICY = Policy(metrics={"hit@5": 0.01}, resamples=500)
QUERIES = 200


def hits(*, lost: int = 0, gained: int = 0) -> Evaluation:
    """Half of the queries hit; some of them stop doing so, some others start."""
    column = np.repeat([1.0, 0.0], QUERIES // 2)
    column[:lost] = 0.0
    column[QUERIES - gained :] = 1.0
    return evaluation({"hit@5": column}, categories=["x", "y"] * (QUERIES // 2))


BASE = hits()
LEAK = {"query_id": "q000", "memory_id": "m1", "stage": "trust", "why": "trust"}


@pytest.mark.parametrize(
    ("candidate", "outcome", "status"),
    [
        (hits(), "pass", 0),
        (hits(gained=20), "improvement", 0),
        (hits(lost=20), "regression", 1),
        (hits(lost=8, gained=7), "undecided", 4),
        (hits(lost=1, gained=1), "undecided", 4),
    ],
)
def test_figures_decide(candidate, outcome, status):
    verdict = gate(BASE, candidate, POLICY)
    assert (verdict.outcome, verdict.exit_status) == (outcome, status)
    assert verdict.gated[0].outcome == outcome


def test_a_loss_within_the_margin_passes():
    assert gate(
        BASE, hits(lost=2), POLICY.model_copy(update={"metrics": {"hit@5": 0.1}})
    ).outcome == ("pass")


@pytest.mark.parametrize(("asked", "status"), [("report", 4), ("pass", 0), ("fail", 1)])
def test_what_undecided_means_is_the_callers_choice(asked, status):
    verdict = gate(BASE, hits(lost=8, gained=7), POLICY, undecided=asked)
    assert (verdict.outcome, verdict.exit_status) == ("undecided", status)


def leaking(made: Evaluation, **fields: object) -> Evaluation:
    column = np.zeros(QUERIES)
    column[0] = 1.0
    return replace(made, leaks=(LEAK,), values={**made.values, "policy_leak": column}, **fields)


def with_column(made: Evaluation, name: str) -> Evaluation:
    column = np.zeros(QUERIES)
    column[3] = 2.0
    return replace(made, values={**made.values, name: column})


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (leaking(hits(gained=20)), "1 memories .* context of 1 queries, .* m1 for q000 at trust"),
        (with_column(hits(lost=20), "laundered"), r"2 memories laundered, on 1 queries \(q003"),
        (with_column(hits(), "resurrected"), "2 memories resurrected"),
    ],
)
def test_a_broken_promise_outweighs_everything(candidate, said):
    verdict = gate(BASE, candidate, POLICY)
    assert (verdict.outcome, verdict.exit_status) == ("leak", 3)
    assert len(verdict.reasons) == 1
    import re

    assert re.search(said, verdict.reasons[0])


def test_a_leak_that_nobody_promised_to_stop_is_held_against_the_baseline_alone():
    loose = replace(BASE, enforces=("scope",))
    assert gate(loose, leaking(loose), POLICY).outcome == "regression"
    assert gate(leaking(loose), leaking(loose), POLICY).outcome == "pass"
    assert gate(leaking(loose), loose, POLICY).outcome == "pass"
    more = POLICY.model_copy(update={"limits": POLICY.limits.model_copy(update={"new_leaks": 1})})
    assert gate(loose, leaking(loose), more).outcome == "pass"
    told = next(c.told for c in gate(loose, leaking(loose), POLICY).checks)
    assert told.startswith("1 queries leak for trust, 0 in the baseline, at most 0 more")


def test_failed_queries_dead_lanes_and_latency_are_regressions_without_a_margin():
    failed = replace(BASE, counts={**BASE.counts, "failed": 1})
    dead = replace(BASE, lanes={"fts": 9, "vector": 0})
    fast, slow = (replace(BASE, latency_ms={"p50": 1.0, "p95": p, "p99": 9.0}) for p in (10, 21))
    for baseline, candidate, said in (
        (BASE, failed, "1 queries failed, at most 0 may"),
        (BASE, dead, r"1 lanes returned nothing for every query (vector), at most 0 may"),
        (fast, slow, "p95 10.0 ms to 21.0 ms, at most 2 times is allowed"),
    ):
        verdict = gate(baseline, candidate, POLICY)
        assert (verdict.outcome, verdict.exit_status) == ("regression", 1)
        assert verdict.reasons == (said,)
        loose = {"failed_queries": 1, "dead_lanes": 1, "latency_ratio": 3.0}
        limits = POLICY.limits.model_copy(update=loose)
        assert gate(baseline, candidate, POLICY.model_copy(update={"limits": limits})).outcome == (
            "pass"
        )


def test_latency_measured_once_is_said_not_gated():
    slow = replace(BASE, latency_ms={"p50": 1.0, "p95": 99.0, "p99": 99.0})
    verdict = gate(BASE, slow, POLICY)
    assert verdict.outcome == "pass"
    assert any("latency was measured in one of the two only" in note for note in verdict.notes)


def test_slices_are_reported_and_gated_only_when_asked():
    column = BASE.values["hit@5"].copy()
    column[:60:2] = 0.0  # all of category x
    worse = replace(BASE, values={**BASE.values, "hit@5": column})
    loose = POLICY.model_copy(update={"metrics": {"hit@5": 1.0}})
    verdict = gate(BASE, worse, loose)
    assert [delta.category for delta in verdict.reported] == ["x", "y"]
    strict = POLICY.model_copy(update={"slices": ("*",)})
    verdict = gate(BASE, worse, strict)
    assert [(g.delta.category, g.outcome) for g in verdict.gated] == [
        ("x", "regression"), ("y", "pass"),
    ]  # fmt: skip
    assert [delta.category for delta in verdict.reported] == ["all"]


def test_a_slice_on_which_a_metric_is_undefined_is_said_not_gated():
    base = evaluation({"hit@5": [1, 0, nan]}, categories=["x", "x", "none"])
    verdict = gate(base, base, POLICY.model_copy(update={"slices": ("all", "none")}))
    assert [g.name for g in verdict.gated] == ["hit@5 of all"]
    assert "hit@5 of none is not gated: no query has a value" in verdict.notes


def test_a_figure_that_vanished_is_undecided():
    gone = replace(BASE, values={**BASE.values, "hit@5": np.full(QUERIES, nan)})
    verdict = gate(BASE, gone, POLICY)
    assert verdict.outcome == "undecided"
    assert verdict.reasons == ("hit@5 of all: no query has a value in both",)


def test_what_may_mislead_is_noted():
    odd = replace(
        BASE, pipeline="remote", versions={"python": "3.12"}, lanes={"vector": 9},
        counts={**BASE.counts, "unknown_ids": 4},
    )  # fmt: skip
    notes = " | ".join(gate(BASE, odd, POLICY).notes)
    for said in (
        "the pipelines differ: memory-recall | remote",
        "versions differ: python 3.11 | 3.12",
        "lanes of the baseline that did not run: fts",
        "4 ids are not of the dataset",
    ):
        assert said in notes
    judged = [evaluation({"hit@5": [1, 0], "judged@5": [1, j]}) for j in (1, 0.9)]
    notes = " | ".join(gate(*judged, POLICY).notes)
    assert "judged@5 is 1.000 | 0.950: more than 0.02 apart" in notes


REFUSED = {
    "another dataset": (
        replace(BASE, dataset={**BASE.dataset, "fingerprint": "0"}), POLICY, "different datasets",
    ),
    "a metric it lacks": (BASE, Policy(metrics={"map": 0}), "did not score map"),
    "no such slice": (
        BASE, POLICY.model_copy(update={"slices": ("z\x1b",)}),
        "slices: there is no category 'z␛' among the queries; there are x, y",
    ),
    "fewer promises": (
        replace(BASE, enforces=("scope",)), POLICY, "the same pipeline promises trust",
    ),
    "a leak nobody counted": (
        replace(BASE, values=BASE.values | {"laundered": BASE.values["laundered"] * nan}), POLICY,
        "did not score laundered on q000",
    ),
    "a value taken out": (
        replace(BASE, values=BASE.values | {"hit@5": np.r_[nan, BASE.values["hit@5"][1:]]}), POLICY,
        r"no hit@5 for \d+ queries that have one in the baseline, 'q000' first",
    ),
    "no count of leaks": (
        replace(BASE, values={"hit@5": BASE.values["hit@5"]}), POLICY,
        "did not score policy_leak, scope_leak, laundered, resurrected",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("candidate", "policy", "said"), REFUSED.values(), ids=REFUSED)
def test_without_grounds_there_is_no_verdict(candidate, policy, said):
    with pytest.raises(EvaluationError, match=said):
        gate(BASE, candidate, policy)


def test_nothing_asked_and_nothing_defined_is_no_verdict():
    empty = evaluation({"hit@5": []})
    with pytest.raises(EvaluationError, match="answered no query"):
        gate(empty, empty, POLICY)
    undefined = evaluation({"hit@5": [nan]})
    with pytest.raises(EvaluationError, match="has no value on any headline query"):
        gate(undefined, undefined, POLICY)


def test_another_seed_of_the_same_policy_is_another_draw_and_the_same_one_is_not():
    worse = hits(lost=12, gained=6)
    one, two = (gate(BASE, worse, POLICY) for _ in range(2))
    assert one == two
    other = gate(BASE, worse, POLICY.model_copy(update={"seed": 1}))
    assert other.gated[0].delta.figures.low != one.gated[0].delta.figures.low or (
        other.gated[0].delta.p_adjusted != one.gated[0].delta.p_adjusted
    )
