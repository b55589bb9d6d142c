"""Which candidates a second model sees, and every way in which its answer may end."""

import numpy as np
import pytest
from numpy.typing import NDArray

from comis_eval.stages import rerank
from comis_eval.stages.rerank import Outcome, Reason

FUSED = np.array([[0.9, 0.8, 0.7]])
POOL = np.array([[True, True, False]])


def applied(
    *,
    pool: NDArray[np.bool_] = POOL,
    scores: tuple[float, ...] = (0.2, 0.6, np.nan),
    elapsed: float = 0.0,
    fault: Reason = Reason.NONE,
) -> rerank.Reranked:
    return rerank.apply(
        FUSED,
        pool,
        np.array([scores]),
        np.array([elapsed]),
        np.array([fault], dtype=np.int8),
        timeout_ms=800,
    )


def test_the_pool_is_the_head_of_the_living() -> None:
    position = np.array([[1, 0, 2, 3]])
    alive = np.array([[True, True, True, False]])
    pool = rerank.pool(position, alive, max_candidates=2, min_results=1)
    assert pool.tolist() == [[True, True, False, False]]


@pytest.mark.parametrize(("min_results", "asked"), [(0, True), (2, True), (3, False)])
def test_too_few_living_are_not_asked_about(min_results: int, *, asked: bool) -> None:
    alive = np.array([[True, True, False]])
    pool = rerank.pool(np.array([[0, 1, 2]]), alive, max_candidates=9, min_results=min_results)
    assert pool.any() == asked


@pytest.mark.parametrize("min_results", [0, 1])
def test_nobody_is_asked_about_an_empty_list(min_results: int) -> None:
    nobody = np.zeros((1, 2), dtype=bool)
    pool = rerank.pool(np.array([[0, 1]]), nobody, max_candidates=9, min_results=min_results)
    assert not pool.any()


def test_an_answer_in_time_replaces_the_pools_scores_and_puts_the_rest_behind() -> None:
    done = applied()
    assert done.base.tolist() == [[0.2, 0.6, 0.7]]
    assert done.tail.tolist() == [[False, False, True]]
    assert (done.outcome[0], done.reason[0]) == (Outcome.RAN, Reason.NONE)
    assert done.pool.tolist() == POOL.tolist()


def test_a_score_that_is_missing_is_0() -> None:
    assert applied(scores=(0.2, np.nan, np.nan)).base.tolist() == [[0.2, 0.0, 0.7]]


def test_exactly_at_the_timeout_is_in_time() -> None:
    assert applied(elapsed=800).outcome[0] == Outcome.RAN
    assert applied(elapsed=np.nextafter(800, 900)).outcome[0] == Outcome.TIMED_OUT


EMPTY = np.zeros((1, 3), dtype=bool)


@pytest.mark.parametrize(
    ("given", "outcome", "reason"),
    [
        ({"elapsed": np.inf}, Outcome.TIMED_OUT, Reason.TIMEOUT),
        ({"fault": Reason.ERROR}, Outcome.FELL_BACK, Reason.ERROR),
        ({"fault": Reason.ERROR, "elapsed": np.inf}, Outcome.FELL_BACK, Reason.ERROR),
        ({"fault": Reason.UNAVAILABLE}, Outcome.SKIPPED, Reason.UNAVAILABLE),
        ({"fault": Reason.UNAVAILABLE, "pool": EMPTY}, Outcome.SKIPPED, Reason.UNAVAILABLE),
        ({"pool": EMPTY}, Outcome.SKIPPED, Reason.TOO_FEW),
        ({"pool": EMPTY, "elapsed": np.inf}, Outcome.SKIPPED, Reason.TOO_FEW),
        ({"pool": EMPTY, "fault": Reason.ERROR}, Outcome.SKIPPED, Reason.TOO_FEW),
    ],
    ids=str,
)
def test_without_an_answer_the_fused_order_stays(
    given: dict[str, object], outcome: Outcome, reason: Reason
) -> None:
    done = applied(**given)  # type: ignore[arg-type]
    assert (done.outcome[0], done.reason[0]) == (outcome, reason)
    assert done.base.tolist() == FUSED.tolist()
    assert not done.tail.any()


def test_each_query_has_its_own_outcome() -> None:
    done = rerank.apply(
        np.full((3, 1), 0.5),
        np.array([[True], [True], [False]]),
        np.array([[0.1], [0.2], [np.nan]]),
        np.array([1.0, 900.0, 0.0]),
        np.zeros(3, dtype=np.int8),
        timeout_ms=800,
    )
    assert done.base.tolist() == [[0.1], [0.5], [0.5]]
    assert done.outcome.tolist() == [Outcome.RAN, Outcome.TIMED_OUT, Outcome.SKIPPED]
