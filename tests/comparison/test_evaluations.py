"""Comparing evaluations: who can be compared, whose weights, which direction, which p."""

from dataclasses import replace

import numpy as np
import pytest

from comis_eval import stats
from comis_eval.comparison import Cell, compare_evaluations, deltas
from comis_eval.comparison.paired import aligned, pairs
from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation import Evaluation
from tests.gating.build import evaluation

nan = np.nan


def with_dataset(made: Evaluation, **fields: str) -> Evaluation:
    return replace(made, dataset={**made.dataset, **fields})


def with_settings(made: Evaluation, **fields: object) -> Evaluation:
    return replace(made, settings={**made.settings, **fields})


def test_a_difference_is_turned_so_that_higher_is_better() -> None:
    a = evaluation({"hit@5": [1, 0, 0], "noise": [0.5, 0.1, 0.3], "ndcg@10": [0.1, 0.2, 0.3]})
    b = evaluation({"hit@5": [1, 1, 0], "noise": [0.2, 0.1, 0.3], "ndcg@10": [0.1, 0.2, 0.3]})
    hit, noise, ndcg = compare_evaluations(a, b, metrics=["hit@5", "noise", "ndcg@10"]).headline
    assert (hit.before, hit.after) == pytest.approx((1 / 3, 2 / 3))
    assert hit.figures.mean == pytest.approx(1 / 3)
    assert (noise.before, noise.after) == pytest.approx((0.3, 0.2))
    assert noise.figures.mean == pytest.approx(0.1), "less noise is better"
    assert (ndcg.figures.mean, ndcg.figures.low, ndcg.figures.high, ndcg.p_adjusted) == (0, 0, 0, 1)


def test_queries_in_another_order_are_paired_by_id() -> None:
    a = evaluation({"hit@5": [1, 0, 0]}, query_ids=["a", "b", "c"], categories=["x", "y", "z"])
    b = evaluation({"hit@5": [0, 1, 1]}, query_ids=["c", "b", "a"], categories=["z", "y", "x"])
    compared = compare_evaluations(a, b, metrics=["hit@5"])
    assert compared.headline[0].figures.mean == pytest.approx(1 / 3)
    assert [(d.category, d.figures.mean) for d in compared.categories] == [
        ("x", 0.0), ("y", 1.0), ("z", 0.0),
    ]  # fmt: skip
    assert aligned(b, a).query_ids == a.query_ids


def test_pairs_need_both_values() -> None:
    a = evaluation({"hit@5": [1, nan, 0, 0.5]})
    b = evaluation({"hit@5": [0, 1, nan, 0.5]})
    found = compare_evaluations(a, b, metrics=["hit@5"]).headline[0]
    assert found.figures.n_queries == 2
    assert (found.before, found.after) == (0.75, 0.25)
    nothing = compare_evaluations(
        a, replace(b, values={"hit@5": np.full(4, nan)}), metrics=["hit@5"]
    )
    assert np.isnan(nothing.headline[0].before)
    assert np.isnan(nothing.headline[0].p_adjusted)


def test_utility_is_weighed_as_it_is_reported() -> None:
    categories = ["x", "x", "x", "y", "y"]
    told = {"noise": [nan, nan, nan, nan, 0.5]}  # the last is unanswerable
    a = evaluation({"utility": [0, 0, 0, 0, 0], **told}, categories=categories)
    b = evaluation({"utility": [0, 0, 0, 1, 1], **told}, categories=categories)
    found = deltas(a, [b], [Cell("utility"), Cell("utility", "y")])
    assert found[0].figures.mean == pytest.approx(0.45 * 1 + 0.1 * 1)
    assert found[1].figures.mean == 1.0


def test_non_headline_queries_stay_out_of_all_but_are_a_category() -> None:
    a = evaluation({"hit@5": [0, 0]}, categories=["x", "aside"])
    a = with_settings(a, headline=["x"])
    b = replace(a, values={**a.values, "hit@5": np.array([0.0, 1.0])})
    compared = compare_evaluations(a, b, metrics=["hit@5"])
    assert compared.headline[0].figures.mean == 0
    assert [d.figures.mean for d in compared.categories] == [0, 1]


def drawn(seed: int, n: int = 40) -> Evaluation:
    rng = np.random.default_rng(seed)
    return evaluation(
        {"hit@5": rng.integers(0, 2, n), "ndcg@10": rng.random(n)},
        groups=[f"g{number // 2}" for number in range(n)],
        categories=[f"c{number % 3}" for number in range(n)],
    )


def test_figures_are_those_of_stats_by_group_and_corrected_over_everything() -> None:
    a, b, c = drawn(0), drawn(1), drawn(2)
    cells = ("hit@5", "ndcg@10")
    columns = np.column_stack([o.values[m] - a.values[m] for o in (b, c) for m in cells])
    compared = compare_evaluations(a, b, c, metrics=cells, resamples=500, seed=3)
    expected = stats.max_t(columns, a.groups, flips=500, seed=3)
    assert [d.p_adjusted for d in compared.headline] == expected.tolist()
    assert [(d.other, d.metric) for d in compared.headline] == [
        (1, "hit@5"), (1, "ndcg@10"), (2, "hit@5"), (2, "ndcg@10"),
    ]  # fmt: skip
    figures = stats.compare(columns, a.groups, None, a.categories, resamples=500, seed=3)
    for found, one in zip(compared.headline, figures, strict=True):
        assert found.figures.low == pytest.approx(one.low)
        assert found.figures.p == one.p
    holm = compare_evaluations(a, b, c, metrics=cells, resamples=500, seed=3, correction="holm")
    assert [d.p_adjusted for d in holm.headline] == stats.holm([f.p for f in figures]).tolist()


def test_the_margin_plans_and_never_the_effect() -> None:
    a, b = drawn(0), drawn(1)
    found = compare_evaluations(a, b, metrics=["ndcg@10"], margin=0.05).headline[0]
    assert found.figures.queries_for_margin is not None
    assert compare_evaluations(a, b, metrics=["ndcg@10"]).headline[0].figures.n_for_margin is None


def test_metrics_are_the_shared_headline_ones_and_what_is_left_out_is_said() -> None:
    told = {"ndcg@10": [0.1, 0.2], "utility": [0.1, 0.2]}
    a = evaluation({**told, "hit@5": [0, 1]})
    b = with_settings(evaluation(told), k0=8)
    compared = compare_evaluations(a, b)
    assert [d.metric for d in compared.headline] == ["ndcg@10"]
    assert "hit@5 is left out: not all of them scored it" in compared.notes
    assert any("utility rests on k0 (5 | 8)" in note for note in compared.notes)


@pytest.mark.parametrize(
    ("metric", "change", "said"),
    [
        (
            "utility",
            {"k0": 8},
            "rests on k0 \\(5 \\| 8\\), which differ; .*--set harness.utility.k0=5",
        ),
        ("context_ndcg", {"c0": 9}, "rests on c0"),
        ("noise", {"k0": 8}, "rests on k0"),
        ("utility", {"utility": {"cost": 0, "unanswerableWeight": 0.1}}, "constants differ: 'cost"),
    ],
)
def test_figures_on_other_constants_are_refused(metric, change, said) -> None:
    a = evaluation({"ndcg@10": [0.1, 0.2], metric: [0.1, 0.2]})
    with pytest.raises(EvaluationError, match=said):
        compare_evaluations(a, with_settings(a, **change), metrics=[metric])
    compare_evaluations(a, with_settings(a, **change), metrics=["ndcg@10"])


BASE = evaluation({"hit@5": [1, 0]}, categories=["x", "y"])
DIFFERENT = {
    "another dataset": (
        with_dataset(BASE, fingerprint="0" * 64), "different datasets: 'made fff.*' | 'made 000",
    ),
    "another split": (with_dataset(BASE, split="test"), "different splits: 'made all'"),
    "other queries": (
        evaluation({"hit@5": [1, 0]}, query_ids=["q000", "new\x1b"], categories=["x", "y"]),
        "1 only in the first .'q001', ....; 1 only in the second .'new␛'",
    ),
    "fewer queries": (evaluation({"hit@5": [1]}), "different queries: 1 only in the first"),
    "other headline categories": (with_settings(BASE, headline=["x"]), "headline differs: 'x, y'"),
    "an edited group": (replace(BASE, groups=("a", "b")), "query 'q000' is of group 'q000'"),
    "an edited category": (
        replace(BASE, categories=("y", "x")), "query 'q000' is of category 'x' in the first and",
    ),
    "another relevance level": (with_settings(BASE, relevance_level=2), "relevance_level differs"),
    "another gain": (with_settings(BASE, gain="exponential"), "gain differs"),
    "no such column": (evaluation({"map": [1, 0]}, categories=["x", "y"]), "2 did not score hit@5"),
}  # fmt: skip


@pytest.mark.parametrize(("other", "said"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_cannot_be_compared_is_refused_naming_the_difference(other, said) -> None:
    with pytest.raises(EvaluationError, match=said):
        compare_evaluations(BASE, other, metrics=["hit@5"])


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="at least two"):
        compare_evaluations(BASE)
    with pytest.raises(EvaluationError, match="share no headline metric"):
        compare_evaluations(evaluation({"map": [1]}), evaluation({"map": [1]}))
    with pytest.raises(MetricError, match="there is no metric 'hot@5'"):
        compare_evaluations(BASE, BASE, metrics=["hot@5"])
    assert deltas(BASE, [BASE], []) == ()


def test_pairs_say_which_way_is_up() -> None:
    assert pairs(BASE, BASE, Cell("hit@5")).higher_is_better
    assert not pairs(BASE, BASE, Cell("policy_leak")).higher_is_better


def test_differences_as_a_table() -> None:
    a = evaluation({"hit@5": [1, 0, 0]}, categories=["x", "y", "y"])
    b = evaluation({"hit@5": [1, 1, 0]}, categories=["x", "y", "y"])
    compared = compare_evaluations(a, b, metrics=["hit@5"])
    frame = compared.frame()
    assert frame["category"].tolist() == ["all", "x", "y"]
    assert frame["difference"].tolist() == pytest.approx([1 / 3, 0, 0.5])
    assert frame[["before", "after"]].iloc[0].tolist() == pytest.approx([1 / 3, 2 / 3])
    assert frame["p"].tolist() == [d.p_adjusted for d in (*compared.headline, *compared.categories)]
    assert frame["n"].tolist() == [3, 1, 2]
    assert (frame["other"] == 1).all()
