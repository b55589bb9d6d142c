"""What a table must cover for a space, and the parts of it that a sweep looks at."""

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.errors import CoverageError
from comis_eval.pipelines.coverage import Coverage
from comis_eval.tuning.parts import Bench
from comis_eval.tuning.reach import coverage_of
from comis_eval.tuning.space import Space
from tests.tuning.worlds import ALPHAS, FTS, bench, space, stale

PRODUCTION = Config().evolve(**{"semantics.preset": "production", "harness.lanes": ("fts",)})


def test_documented_semantics_read_the_lanes_to_one_fixed_depth():
    assert coverage_of(ALPHAS, Config()) == Coverage(depth=100)
    deep = Config().evolve(**{"semantics.lane_depth": 7})
    assert coverage_of(space(rag__maxResults={"low": 1, "high": 90}), deep).depth == 7


def test_the_shipped_system_reads_twice_the_largest_limit_of_the_space():
    assert coverage_of(ALPHAS, PRODUCTION).depth == 2 * PRODUCTION.rag.max_results
    results = {"low": 1, "high": 13}
    assert coverage_of(space(rag__maxResults=results), PRODUCTION).depth == 26
    caps = {"low": 5, "high": 40}
    both = space(
        rag__maxResults=results, rag__rerank__enabled=None, rag__rerank__maxCandidates=caps
    )
    assert coverage_of(both, PRODUCTION) == Coverage(depth=80, rerank=True)


def test_the_limit_in_use_counts_when_it_is_the_larger_one():
    wide = PRODUCTION.evolve(**{"rag.max_results": 30})
    assert coverage_of(space(rag__maxResults={"low": 1, "high": 5}), wide).depth == 60
    reranks = PRODUCTION.evolve(**{"rag.rerank.enabled": True, "rag.rerank.max_candidates": 50})
    assert coverage_of(ALPHAS, reranks) == Coverage(depth=100, rerank=True)


def test_a_cap_without_its_switch_is_not_reached():
    capped = PRODUCTION.evolve(**{"rag.rerank.max_candidates": 50})
    assert coverage_of(ALPHAS, capped).depth == 2 * PRODUCTION.rag.max_results


def test_choices_count_like_ranges():
    given = {"choices": [3, 50]}
    assert coverage_of(space(rag__maxResults=given), PRODUCTION).depth == 100


def test_spread_lanes_that_may_run_are_covered():
    lanes = space(
        rag__entityLane__enabled=None,
        rag__lanes__temporal__enabled=None,
        rag__lanes__temporal__windowDays={"low": 1, "high": 30},
        rag__lanes__causal__enabled=None,
    )
    covered = coverage_of(lanes, Config())
    assert covered == Coverage(depth=100, entity=True, window_days=30, causal=True)
    runs = Config().evolve(**{"rag.lanes.temporal.enabled": True, "rag.entity_lane.enabled": True})
    assert coverage_of(ALPHAS, runs) == Coverage(depth=100, entity=True, window_days=7)


def test_every_point_of_a_space_can_be_replayed_on_what_it_covers():
    dataset = stale(6, width=30)
    searched = space(rag__maxResults={"low": 1, "high": 4}, rag__minScore={"low": 0, "high": 1})
    replay = bench(dataset, searched, PRODUCTION.evolve(**{"rag.max_results": 2})).replay()
    for most in (1, 4):
        replay(replay.current.evolve(**{"rag.max_results": most}))
    with pytest.raises(CoverageError, match="depth 8 and cannot answer for 10"):
        replay(replay.current.evolve(**{"rag.max_results": 5}))


def test_the_default_space_is_covered():
    searched = Space.default(
        has_usefulness=True, freeze_trust=False, rerank=True, entities=True, vector=True
    )
    assert coverage_of(searched, PRODUCTION) == Coverage(depth=200, rerank=True, entity=True)


def test_groups_and_categories_stand_in_the_order_of_the_queries():
    dataset = stale(2)
    made = Bench(dataset, None, FTS, ("utility",))  # type: ignore[arg-type]
    assert made.groups.tolist() == ["g0", "g0", "g1", "g1"]
    assert made.categories.tolist() == ["new", "newer", "new", "newer"]


def test_a_part_scores_its_queries_as_the_whole_does():
    dataset = stale(8)
    whole = bench(dataset, ALPHAS, FTS, "ndcg@10")
    config = FTS.evolve(**{"rag.scoring.recency_alpha": 0.9})
    everywhere = whole.replay()(config).per_query
    positions = np.array([11, 2, 7])
    part = whole.replay(positions)
    assert [q.id for q in part.table.queries] == ["q11", "q2", "q7"]
    assert part(config).per_query.tolist() == everywhere[positions].tolist()
    assert part.current is whole.current
