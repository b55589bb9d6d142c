"""Rank-biased overlap by hand and by property, and the difference of two configurations."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.difference import Difference, Moved, difference, rank_biased_overlap
from comis_eval.errors import EvaluationError
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from tests.builders import memory, query

RANKINGS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
PERSISTENCES = st.floats(0.05, 0.99)


@pytest.mark.parametrize(
    ("one", "two", "p", "expected"),
    [
        pytest.param("ab", "ba", 0.9, 0.9, id="swapped: (1-p)/p p^2 + p^2 = p"),
        # agreements 0, 1/2, 2/3, so (0.5/0.5)(0 + 0.5 x 0.25 + 2/3 x 0.125) + 2/3 x 0.125
        pytest.param("abc", "xab", 0.5, 0.125 + 2 / 24 + 2 / 24, id="moved down by one"),
        # agreements 1, 1, 2/3, 1/2: 0.5 + 0.25 + 1/12 + 1/32, and 1/2 x 1/16 beyond
        pytest.param("abcd", "abxy", 0.5, 0.5 + 0.25 + 1 / 12 + 1 / 32 + 1 / 32, id="half"),
        # short "a" against "xa", X = 0, 1, s = 1: X_s = 0, so (1 - p)/p x p^2 / 2 + p^2 / 2
        pytest.param("a", "xa", 0.5, 0.125 + 0.125, id="uneven, met below"),
        # short "ax" against "abc", X = 1, 1, 1, s = 2: depth 3 adds 1 x (3-2)/(2x3), and
        # beyond: (0/3 + 1/2) p^3
        pytest.param(
            "ax", "abc", 0.5, 0.5 + 0.125 + (1 / 3 + 1 / 6) / 8 + 0.5 / 8, id="uneven, half"
        ),
        pytest.param("ab", "abcd", 0.9, 1.0, id="a head of the other"),
        pytest.param("", "", 0.9, 1.0, id="both empty"),
        pytest.param("", "a", 0.9, 0.0, id="one empty"),
    ],
)
def test_overlap_by_hand(one: str, two: str, p: float, expected: float):
    assert rank_biased_overlap(one, two, p=p) == pytest.approx(expected, abs=1e-12)


@given(ranking=RANKINGS, p=PERSISTENCES)
def test_a_ranking_overlaps_itself_fully(ranking: list[str], p: float):
    assert rank_biased_overlap(ranking, ranking, p=p) == pytest.approx(1.0, abs=1e-9)


@given(one=RANKINGS, two=RANKINGS, p=PERSISTENCES)
def test_overlap_is_symmetric_and_lies_in_0_1(one: list[str], two: list[str], p: float):
    there = rank_biased_overlap(one, two, p=p)
    assert there == rank_biased_overlap(two, one, p=p)
    assert 0.0 <= there <= 1.0


@given(one=RANKINGS.filter(bool), two=RANKINGS.filter(bool), p=PERSISTENCES)
def test_disjoint_rankings_do_not_overlap(one: list[str], two: list[str], p: float):
    assert rank_biased_overlap(one, [item.upper() for item in two], p=p) == 0.0


@given(one=RANKINGS, two=RANKINGS, p=PERSISTENCES)
def test_overlap_of_even_lists_is_the_mean_agreement_carried_on(
    one: list[str], two: list[str], p: float
):
    """The definition itself, summed to where the weights vanish."""
    size = min(len(one), len(two))
    one, two = one[:size], two[:size]
    if not size:
        return
    agreements = [len({*one[:d]} & {*two[:d]}) / d for d in range(1, size + 1)]
    carried = agreements + [agreements[-1]] * 6000
    total = (1 - p) * sum(x * p**d for d, x in enumerate(carried))
    assert rank_biased_overlap(one, two, p=p) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, float("nan")])
def test_a_persistence_outside_0_1_is_refused(p: float):
    with pytest.raises(EvaluationError, match=r"needs p in \(0, 1\), got"):
        rank_biased_overlap("a", "a", p=p)


MEMORIES = (memory("a", "kiln kiln kiln"), memory("b", "kiln"), memory("c", "glaze"))
QUERIES = (query("kiln", "q1"), query("glaze", "q2"), query("nothing", "q3"))


def compared(first: Config, second: Config, queries=QUERIES) -> Difference:
    dataset = Dataset(
        name="hand", memories=MEMORIES, queries=queries, judgments=Judgments.of([], n_queries=3)
    )
    lanes = {"harness.lanes": ("fts",)}
    configs = [config.evolve(**lanes) for config in (first, second)]
    retriever = Retriever(dataset, cache=None)
    ranked = [rank(MemoryRecall(retriever, c).candidates(queries), c) for c in configs]
    return difference(*ranked)


def test_difference_of_a_smaller_context():
    found = compared(Config(), Config().evolve(**{"rag.max_results": 1}))
    assert [query.changed for query in found.queries] == [True, False, False]
    assert found.changed_share == pytest.approx(1 / 3)
    assert found.mean_overlap == 1.0, "the rankings are the same, only the cut moved"
    assert found.partings == {"budget": 1}
    left = found.queries[0].left
    assert len(left) == 1
    assert found.moved == (Moved(left[0], 0, 1),)
    assert [query.query_id for query in found.worst] == ["q1", "q2", "q3"]


def test_the_worst_query_has_the_lowest_overlap():
    found = compared(Config(), Config().evolve(**{"rag.min_score": 1.0}))
    assert found.worst[0].query_id == "q1"
    assert found.worst[0].entered == ()
    assert found.partings == {"fuse": 1}


def test_the_same_configuration_makes_no_difference():
    found = compared(Config(), Config())
    assert found.changed_share == 0.0
    assert found.mean_overlap == 1.0
    assert found.partings == {}
    assert found.moved == ()


def test_other_queries_are_refused():
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    dataset = Dataset(
        name="hand", memories=MEMORIES, queries=QUERIES, judgments=Judgments.of([], n_queries=3)
    )
    table = MemoryRecall(Retriever(dataset, cache=None), config).candidates(QUERIES)
    fewer = MemoryRecall(Retriever(dataset, cache=None), config).candidates(QUERIES[:2])
    with pytest.raises(EvaluationError, match="holds 3 queries, the second 2"):
        difference(rank(table, config), rank(fewer, config))
    renamed = replace(table, queries=tuple(replace(q, id=f"x{q.id}") for q in QUERIES))
    with pytest.raises(EvaluationError, match="query 0 is 'q1' in the first ranking"):
        difference(rank(table, config), rank(renamed, config))
