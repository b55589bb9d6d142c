"""Figures worked on paper, and what an evaluation must list, note or refuse."""

from dataclasses import replace
from math import isnan, log2
from typing import Any

import pytest

from comis_eval.config import Config
from comis_eval.datasets import Policy
from comis_eval.errors import (
    DatasetError,
    EvaluationError,
    LaunderingError,
    MetricError,
    ModelError,
)
from comis_eval.evaluation import Evaluation
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import TrustLevel
from tests.builders import memory, query
from tests.evaluation.world import (
    ALPHA,
    BETA,
    GAMMA,
    MEMORIES,
    OTHER,
    QUERIES,
    WEB,
    HandEmbedder,
    measured,
    settings,
    world,
)

EXTERNAL = {"includeTrustLevels": ["system", "learned", "external"]}


def column(evaluation: Evaluation, metric: str) -> list[float | None]:
    return [None if isnan(value) else value for value in evaluation.values[metric].tolist()]


# The figures. The ranking is a, b, c for every query: w is filtered, o is another tenant's.
NDCG1 = (2 / log2(3) + 1 / log2(4)) / (2 + 1 / log2(3))  # b of grade 2 second, c of 1 third
NDCG2 = 1 / (1 + 1 / log2(3))  # a of grade 1 first, w of 1 nowhere
# Header 94; lines "- [learned] (recorded 2026-05-27): " of 35 (system 34), content, newline.
LINES = {"a": 35 + 5 + 1, "b": 34 + 4 + 1, "c": 35 + 5 + 1}
CHARS = 94 + sum(LINES.values())


def test_every_figure_is_the_one_worked_on_paper() -> None:
    found = measured(world())
    by_hand: dict[str, list[float | None]] = {
        "ndcg@10": [NDCG1, NDCG2, None],
        "recall@5": [1.0, 0.5, None],
        "hit@5": [1.0, 1.0, None],
        "mrr@10": [0.5, 1.0, None],
        "map": [(1 / 2 + 2 / 3) / 2, 1 / 2, None],
        "precision@5": [2 / 5, 1 / 5, None],
        "context_recall": [1.0, 0.5, None],
        "context_precision": [2 / 3, 1 / 3, None],
        "context_ndcg": [NDCG1, NDCG2, None],
        "context_chars": [CHARS] * 3,
        "context_fill": [CHARS / 4000] * 3,
        "abstention": [None, None, 0.0],
        "noise": [None, None, CHARS / 4000],
        # Pairs with b, of system trust: (a, b) counts where b is no worse than a, (b, c) where
        # it is no worse than c; only (a, b) is the wrong way round. Unjudged is as good as 0.
        "trust_inversion@5": [1 / 2, 0.0, 1 / 2],
        "judged@5": [2 / 3, 1 / 3, 0.0],
        "policy_leak": [0.0] * 3,
        "over_block": [0.0, 0.0, None],
        "untrusted_share@5": [0.0] * 3,
        "unwanted_after_search": [1.0] * 3,
        "unwanted_after_score": [1.0] * 3,
        "unwanted_after_trust": [0.0] * 3,
        "resurrected": [0.0] * 3,
    }
    for metric, values in by_hand.items():
        assert column(found, metric) == pytest.approx(values), metric


def test_the_means_are_of_those_that_have_a_value_and_say_how_many() -> None:
    found = measured(world())
    assert found.means["all"]["ndcg@10"] == (pytest.approx((NDCG1 + NDCG2) / 2), 2)
    assert found.means["x"]["ndcg@10"] == (pytest.approx(NDCG1), 1)
    assert found.means["z"]["ndcg@10"].n == 0
    assert isnan(found.mean("ndcg@10", "z"))
    assert found.means["all"]["unwanted_after_search"] == (3.0, 3), "counts are added up"
    answered = [
        NDCG1 - 0.2 * LINES["a"] / 4000,
        NDCG2 - 0.2 * (LINES["b"] + LINES["c"]) / 4000,
    ]
    utility = 0.9 * sum(answered) / 2 + 0.1 * (1 - CHARS / 4000)
    assert found.mean("utility") == pytest.approx(utility)
    assert found.counts == {
        "queries": 3, "scored": 2, "unanswerable": 1, "failed": 0, "unknown_ids": 0,
    }  # fmt: skip
    assert found.lanes == {"vector": 3}
    assert found.dead_lanes == ()


def test_a_category_outside_the_headline_is_outside_all() -> None:
    found = measured(world(categories={"y": False}))
    assert found.means["all"]["ndcg@10"] == (pytest.approx(NDCG1), 1)
    assert found.means["y"]["ndcg@10"] == (pytest.approx(NDCG2), 1)
    assert found.means["all"]["policy_leak"].n == 3, "leaks are counted everywhere"
    assert found.settings["headline"] == ["x", "z"]


def test_a_higher_relevance_level_leaves_out_queries_without_such_a_memory() -> None:
    found = measured(world(), relevance_level=2)
    assert column(found, "recall@5") == [1.0, None, None]
    assert column(found, "ndcg@10")[1] == pytest.approx(NDCG2), "nDCG knows no level"
    assert found.settings["relevance_level"] == 2


# Reference rows


def test_the_oracle_is_the_best_order_of_the_same_candidates() -> None:
    found = measured(world())
    assert set(found.references) == {"vector", "random", "oracle"}
    # b, c, a is ideal for q1; for q2 w is not among the candidates.
    assert found.references["oracle"]["ndcg@10"] == (pytest.approx((1 + NDCG2) / 2), 2)
    assert found.references["oracle"]["mrr@10"].value == 1.0
    assert "context_ndcg" not in found.references["oracle"], "only the ranking is reordered"
    assert found.notes == ("no fts reference: the lane is off (--lanes)",)


def test_a_lanes_reference_is_the_lane_alone_without_boosts_and_floors() -> None:
    # The floor drops all but a, and no line fits; the lane alone has neither fault.
    config = settings({"minScore": 0.99, "scoring": {"trustAlpha": 1.0}})
    found = measured(world(), config)
    assert column(found, "recall@5") == [0.0, 0.5, None]
    assert found.references["vector"]["ndcg@10"].value == pytest.approx((NDCG1 + NDCG2) / 2)


def test_with_both_lanes_both_keyword_backends_are_references() -> None:
    asked = world(queries=[query("gamma or beta", "q1")], grades={("q1", "c"): 1})
    found = measured(asked, settings(harness={}))
    assert set(found.references) == {"fts", "rank_bm25", "vector", "random", "oracle"}
    assert found.references["fts"]["recall@5"] == (1.0, 1)
    assert found.notes == ()
    swapped = measured(asked, settings(harness={"keywordBackend": "rank_bm25"}))
    for name in ("fts", "rank_bm25", "vector"):
        assert str(swapped.references[name]) == str(found.references[name])


def test_the_random_row_is_the_seeds() -> None:
    rows = [measured(world(), seed=seed).references["random"]["mrr@10"].value for seed in range(6)]
    again = [measured(world(), seed=seed).references["random"]["mrr@10"].value for seed in range(6)]
    assert rows == again
    assert len(set(rows)) > 1


def test_the_random_row_shuffles_each_list_within_its_own_length() -> None:
    theirs = query("theirs", "q2", tenancy=OTHER.tenancy)
    dataset = world(
        queries=(QUERIES[0], theirs),
        grades={("q1", "a"): 1, ("q1", "b"): 1, ("q1", "c"): 1, ("q2", "o"): 1},
    )
    # Whatever stands first is relevant: one of three here, the only one there.
    for seed in range(6):
        found = measured(dataset, seed=seed, metrics=["hit@1"])
        assert found.references["random"]["hit@1"] == (1.0, 2)


def test_references_can_be_left_out() -> None:
    assert measured(world(), references=False).references == {}


# Leaks


def test_a_configuration_that_lets_external_in_leaks_by_the_datasets_policy() -> None:
    found = measured(world(), settings(EXTERNAL))
    assert [dict(leak) for leak in found.leaks] == [
        {"query_id": one.id, "memory_id": "w", "stage": "search", "why": "trust"} for one in QUERIES
    ]
    assert found.means["all"]["policy_leak"] == (1.0, 3)
    assert found.means["all"]["scope_leak"] == (0.0, 3)
    assert column(found, "untrusted_share@5") == [1 / 4] * 3
    assert found.means["all"]["unwanted_after_budget"].value == 3
    assert found.bounds["policy_leak"] == 1.0
    # None of 3: with p = 1 - 0.05^(1/3) there is a 5% chance of seeing none.
    assert found.bounds["scope_leak"] == pytest.approx(1 - 0.05 ** (1 / 3))


def test_a_policy_that_allows_external_is_not_leaked_from() -> None:
    open_ = world(policy=Policy(frozenset(TrustLevel)))
    found = measured(open_, settings(EXTERNAL))
    assert found.leaks == ()
    assert found.means["all"]["policy_leak"] == (0.0, 3)


def test_another_agents_private_row_is_a_scope_leak() -> None:
    mine = replace(ALPHA, scope="agent", created_by="default")
    theirs = replace(GAMMA, scope="agent", created_by="somebody")
    found = measured(world((mine, BETA, WEB, theirs)))
    assert {(leak["memory_id"], leak["why"]) for leak in found.leaks} == {("c", "scope")}
    assert found.means["all"]["scope_leak"] == found.means["all"]["policy_leak"] == (1.0, 3)
    assert column(found, "unwanted_after_search") == [2.0] * 3, "w and c"
    assert column(found, "unwanted_after_budget") == [1.0] * 3


@pytest.mark.parametrize("scope_filter", ["in_lane", "after_fusion"])
def test_neither_scope_filter_lets_another_tenant_in(scope_filter: str) -> None:
    found = measured(world(), settings(semantics={"scopeFilter": scope_filter}))
    assert found.mean("scope_leak") == 0.0
    # Filtered after fusion, o has been found and is gone before it can be scored.
    assert column(found, "unwanted_after_search") == [1.0 + (scope_filter == "after_fusion")] * 3
    assert column(found, "unwanted_after_fuse") == [1.0] * 3


def test_a_laundered_memory_is_refused_before_it_is_measured() -> None:
    derived = memory("d", "gamma", source_ids=("w",))
    dataset = world((*MEMORIES, derived))
    with pytest.raises(LaunderingError, match="'d'"):
        measured(dataset)


def test_a_derived_memory_may_be_trusted_as_far_as_its_sources() -> None:
    derived = memory("d", "gamma too", source_ids=("a", "b"))
    assert measured(world((*MEMORIES, derived))).means["all"]["laundered"] == (0.0, 3)


@pytest.mark.parametrize(
    ("floor", "share"),
    [(0.5, 0.0), (0.98, 0.5), (0.99, 1.0)],  # scores: a 1, b 61/62 = .984, c 61/64 = .953
)
def test_over_block_is_the_share_of_relevant_and_allowed_that_a_floor_drops(
    floor: float, share: float
) -> None:
    found = measured(world(), settings({"minScore": floor}))
    assert column(found, "over_block") == [share, 0.0, None], "w of q2 is not allowed anyway"


def test_a_superseded_answer_above_the_current_one_is_stale() -> None:
    renewed = query("now?", "q1", superseded="a"), query("then?", "q2", superseded="b")
    found = measured(world(queries=renewed, grades={("q1", "b"): 2, ("q2", "a"): 2}))
    assert column(found, "stale@5") == [1.0, 0.0]
    assert found.means["all"]["stale@5"].n == 2


# What a reader must know


def test_a_cut_off_beyond_the_depth_is_noted() -> None:
    deep = measured(world(), metrics=["ndcg@101", "ndcg@100", "recall@200"], references=False)
    assert deep.notes == (
        "ndcg@101, recall@200, judged@101, judged@200: beyond the depth to which a lane is read "
        "(100); what lies below was not ranked",
    )


def test_production_cuts_the_list_before_the_lanes_end() -> None:
    config = settings(semantics={"preset": "production"})
    found = measured(world(), config, metrics=["ndcg@5", "ndcg@6"], references=False)
    assert found.notes == (
        "ndcg@6, judged@6: beyond the depth at which the searched list is cut (5); "
        "what lies below was not ranked",
    )


def test_a_lane_that_found_nothing_is_dead() -> None:
    config = settings(
        {"lanes": {"causal": {"enabled": True}}}, harness={"lanes": ["fts", "vector"]}
    )
    found = measured(world(), config)
    assert found.lanes == {"fts": 0, "vector": 3, "causal": 0}
    assert found.dead_lanes == ("fts", "causal")


def test_a_switched_off_recall_is_measured_as_what_it_is() -> None:
    embedder = HandEmbedder(reportable=False)
    dataset = world()
    found = measured(
        dataset,
        settings({"enabled": False, "rerank": {"enabled": True}, "mmr": {"enabled": True}}),
        retriever=Retriever(dataset, embedder=embedder, cache=None),
    )
    assert embedder.calls == 0, "nothing is searched"
    assert found.means["all"]["ndcg@10"] == (0.0, 2)
    assert found.means["all"]["abstention"] == (1.0, 1)
    assert found.means["all"]["context_chars"] == (0.0, 3)
    assert (found.lanes, found.references, found.leaks) == ({}, {}, ())


def test_no_memories_and_no_queries() -> None:
    nobody = measured(world(memories=(), queries=(QUERIES[2],), grades={}))
    assert nobody.means["all"]["abstention"] == (1.0, 1)
    assert nobody.counts["unanswerable"] == 1
    silent = measured(world(queries=(), grades={}))
    assert silent.counts["queries"] == 0
    assert all(mean.n == 0 for mean in silent.means["all"].values())
    assert silent.bounds["policy_leak"] == 1.0, "nothing seen, nothing excluded"


# Splits


def many(count: int = 40) -> Any:
    asked = [query(f"question {n}", f"q{n}", group=f"g{n // 2}") for n in range(count)]
    return world(queries=asked, grades={(one.id, "a"): 1 for one in asked})


def test_the_splits_part_the_groups_and_are_the_seeds() -> None:
    dataset = many()
    found = {
        split: measured(dataset, split=split, seed=3) for split in ("all", "tune", "select", "test")
    }
    parts = [found[split].query_ids for split in ("tune", "select", "test")]
    assert sorted(found["all"].query_ids) == sorted(id_ for part in parts for id_ in part)
    groups = [set(found[split].groups) for split in ("tune", "select", "test")]
    assert sum(map(len, groups)) == len(set().union(*groups)), "no group is in two splits"
    assert {one.dataset["fingerprint"] for one in found.values()} == {dataset.fingerprint}
    assert found["tune"].dataset["split"] == "tune"
    assert measured(dataset, split="tune", seed=3).query_ids == found["tune"].query_ids
    assert measured(dataset, split="tune", seed=4).query_ids != found["tune"].query_ids


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(DatasetError, match="split is 'dev'; allowed: tune, select, test, all"):
        measured(world(), split="dev")


# What is refused


def test_an_embedder_for_tests_may_not_serve_a_reported_figure() -> None:
    dataset = world()
    retriever = Retriever(dataset, embedder=HandEmbedder(reportable=False), cache=None)
    for config in (
        settings(),
        settings(harness={"lanes": ["fts", "vector"]}),
        settings({"mmr": {"enabled": True}}, harness={"lanes": ["fts"]}),
    ):
        with pytest.raises(ModelError, match=r"'by hand' is for unit tests.*--lanes fts"):
            measured(dataset, config, retriever=retriever)
    assert measured(dataset, settings(harness={"lanes": ["fts"]}), retriever=retriever).rankings


def test_a_retriever_over_other_memories_is_refused() -> None:
    other = world((ALPHA, BETA), grades={})
    with pytest.raises(EvaluationError, match="not those of 'world'"):
        measured(world(), retriever=Retriever(other, embedder=HandEmbedder(), cache=None))


def test_an_unknown_metric_is_refused_before_anything_is_searched() -> None:
    dataset, embedder = world(), HandEmbedder()
    with pytest.raises(MetricError, match="there is no metric 'ndgc@10'"):
        measured(
            dataset,
            metrics=["ndgc@10"],
            retriever=Retriever(dataset, embedder=embedder, cache=None),
        )
    assert embedder.calls == 0


# The record


def test_rows_and_summary_are_long() -> None:
    found = measured(world(), metrics=["recall@5"])
    rows = found.rows()
    assert list(rows.columns) == ["query_id", "group", "category", "metric", "value"]
    recall = rows[rows.metric == "recall@5"]
    assert recall.query_id.tolist() == ["q1", "q2", "q3"]
    assert recall.group.tolist() == ["q1", "q2", "q3"], "a query without a group is its own"
    assert recall.value.fillna(-1).tolist() == [1.0, 0.5, -1.0]
    summary = found.summary()
    oracle = summary[(summary.category == "ref:oracle") & (summary.metric == "recall@5")]
    assert oracle[["value", "n"]].to_numpy().tolist() == [[0.75, 2.0]]


def test_the_repr_names_what_was_measured() -> None:
    assert repr(measured(world())).startswith("<Evaluation of memory-recall on world: ndcg@10 0.6")


def test_the_settings_say_what_figures_rest_on() -> None:
    found = measured(world(), settings({"maxResults": 3, "maxContextChars": 900}))
    assert found.settings == {
        "k": [3, 5, 10], "gain": "linear", "relevance_level": 1, "k0": 3, "c0": 900,
        "headline": ["x", "y", "z"], "utility": {"cost": 0.2, "unanswerableWeight": 0.1},
    }  # fmt: skip
    fixed = settings(harness={"lanes": ["vector"], "utility": {"k0": 2, "c0": 50}})
    assert (measured(world(), fixed).settings["k0"], measured(world(), fixed).settings["c0"]) == (
        2,
        50,
    )
    assert {"python", "sqlite", "numpy", "faiss-cpu", "comis_eval"} <= set(found.versions)
    assert found.config == settings({"maxResults": 3, "maxContextChars": 900}).to_tree()
    assert found.config_hash != measured(world(), Config()).config_hash
