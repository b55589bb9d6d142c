"""A live system evaluated by the same metrics, worked by hand.

It answers every query that it answers with b, then a; the world judges b 2 and c 1 for the
first query, a 1 and w 1 for the second, nothing for the third.
"""

from dataclasses import replace
from math import log2

import numpy as np
import pytest

from comis_eval.comparison import compare
from comis_eval.errors import MetricError
from comis_eval.evaluation import evaluate, read_evaluation, write_evaluation
from comis_eval.pipelines.remote import Answer, Answers, Failure, Remote
from comis_eval.types import Tenancy
from tests.builders import query
from tests.evaluation.world import QUERIES, measured, settings, world
from tests.pipelines.remote.rpc_server import rpc


@pytest.fixture
def answering(monkeypatch):
    """Stand in for the system: what it answers, query by query."""

    def stand_in(*answers):
        monkeypatch.setattr(Remote, "answers", lambda *_: Answers(tuple(answers)))

    return stand_in


def answer(*ids: str, chars: int = 10, ms: float = 5.0, attempts: int = 1) -> Answer:
    return Answer(ids, (chars,) * len(ids), ms, attempts)


def live(**options):
    return evaluate(world(), settings(), pipeline="remote", **options)


def test_figures_by_hand(answering):
    answering(answer("b", "a"), answer("b", "a"), answer("a"))
    found = live()
    assert found.pipeline == "remote"
    assert found.enforces == ()
    first, second, third = found.values["ndcg@10"]
    assert first == pytest.approx(2 / (2 + 1 / log2(3)))
    assert second == pytest.approx((1 / log2(3)) / (1 + 1 / log2(3)))
    assert np.isnan(third)
    assert found.values["context_chars"].tolist() == [20, 20, 10]
    assert found.values["abstention"][2] == 0
    assert found.latency_ms == {"p50": 5.0, "p95": 5.0, "p99": 5.0}
    assert found.lanes == {}
    assert set(found.references) == {"random", "oracle"}
    assert "resurrected" not in found.values
    assert any("does not show its stages" in note for note in found.notes)


def test_what_it_leaks_is_listed(answering):
    answering(answer("w"), answer("o"), answer())
    found = live()
    assert [(leak["query_id"], leak["memory_id"], leak["why"]) for leak in found.leaks] == [
        ("q1", "w", "trust"),
        ("q2", "o", "scope"),
    ]
    assert found.values["policy_leak"].tolist() == [1, 1, 0]


def test_a_failed_query_counts_as_failed_and_is_named(answering):
    answering(answer("b"), Failure("no answer within 5 ms", 3), Failure("gone", 3))
    found = live()
    assert found.counts["failed"] == 2
    assert found.values["ndcg@10"][1] == 0
    assert np.isnan(found.values["context_chars"][1])
    assert "1 queries failed, no answer within 5 ms: q2" in found.notes
    assert "1 queries failed, gone: q3" in found.notes


def test_nothing_was_answered(answering):
    answering(*[Failure("gone", 1)] * 3)
    found = live()
    assert found.latency_ms is None
    assert found.counts["failed"] == 3


def test_unknown_ids_keep_their_place_and_are_unjudged(answering):
    answering(answer("\x1b[31mx", "b"), answer("a", attempts=2), answer())
    found = live()
    assert found.counts["unknown_ids"] == 1
    assert found.values["mrr@10"][0] == 0.5
    assert found.values["judged@5"].tolist()[:2] == [0.5, 1.0]
    told = next(note for note in found.notes if "name no memory" in note)
    assert "'␛[31mx' (q1)" in told
    assert "1 queries were answered after more than one attempt" in found.notes
    assert not found.leaks, "what the dataset does not know breaks none of its rules"


def test_an_unknown_memory_is_trusted_least(answering):
    answering(answer("nobody", "b"), answer("a"), answer())
    assert live().values["trust_inversion@5"][0] == 1.0


def test_a_metric_of_the_stages_cannot_be_asked_for(answering):
    answering(answer("b"), answer("a"), answer())
    found = live(metrics=("ndcg@10", "over_block"))
    assert "over_block" not in found.values
    assert any("no over_block" in note for note in found.notes)
    with pytest.raises(MetricError):
        live(metrics=("over-block",))


def test_the_file_reads_back_and_drift_is_a_comparison(answering, tmp_path):
    reference = measured(world(), settings({"includeTrustLevels": ["system", "learned"]}))
    answering(answer("b", "a"), answer("a"), answer())
    path = tmp_path / "live.json"
    write_evaluation(live(), path)
    again = read_evaluation(path)
    assert again.latency_ms == {"p50": 5.0, "p95": 5.0, "p99": 5.0}
    assert again.trace is None
    told = compare(reference, again)
    assert told is not None


@pytest.mark.parametrize(
    ("agents", "arguments", "said"),
    [
        (("home", "home", "home"), {}, None),
        (("home", "stu\x1b[31mdio", "home"), {}, "of 2 agents (t1/home 2, t1/stu␛[31mdio 1)"),
        (("home", "studio", "home"), {"who": ["{agentId}"]}, None),
    ],
)
def test_queries_of_several_agents_that_nothing_tells_apart_are_noted(
    answering, agents, arguments, said
):
    answering(answer("b"), answer("a"), answer())
    queries = [
        replace(one, tenancy=Tenancy("t1", agent))
        for one, agent in zip(QUERIES, agents, strict=True)
    ]
    config = settings(harness={"remote": {"arguments": arguments}})
    notes = evaluate(world(queries=queries), config, pipeline="remote").notes
    assert [said in note for note in notes if "says who asks" in note] == ([True] if said else [])


def test_from_end_to_end_over_json_rpc():
    queries = (query("fine", "q1", category="x"), query("500", "q2", category="y"), QUERIES[2])
    with rpc() as server:
        config = settings(
            harness={
                "remote": {"transport": "jsonrpc", "url": server.url, "retries": 1, "backoffMs": 1}
            }
        )
        found = evaluate(world(queries=queries), config, pipeline="remote")
    assert found.counts == {
        "queries": 3, "scored": 2, "unanswerable": 1, "failed": 1, "unknown_ids": 0,
    }  # fmt: skip
    assert "1 queries failed, HTTP status 500: q2" in found.notes
    assert found.latency_ms is not None
    assert found.latency_ms["p50"] > 0
