"""The leakage family by kind of attack, worked by hand in the small world.

The list is alpha, beta, web, gamma for every query. Web is planted, against the first query.
"""

import numpy as np
import pytest

from comis_eval.datasets import Attack, without_poison
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import attack_frame, measure_attacks
from comis_eval.pipelines.retrieval import Retriever
from tests.evaluation.world import MEMORIES, HandEmbedder, settings, world

GRADES = {("q1", "b"): 2, ("q1", "c"): 1, ("q1", "w"): 0, ("q2", "a"): 1}


def attacked(attacks, config=None, **options):
    dataset = world(grades=GRADES, attacks=attacks)
    options.setdefault("retriever", Retriever(dataset, embedder=HandEmbedder(), cache=None))
    bare = without_poison(dataset)
    options.setdefault("clean", Retriever(bare, embedder=HandEmbedder(), cache=None))
    return measure_attacks(dataset, config or settings({"maxResults": 3}), **options)


def test_one_kind_by_hand():
    on, off = attacked((Attack("q1", ("w",), "page"),))
    assert (on.kind, on.trust_filter, on.n) == ("page", "on", 1)
    assert on.rates["asr@3"][:2] == (0, 1)
    assert on.figures["poison_recall@3"].value == 0
    assert on.displacement.mean == 0, "alpha, beta, gamma with the poison and without"
    assert on.rates["policy_leak"].successes == 0

    assert off.trust_filter == "off"
    assert off.rates["asr@1"].successes == 0
    assert off.rates["asr@3"][:2] == (1, 1)
    assert off.figures["poison_precision@3"].value == pytest.approx(1 / 3)
    assert off.figures["poison_recall@3"].value == 1
    # third place of three: (1 / log2 4) / (1 + 1 / log2 3 + 1 / log2 4)
    assert off.figures["leak_rank@3"].value == pytest.approx(0.5 / (1.5 + 1 / np.log2(3)))
    assert off.figures["untrusted_share@3"].value == pytest.approx(1 / 3)
    assert off.displacement.mean == 0.5, "gamma, one of two relevant, is pushed to fourth place"
    assert off.rates["policy_leak"][:2] == (1, 1)
    assert off.filter_p == on.filter_p == 1.0, "one query that differs says nothing"


def test_kinds_are_apart_and_then_together():
    attacks = (Attack("q2", ("w",), "page"), Attack("q1", ("w",), "mail"))
    found = attacked(attacks)
    assert [(f.kind, f.trust_filter, f.n) for f in found] == [
        ("mail", "on", 1), ("mail", "off", 1),
        ("page", "on", 1), ("page", "off", 1),
        ("all", "on", 2), ("all", "off", 2),
    ]  # fmt: skip
    assert found[-1].rates["asr@3"][:2] == (2, 2)
    assert found[-1].filter_p == 0.5, "two of two: 2 x (1/2)^2"


def test_a_kind_counts_its_own_poison_where_two_aim_at_one_query():
    attacks = (Attack("q1", ("w",), "page"), Attack("q1", ("a",), "mail"))
    found = {(f.kind, f.trust_filter): f for f in attacked(attacks)}
    assert found["mail", "on"].rates["asr@1"].successes == 1, "alpha is learned and stands first"
    assert found["page", "on"].rates["asr@3"].successes == 0
    assert found["all", "off"].figures["poison_precision@3"].value == pytest.approx(2 / 3)


def test_a_configuration_that_lets_everything_in_has_one_row():
    everything = ["system", "learned", "external"]
    config = settings({"maxResults": 3, "includeTrustLevels": everything})
    (only,) = attacked((Attack("q1", ("w",), "page"),), config)
    assert only.trust_filter == "off"
    assert only.filter_p is None


def test_the_recall_tool_has_no_trust_filter():
    found = attacked((Attack("q1", ("w",), "page"),), settings(), pipeline="recall-tool")
    assert [f.trust_filter for f in found] == ["none"]


def test_undefined_is_none_in_json_and_rates_carry_their_bounds():
    dataset = world(grades=GRADES, attacks=(Attack("q3", ("w",), "page"),))
    on = measure_attacks(
        dataset,
        settings({"maxResults": 3}),
        retriever=Retriever(dataset, embedder=HandEmbedder(), cache=None),
        clean=Retriever(without_poison(dataset), embedder=HandEmbedder(), cache=None),
    )[0].as_json()
    assert on["displacement"] == {"mean": None, "n": 0, "low": None, "high": None}
    assert on["figures"]["ndcg@10"] == {"value": None, "n": 0}
    asr = on["rates"]["asr@3"]
    assert (asr["successes"], asr["n"], asr["low"]) == (0, 1, 0)
    assert asr["high"] == pytest.approx(0.975), "0 of 1, two-sided: 1 - 0.025"
    assert asr["one_sided_upper"] == pytest.approx(0.95)


def test_without_attacks_there_is_nothing_to_measure():
    with pytest.raises(EvaluationError, match=r"has no attacks .*--kind"):
        measure_attacks(world(), settings())


def test_each_store_is_searched_once(monkeypatch):
    searched = []
    real = Retriever.candidates
    monkeypatch.setattr(
        Retriever, "candidates",
        lambda self, *a, **k: searched.append(len(self.dataset.memories)) or real(self, *a, **k),
    )  # fmt: skip
    attacked((Attack("q1", ("w",), "page"),))
    assert sorted(searched) == [len(MEMORIES) - 1, len(MEMORIES)]


def test_figures_as_long_rows():
    found = attacked((Attack("q1", ("w",), "page"),))
    frame = attack_frame(found)
    assert list(frame) == ["kind", "trust_filter", "metric", "value", "n", "low", "high"]
    asr = frame[frame["metric"] == "asr@3"].set_index("trust_filter")
    assert asr.loc["on", ["value", "n"]].tolist() == [0.0, 1]
    assert asr.loc["off", ["value", "n", "high"]].tolist() == [1.0, 1, 1.0]
    lost = frame[frame["metric"] == "displacement"].set_index("trust_filter")
    assert lost["value"].to_dict() == {"on": 0.0, "off": 0.5}
    plain = frame[frame["metric"] == "leak_rank@3"]
    assert plain["low"].isna().all(), "no interval"
    assert len(frame) == sum(len(f.figures) + 1 for f in found)
    assert list(attack_frame([])) == list(frame)
