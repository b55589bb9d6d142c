"""Where two rankings part: one hand-made pair a stage, and what holds for any two."""

from typing import Any

import pytest
from hypothesis import given, settings

from comis_eval.candidates import Rankings
from comis_eval.comparison import (
    STAGES,
    Parting,
    context_ids,
    first_parting,
    ranking_ids,
    scored_order,
)
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.errors import EvaluationError
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.rank import rank
from comis_eval.types import TrustLevel
from tests import strategies
from tests.builders import DAY, NOW, memory, query
from tests.pipelines.test_batch import pipeline
from tests.tables import table

A, B, C = memory("a"), memory("b"), memory("c")


def ranked(memories=(A, B, C), *, fts=("a", "b"), given: Any = None, **parts: Any) -> Rankings:
    """A ranking of one query; parts of the configuration with ``__`` for dots."""
    config = Config().evolve(**{path.replace("__", "."): v for path, v in parts.items()})
    return rank(table(memories, config, fts=fts, **(given or {})), config)


def parting(first: Rankings, second: Rankings) -> Parting:
    found = first_parting(first, second, 0)
    assert found is not None
    return found


def test_formulate():
    found = parting(ranked(), ranked(given={"asked": query("another text")}))
    assert found.stage == "formulate"
    assert found.what == "the search strings differ: 'anything' | 'another text'"


def test_search_names_the_lane_the_ids_and_the_place():
    found = parting(ranked(given={"vector": ["a", "b"]}), ranked(given={"vector": ["a", "c"]}))
    assert found == Parting(
        "search",
        "vector: 1 only in the first (b); 1 only in the second (c); from place 2 on: b | c",
        ("a", "b"),
        ("a", "c"),
    )


def test_search_sees_another_order():
    found = parting(ranked(fts=("a", "b")), ranked(fts=("b", "a")))
    assert found.stage == "search"
    assert found.what == "fts: from place 1 on: a | b"


def test_an_empty_lane_is_as_if_it_were_off():
    both, one = Config(), Config().evolve(**{"harness.lanes": ("fts",)})
    with_vector = rank(table((A, B), both, fts=("a", "b")), both)
    only_fts = rank(table((A, B), both, fts=("a", "b")).restricted("fts"), one)
    assert first_parting(with_vector, only_fts, 0) is None


def test_fuse():
    lists = {"given": {"vector": ["b"]}, "fts": ("a",)}
    found = parting(
        ranked(**lists, rag__lanes__fts__weight=2.0),
        ranked(**lists, rag__lanes__vector__weight=2.0),
    )
    assert (found.stage, found.first, found.second) == ("fuse", ("a", "b"), ("b", "a"))


def test_min_score_parts_at_fuse():
    found = parting(ranked(), ranked(rag__min_score=1.0))
    assert (found.stage, found.second) == ("fuse", ("a",))


def reranked(scores: dict[str, float] | None, **parts: Any) -> Rankings:
    return ranked(given={"rerank": scores}, rag__rerank__enabled=True, **parts)


def test_rerank_outcome():
    found = parting(ranked(), reranked({"a": 0.2, "b": 0.1}))
    assert found.stage == "rerank"
    assert found.what == "the outcomes differ: skipped (disabled) | ran (none)"


def test_rerank_order_of_the_pool():
    found = parting(reranked({"a": 0.2, "b": 0.1}), reranked({"a": 0.2, "b": 0.3}))
    assert (found.stage, found.first, found.second) == ("rerank", ("a", "b"), ("b", "a"))


def test_rerank_scores_alone():
    found = parting(reranked({"a": 0.2, "b": 0.1}), reranked({"a": 0.3, "b": 0.1}))
    assert (found.stage, found.what) == ("rerank", "the same order of the pool, other scores")


def test_a_rerank_skipped_for_two_reasons_is_skipped():
    assert (
        first_parting(ranked(), reranked({"a": 0.2, "b": 0.1}, rag__rerank__min_results=9), 0)
        is None
    )


def test_score():
    old = memory("a", created_at=NOW - 900 * DAY)
    young = memory("b", created_at=NOW)
    found = parting(
        ranked((old, young), rag__scoring__recency_alpha=0.0),
        ranked((old, young), rag__scoring__recency_alpha=1.0),
    )
    assert (found.stage, found.first, found.second) == ("score", ("a", "b"), ("b", "a"))


def test_scores_that_order_alike_do_not_part():
    assert first_parting(ranked(), ranked(rag__scoring__recency_alpha=0.3), 0) is None


def test_min_score_on_final_parts_at_score():
    parts = {"semantics__min_score_on": "final"}
    assert parting(ranked(**parts), ranked(**parts, rag__min_score=1.0)).stage == "score"


def test_trust():
    memories = (A, memory("b", trust_level=TrustLevel.EXTERNAL))
    levels = tuple(TrustLevel)
    found = parting(ranked(memories), ranked(memories, rag__include_trust_levels=levels))
    assert (found.stage, found.first, found.second) == ("trust", ("b",), ())
    assert found.what == "filtered: 1 only in the first (b); from place 1 on: b | nothing"


def test_dedup():
    twins = (memory("a", "same"), memory("b", "same", created_at=NOW))
    calm = {"rag__scoring__recency_alpha": 0.0}
    found = parting(ranked(twins, **calm), ranked(twins, **calm, semantics__dedup_keep="newest"))
    assert (found.stage, found.first, found.second) == ("dedup", ("a",), ("b",))


def test_budget():
    found = parting(ranked(), ranked(rag__max_results=1))
    assert (found.stage, found.first, found.second) == ("budget", ("a", "b"), ("a",))


def test_present_sees_another_line():
    found = parting(ranked(), ranked(semantics__line_format="short"))
    assert found.stage == "present"
    assert found.what.startswith("the same memories, written otherwise: ")


def test_present_sees_an_inlined_memory():
    found = parting(ranked(), ranked(semantics__inline_min_score=0.0))
    assert (found.stage, found.what) == ("present", "placed beside the message: nothing | a")


def test_another_wrapper_around_nothing_does_not_part():
    assert first_parting(ranked(fts=()), ranked(fts=(), semantics__line_format="short"), 0) is None


def test_hostile_ids_are_shown_and_long_lists_cut():
    memories = [memory(f"m\x1b[2J{n}") for n in range(9)]
    found = parting(ranked(memories, fts=()), ranked(memories, fts=[m.id for m in memories]))
    assert "\x1b" not in found.what
    assert "and 4 more" in found.what


def test_two_queries_are_refused():
    other = ranked(given={"asked": query("anything", "q2")})
    with pytest.raises(EvaluationError, match="query 0 is 'q' in the first ranking and 'q2'"):
        first_parting(ranked(), other, 0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), one=strategies.configs(), two=strategies.configs())
def test_rankings_that_never_part_inject_the_same(dataset: Dataset, one: Config, two: Config):
    a, b = (rank(pipeline(dataset, c).candidates(dataset.queries), c) for c in (one, two))
    for place in range(len(dataset.queries)):
        assert first_parting(a, a, place) is None
        there, back = first_parting(a, b, place), first_parting(b, a, place)
        if there is None:
            assert back is None
            sections = [result(r, place, delimiter=lambda: "a" * 24) for r in (a, b)]
            assert sections[0].section == sections[1].section
            assert sections[0].inline == sections[1].inline
        else:
            assert back is not None
            assert there.stage == back.stage in STAGES
            assert (there.first, there.second) == (back.second, back.first)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), config=strategies.configs())
def test_scored_order_without_the_filtered_is_the_ranking(dataset: Dataset, config: Config):
    config = config.evolve(**{"rag.mmr.enabled": False})
    rankings = rank(pipeline(dataset, config).candidates(dataset.queries), config)
    memories = rankings.table.corpus.memories
    for place in range(len(dataset.queries)):
        columns = scored_order(rankings, place)
        kept = columns[rankings.presence["dedup"][place, columns]]
        ids = tuple(memories[row].id for row in rankings.table.rows[place, kept].tolist())
        assert ids == ranking_ids(rankings, place)
        told = result(rankings, place)
        assert [c.memory.id for c in told.ranking] == list(ids)
        assert tuple(m.id for m in told.memories) == context_ids(rankings, place)
