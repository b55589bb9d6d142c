"""Long rows, means with their n, and the weights a paired test takes over."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import MetricError
from comis_eval.metrics import Categories, Mean, long_rows, means, parse, score, weights
from tests.metrics.build import inputs, objective, ranked

CATEGORIES = Categories(
    np.array([0, 0, 1, 2, 2]), ("fact", "time", "aside"), np.array([True, True, False])
)


def example():
    """Five queries: two facts, an unanswerable one about time, two asides."""
    lists = ranked(
        [[1], [0, 1], [0], [1], [0]],
        chars=[[10], [20, 20], [30], [10], [10]],
        disallowed=[[0], [0, 0], [0], [0], [1]],
        foreign=[[0], [0, 0], [0], [0], [0]],
        laundered=[[1], [0, 1], [0], [0], [1]],
    )
    return inputs(
        [[1], [1, 1], [], [1], [1]],
        ranking=lists,
        context=lists,
        context_chars=[10, 40, 30, 10, 10],
        objective=objective(),
        categories=CATEGORIES,
    )


def figures(name):
    set_, metric = example(), parse(name)
    by_category = means({metric: metric(set_)}, set_)
    return {category: row[name] for category, row in by_category.items()}


def test_a_mean_is_over_defined_queries_and_says_how_many():
    found = figures("recall@5")
    assert list(found) == ["all", "fact", "time", "aside"]
    assert found["all"] == Mean(0.75, 2)  # facts alone: time has no answer, aside no headline
    assert found["fact"] == Mean(0.75, 2)
    assert found["aside"] == Mean(0.5, 2)
    assert found["time"].n == 0
    assert np.isnan(found["time"].value)


def test_a_leak_outside_the_headline_is_still_in_all():
    assert figures("policy_leak")["all"] == Mean(1 / 5, 5)


def test_counts_are_totalled():
    assert figures("laundered")["all"] == Mean(3.0, 5)
    assert figures("laundered")["fact"] == Mean(2.0, 2)


def test_utility_is_the_weighted_sum_of_its_two_parts():
    # fact: 1, and (1 / log2 3) / (1 + 1 / log2 3) - 0.5 x 20 / 100; time: 1 - 30 / 100
    second = (1 / np.log2(3)) / (1 + 1 / np.log2(3)) - 0.1
    found = figures("utility")
    assert found["all"].value == pytest.approx(0.9 * (1 + second) / 2 + 0.1 * 0.7)
    assert found["all"].n == 3
    assert found["fact"].value == pytest.approx((1 + second) / 2)
    assert found["time"].value == pytest.approx(0.7)


def test_without_categories_there_is_only_all():
    set_ = replace(example(), categories=None)
    metric = parse("recall@5")
    assert means({metric: metric(set_)}, set_) == {"all": {"recall@5": Mean(0.625, 4)}}


def test_a_perfect_score_is_exactly_one_whatever_the_number_of_queries():
    for n in (3, 7, 49, 1000):
        set_ = inputs([[1]] * n, ranking=ranked([[1]] * n))
        metric = parse("ndcg@5")
        assert means({metric: metric(set_)}, set_)["all"]["ndcg@5"] == Mean(1.0, n)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(kinds=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 80)), min_size=1))
def test_the_weights_give_back_the_figure_of_all(kinds):
    n = len(kinds)
    set_ = inputs(
        [[1] if answerable else [] for _, answerable, _ in kinds],
        context=ranked([[0, 1]] * n, chars=[[chars, 1] for *_, chars in kinds],
                       laundered=[[True, False]] * n),
        context_chars=[chars for *_, chars in kinds],
        objective=objective(),
        categories=CATEGORIES._replace(codes=np.array([code for code, *_ in kinds])),
    )  # fmt: skip
    for name in ("utility", "context_recall", "noise", "laundered"):
        metric = parse(name)
        values = metric(set_)
        share, figure = weights(metric, values, set_), means({metric: values}, set_)["all"][name]
        assert np.count_nonzero(share) == figure.n, name
        if figure.n:
            assert np.nansum(share * values) == pytest.approx(figure.value, abs=1e-12), name
            if metric.definition.reduce != "total":
                assert share.sum() == pytest.approx(1.0), name


def test_a_category_may_not_take_the_name_of_all():
    set_ = replace(example(), categories=CATEGORIES._replace(names=("fact", "all", "aside")))
    metric = parse("recall@5")
    with pytest.raises(MetricError, match="no category may be called 'all'"):
        means({metric: metric(set_)}, set_)


def test_values_of_another_set_are_refused():
    with pytest.raises(MetricError, match="recall@5 has 2 values for 5 queries"):
        means({parse("recall@5"): np.zeros(2)}, example())


def test_long_rows_keep_what_is_undefined():
    set_ = inputs([[1], []], ranking=ranked([[0, 1], [0]]))
    rows = list(long_rows(["q1", "q2"], score(["mrr", "hit@1"], set_)))
    assert rows == [
        ("q1", "mrr", 0.5),
        ("q2", "mrr", None),
        ("q1", "hit@1", 0.0),
        ("q2", "hit@1", None),
    ]
