"""Names, and the rules that hold for every metric in the table."""

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.metrics import METRICS, judged_beside, parse, patterns, score
from tests.metrics.build import inputs, ranked


def test_a_name_is_what_is_typed_and_what_is_printed():
    for name in ("ndcg@10", "mrr", "mrr@3", "map", "context_recall"):
        assert parse(name).name == name
    assert parse("recall@5").k == 5
    assert parse("recall@5") == parse("recall@5")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", r"no metric 'ndgc@10'; there are ndcg@k, .*mrr\[@k\], map, .*poison_recall@k"),
        ("", r"no metric ''"),
        ("ndcg@" + "9" * 5_000, r"ndcg: the cut-off has 5000 digits, at most 9 may"),
        ("recall", r"'recall' needs a cut-off, as in recall@10"),
        ("map@5", r"'map@5': map takes no cut-off"),
        ("recall@0", r"whole number >= 1, got '0'"),
        ("recall@-1", r"whole number >= 1, got '-1'"),
        ("recall@5.0", r"whole number >= 1, got '5\.0'"),
        ("recall@", r"whole number >= 1, got ''"),
        ("recall@\u0665", r"whole number >= 1"),
    ],
)
def test_a_name_that_means_nothing_is_refused_with_what_is_allowed(name, message):
    with pytest.raises(MetricError, match=message):
        parse(name)


def test_an_error_names_every_metric():
    with pytest.raises(MetricError) as caught:
        parse("nope")
    assert all(pattern in str(caught.value) for pattern in patterns())


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_says_what_the_inputs_lack(name):
    bare = inputs([[1]])
    cut = "@3" if METRICS[name].cut == "required" else ""
    with pytest.raises(MetricError, match=f"^{name}{cut}: needs .* do not hold"):
        parse(name + cut)(bare)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_docstring_and_an_orientation(name):
    definition = METRICS[name]
    assert definition.formula.__doc__ or name.startswith("unwanted_after_")
    if definition.when_failed == 0:
        assert definition.higher_is_better
    if definition.when_failed == 1:
        assert not definition.higher_is_better


def test_an_empty_query_set_has_no_values():
    set_ = inputs([], ranking=ranked([]))
    assert {name: values.shape for name, values in score(["map", "ndcg@3"], set_).items()} == {
        "map": (0,),
        "ndcg@3": (0,),
    }


def test_a_cut_off_beyond_every_list_is_flagged():
    set_ = inputs([[1], [1]], ranking=ranked([[1, 0], [0]]))
    assert not parse("recall@2").beyond_depth(set_)
    assert parse("recall@3").beyond_depth(set_)
    assert not parse("map").beyond_depth(set_)


def test_judged_stands_beside_what_depends_on_it():
    metrics = [parse(n) for n in ("ndcg@10", "recall@10", "mrr@3", "context_recall", "abstention")]
    assert [m.name for m in judged_beside(metrics, k0=5)] == ["judged@3", "judged@5", "judged@10"]


def test_values_are_float64_and_leave_the_inputs_alone():
    lists = ranked([[1, 0, 2], [0]])
    before = lists.grade.copy()
    for name, values in score(
        ["ndcg@2", "recall@2", "hit@1", "mrr", "map"], inputs([[2, 1], [1]], ranking=lists)
    ).items():
        assert values.dtype == np.float64, name
    np.testing.assert_array_equal(lists.grade, before)
