"""Plain lists in: one test for each trap of field-notes 1.2, and what else can be wrong."""

from math import inf, log2, nan

import numpy as np
import pytest

from comis_eval.errors import MetricError
from comis_eval.metrics import from_run, means, parse, score, tie_band

QRELS = {"q1": {"a": 1}}


def value(name, run, qrels=QRELS, **options):
    return parse(name)(from_run(run, qrels, **options).inputs)


# field-notes 1.2, row by row


def test_scores_never_change_the_order_even_when_they_rise():
    judged = from_run({"q1": [("b", 1.0), ("a", 2.0)]}, QRELS)
    assert parse("mrr")(judged.inputs) == [0.5]
    assert judged.tied == 0
    assert tie_band(judged, parse("mrr")) == ([0.5], [0.5])


def test_ties_keep_the_given_order_are_counted_and_have_a_band():
    run = {"q1": [("a", 1.0), ("m", 1.0), ("z", 1.0)]}
    judged = from_run(run, QRELS)
    assert parse("mrr")(judged.inputs) == [1.0]
    assert judged.tied == 3
    assert tie_band(judged, parse("mrr")) == ([1 / 3], [1.0])
    last = from_run({"q1": run["q1"][::-1]}, QRELS)
    assert parse("mrr")(last.inputs) == [1 / 3]
    assert tie_band(last, parse("mrr")) == ([1 / 3], [1.0])


def test_a_band_moves_only_within_each_tie():
    run = {
        "q1": [("x", 3.0), ("y", 2.0), ("a", 2.0), ("b", 1.0), ("z", 1.0)],
        "q2": [("c", 1.0)],
    }
    judged = from_run(run, {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}})
    assert judged.tied == 4
    low, high = tie_band(judged, parse("ndcg@5"))
    best = 2 + 1 / log2(3)
    assert low == pytest.approx([(1 / log2(4) + 2 / log2(6)) / best, 1])
    assert high == pytest.approx([(1 / log2(3) + 2 / log2(5)) / best, 1])


def test_plain_ids_have_no_ties():
    judged = from_run({"q1": ["b", "a"]}, QRELS)
    assert judged.tied == 0
    assert tie_band(judged, parse("mrr")) == ([0.5], [0.5])


@pytest.mark.parametrize(("high", "low"), [(1.0 + 1e-9, 1.0), (1e8 + 1, 1e8)])
def test_scores_closer_than_float32_keep_their_order_and_are_no_tie(high, low):
    judged = from_run({"q1": [("a", high), ("z", low)]}, QRELS)
    assert judged.tied == 0
    assert parse("mrr")(judged.inputs) == [1.0]


def test_a_query_missing_in_the_run_counts_zero_and_is_listed():
    judged = from_run({"q1": ["a"]}, {**QRELS, "q2": {"a": 1}})
    values = parse("recall@5")(judged.inputs)
    assert values.tolist() == [1.0, 0.0]
    assert means({parse("recall@5"): values}, judged.inputs)["all"]["recall@5"] == (0.5, 2)
    assert judged.missing == ("q2",)
    assert judged.inputs.failed.tolist() == [False, True]


def test_an_extra_query_in_the_run_is_an_error():
    message = r"run answers 1 queries without judgments, first \['q9'\]; 1 of 2 query ids are in"
    with pytest.raises(MetricError, match=message):
        from_run({"q1": ["a"], "q9": ["a"]}, QRELS)


@pytest.mark.parametrize("grades", [{}, {"a": 0}])
def test_a_query_without_a_relevant_memory_is_unanswerable_and_not_zero(grades):
    qrels = {**QRELS, "q2": grades}
    judged = from_run({"q1": ["a"], "q2": ["a"]}, qrels, context={"q1": ["a"]})
    assert judged.unanswerable == ("q2",)
    values = score(["recall@5", "abstention"], judged.inputs)
    assert values["recall@5"] == pytest.approx([1, nan], nan_ok=True)
    assert values["abstention"] == pytest.approx([nan, 1], nan_ok=True)


@pytest.mark.parametrize("grade", [0.5, 1.0, True, "1", None])
def test_a_grade_that_is_no_whole_number_is_an_error_naming_the_row(grade):
    kind = type(grade).__name__
    message = f"query 'q1', memory 'b': a grade is a whole number in 0..127, got .* of type {kind}"
    with pytest.raises(MetricError, match=message):
        from_run({"q1": ["a"]}, {"q1": {"a": 1, "b": grade}})


@pytest.mark.parametrize("grade", [-1, 128])
def test_a_grade_out_of_bounds_is_an_error(grade):
    with pytest.raises(MetricError, match=f"0..127, got {grade}"):
        from_run({"q1": ["a"]}, {"q1": {"a": grade}})


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_score_that_is_not_finite_is_an_error(bad):
    with pytest.raises(MetricError, match=f"query 'q1', memory 'b': the score is {bad}"):
        from_run({"q1": [("a", 1.0), ("b", bad)]}, QRELS)


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        (
            {1: ["a"]},
            {"1": {"a": 1}},
            "run query ids are int, qrels query ids are str, and 0 of 1 are in both",
        ),
        (
            {"q1": [7, 8]},
            {"q1": {"7": 1}},
            "run memory ids are int, qrels memory ids are str, and 0 of 2 are in both",
        ),
        (
            {"q1": ["7"]},
            {"q1": {7: 1}},
            "run memory ids are str, qrels memory ids are int, and 0 of 1 are in both",
        ),
        (
            {"q1": [7, "8"]},
            {"q1": {7: 1}},
            "run memory ids are int and str, qrels memory ids are int, and 1 of 2 are in both",
        ),
    ],
)
def test_ids_that_are_no_strings_are_an_error_naming_both_sides(run, qrels, message):
    with pytest.raises(MetricError, match=message):
        from_run(run, qrels)


def test_a_numpy_score_is_as_good_as_any():
    judged = from_run({"q1": [("b", np.float32(0.5)), ("a", np.float32(0.25))]}, QRELS)
    assert parse("mrr")(judged.inputs) == [0.5]


def test_a_numpy_grade_is_as_good_as_any():
    assert value("ndcg@5", {"q1": ["a"]}, {"q1": {"a": np.int64(3)}}) == [1.0]


def test_a_memory_listed_twice_is_an_error_naming_query_and_memory():
    message = "query 'q1': memory 'a' stands at rank 1 and again at 3"
    with pytest.raises(MetricError, match=message):
        from_run({"q1": ["a", "b", "a"]}, QRELS)
    with pytest.raises(MetricError, match=f"context, {message}"):
        from_run({"q1": ["a"]}, QRELS, context={"q1": ["a", "b", "a"]})


@pytest.mark.parametrize(
    ("run", "qrels", "what"), [({}, QRELS, "run"), ({"q1": ["a"]}, {}, "qrels")]
)
def test_an_empty_side_is_an_error(run, qrels, what):
    with pytest.raises(MetricError, match=f"the {what} is empty"):
        from_run(run, qrels)


def test_gains_are_linear_unless_the_name_says_otherwise():
    run, qrels = {"q1": ["c", "b", "a"]}, {"q1": {"a": 3, "b": 2, "c": 1}}
    assert value("ndcg@3", run, qrels) == pytest.approx([0.790], abs=5e-4)
    assert value("ndcg_exp@3", run, qrels) == pytest.approx([0.681], abs=5e-4)


def test_an_unjudged_memory_gains_nothing_and_shows_in_judged():
    values = score(
        ["ndcg@2", "precision@2", "judged@2"], from_run({"q1": ["new", "a"]}, QRELS).inputs
    )
    assert values["ndcg@2"] == pytest.approx([1 / log2(3)])
    assert values["precision@2"] == [0.5]
    assert values["judged@2"] == [0.5]


# products with a wrong nDCG, field-notes 1.2


def test_the_ideal_is_not_cut_at_the_number_returned():
    expected = 1 / (1 + 1 / log2(3))
    assert value("ndcg@10", {"q1": ["a"]}, {"q1": {"a": 1, "b": 1}}) == pytest.approx([expected])
    assert expected == pytest.approx(0.613, abs=5e-4)


# the corpus, the shape of a run


def test_an_id_outside_the_corpus_is_an_error_naming_it():
    with pytest.raises(MetricError, match="run, query 'q1': memory 'x' is not in the corpus of 2"):
        from_run({"q1": ["x"]}, QRELS, known=["a", "b"])
    with pytest.raises(MetricError, match="qrels, query 'q1': memory 'a' is not in the corpus"):
        from_run({"q1": ["b"]}, QRELS, known=["b"])


def test_a_live_system_may_know_more_than_the_corpus():
    judged = from_run({"q1": ["x", "a"]}, QRELS, known=["a", "b"], live=True)
    assert judged.unknown_ids == 1
    assert parse("mrr")(judged.inputs) == [0.5]
    assert parse("judged@2")(judged.inputs) == [0.5]


@pytest.mark.parametrize(
    ("listed", "kind"), [("ab", "str"), ({"a": 1.0}, "dict"), ({"a"}, "set"), (None, "NoneType")]
)
def test_what_has_no_rank_is_refused(listed, kind):
    with pytest.raises(MetricError, match=f"list of ids, best first, got {kind}, which has no"):
        from_run({"q1": listed}, QRELS)


def test_scores_for_some_entries_alone_are_refused():
    with pytest.raises(MetricError, match="some entries carry a score and some do not"):
        from_run({"q1": [("a", 1.0), "b"]}, QRELS)


def test_the_context_is_a_list_of_its_own():
    judged = from_run({"q1": ["b", "a"]}, QRELS, context={"q1": ["a"]})
    values = score(["mrr", "context_precision"], judged.inputs)
    assert values["mrr"] == [0.5]
    assert values["context_precision"] == [1.0]


def test_the_relevance_level_is_a_parameter():
    run, qrels = {"q1": ["a", "b"]}, {"q1": {"a": 1, "b": 2}}
    assert value("mrr", run, qrels) == [1.0]
    assert value("mrr", run, qrels, relevance_level=2) == [0.5]


def test_a_context_without_a_ranking_is_refused():
    qrels = {**QRELS, "q2": {"a": 1}}
    with pytest.raises(
        MetricError, match=r"1 queries that the run does not answer, first \['q2'\]"
    ):
        from_run({"q1": ["a"]}, qrels, context={"q1": ["a"], "q2": ["a"]})


def test_pairs_read_from_json_are_lists_and_are_as_good():
    assert value("mrr", {"q1": [["b", 2.0], ["a", 1.0]]}) == [0.5]


@pytest.mark.parametrize("bad", ["1.0", None])
def test_a_score_that_is_no_number_is_an_error(bad):
    with pytest.raises(MetricError, match="query 'q1', memory 'a': the score is "):
        from_run({"q1": [("a", bad)]}, QRELS)


def test_an_id_of_any_type_is_an_error_and_no_crash():
    with pytest.raises(MetricError, match="run memory ids are dict and str"):
        from_run({"q1": ["a", {"id": "b"}]}, QRELS)


def test_queries_follow_the_judgments():
    judged = from_run({"q2": ["b"], "q1": ["b"]}, {"q1": {"a": 1}, "q2": {"b": 1}})
    assert judged.query_ids == ("q1", "q2")
    assert parse("hit@1")(judged.inputs).tolist() == [0, 1]
