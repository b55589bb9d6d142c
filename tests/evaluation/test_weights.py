"""Weights told by a file are those behind the figures it was written with."""

import numpy as np
import pytest

from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.evaluation.weights import answerable, weights_of
from comis_eval.metrics import parse, weights
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from tests.builders import query
from tests.evaluation.world import HandEmbedder, measured, settings, world
from tests.gating.build import evaluation

QUERIES = (
    query("1", "q1", category="x"),
    query("2", "q2", category="x"),
    query("3", "q3", category="y"),
    query("4", "q4", category="aside"),
    query("5", "q5", category="y", answerable=False),
    query("6", "q6", category="aside", answerable=False),
)
GRADES = {("q1", "a"): 1, ("q2", "b"): 2, ("q3", "c"): 1, ("q4", "a"): 1}


def test_they_are_those_of_the_means() -> None:
    dataset = world(queries=QUERIES, grades=GRADES, categories={"aside": False})
    found = measured(dataset)
    retriever = Retriever(dataset, embedder=HandEmbedder(), cache=None)
    config = settings()
    table = retriever.candidates(dataset.queries, config)
    inputs = Judge(dataset).inputs(rank(table, config), objective_of(config))
    for name, column in found.values.items():
        expected = weights(parse(name), column, inputs)
        told = np.where(np.isnan(column), 0.0, weights_of(found, name))
        if told.any():
            np.testing.assert_allclose(told / told.sum(), expected / expected.sum(), atol=1e-15)
        else:
            assert not expected.any()


def test_utility_by_hand() -> None:
    dataset = world(queries=QUERIES, grades=GRADES, categories={"aside": False})
    # 0.9 / (2 categories x queries), 0.1 over both unanswerable ones, nothing for aside's.
    np.testing.assert_allclose(
        weights_of(measured(dataset), "utility"), [0.225, 0.225, 0.45, 0, 0.05, 0.05]
    )


def test_a_category_weighs_its_queries_alike() -> None:
    found = evaluation({"hit@5": [1, 0, 1]}, categories=["x", "y", "x"])
    assert weights_of(found, "hit@5", "x").tolist() == [1, 0, 1]
    assert weights_of(found, "policy_leak").tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("metric", "values"), [("ndcg@10", [0.5, np.nan]), ("noise", [np.nan, 0.1])]
)
def test_answerable_is_told_by_any_metric_that_is_asked_of_them_alone(metric, values) -> None:
    found = evaluation({"hit@5": [1, 0], metric: values})
    assert answerable(found).tolist() == [True, False]


def test_without_such_a_metric_utility_has_no_weights() -> None:
    found = evaluation({"hit@5": [1, 0]})
    with pytest.raises(
        EvaluationError, match=r"which queries are answerable.*score abstention too"
    ):
        weights_of(found, "utility")
    with pytest.raises(MetricError, match="there is no metric 'novelty'"):
        weights_of(found, "novelty")
