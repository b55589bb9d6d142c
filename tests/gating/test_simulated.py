"""How often the gate cries wolf, and how often it sees one, over seeded builds."""

import numpy as np
import pytest

from comis_eval.gating import Policy, gate
from tests.gating.build import evaluation

pytestmark = pytest.mark.slow

BUILDS = 500
METRICS = ("ndcg@10", "recall@5", "mrr@10")
CATEGORIES = 6
NO_MARGIN = Policy(metrics=dict.fromkeys(METRICS, 0.0), slices=("*",), resamples=500)


def build(rng, groups, size):
    """Two measurements of the same thing: a group's queries move together, metrics alike."""
    queries = groups * size
    noise = np.repeat(rng.normal(0, 0.2, (groups, 3)), size, axis=0)
    noise += np.repeat(rng.normal(0, 0.2, (groups, 1)), size, axis=0)
    noise *= np.repeat(rng.random((groups, 1)) < 0.5, size, axis=0)
    before = rng.random((queries, 3))
    labels = [f"g{number // size}" for number in range(queries)]
    named = [f"c{number // size % CATEGORIES}" for number in range(queries)]
    return (
        evaluation(dict(zip(METRICS, values.T, strict=True)), groups=labels, categories=named)
        for values in (before, before + noise)
    )


@pytest.mark.parametrize(("groups", "size"), [(240, 1), (90, 4)], ids=["single", "paraphrases"])
def test_without_a_change_at_most_seven_builds_in_a_hundred_fail(groups, size):
    rng = np.random.default_rng(0)
    verdicts = [gate(*build(rng, groups, size), NO_MARGIN) for _ in range(BUILDS)]
    failed = sum(verdict.exit_status == 1 for verdict in verdicts)
    assert failed <= 0.07 * BUILDS
    significant = sum(
        any(gated.outcome in ("regression", "improvement") for gated in verdict.gated)
        for verdict in verdicts
    )
    assert 0.01 * BUILDS <= significant <= 0.07 * BUILDS, "the level is kept, and used"


def test_seven_percent_losing_and_two_gaining_is_caught():
    rng = np.random.default_rng(0)
    policy = Policy(metrics={"hit@5": 0.0}, resamples=500)
    caught = 0
    for _ in range(BUILDS):
        before = rng.integers(0, 2, 500).astype(float)
        fate = rng.random(500)
        before[fate < 0.09] = (fate[fate < 0.09] < 0.07).astype(float)
        after = np.where(fate < 0.07, 0.0, np.where(fate < 0.09, 1.0, before))
        verdict = gate(evaluation({"hit@5": before}), evaluation({"hit@5": after}), policy)
        caught += verdict.outcome == "regression"
    assert caught >= 0.95 * BUILDS
