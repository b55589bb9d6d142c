"""Maximal marginal relevance, worked on paper and against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.stages import diversify


def order(
    scores: list[float],
    vectors: list[list[float]],
    *,
    weight: float,
    has: list[bool] | None = None,
    id_rank: list[int] | None = None,
) -> list[int]:
    count = len(scores)
    return diversify.mmr(
        np.array(scores),
        np.array(vectors).reshape(count, -1),
        np.array(has or [True] * count),
        np.array(id_rank or range(count), dtype=np.int32),
        weight=weight,
    ).tolist()


def test_a_twin_of_the_first_waits() -> None:
    # Chosen first: 0. Then 1: 0.5 x 0.9 - 0.5 x 1 = -0.05; 2: 0.5 x 0.5 - 0 = 0.25.
    assert order([1.0, 0.9, 0.5], [[1, 0], [2, 0], [0, 1]], weight=0.5) == [0, 2, 1]


def test_likeness_is_to_the_nearest_of_those_chosen() -> None:
    # After 0 and 2: 1 is like 0 by cos 45 degrees, 3 is like 2 wholly.
    vectors = [[1.0, 0], [1, 1], [0, 1], [0, 3]]
    # 0 first; then 1: .45 - .354, 2: .4 - 0 first; then 1: .45 - .354 = .096, 3: .35 - .5 < 0.
    assert order([1.0, 0.9, 0.8, 0.7], vectors, weight=0.5) == [0, 2, 1, 3]


def test_negative_likeness_counts_0() -> None:
    # 1 points away from 0, 2 stands across: both are as unlike as can be, so the score decides.
    assert order([1.0, 0.5, 0.6], [[1, 0], [-1, 0], [0, 1]], weight=0.5) == [0, 2, 1]


def test_a_memory_without_a_vector_is_like_nobody() -> None:
    vectors, has = [[1.0, 0], [1, 0], [1, 0]], [True, False, True]
    # 1 has none, whatever stands in its row: 0.5 x 0.6 - 0; 2: 0.5 x 0.9 - 0.5.
    assert order([1.0, 0.6, 0.9], vectors, weight=0.5, has=has) == [0, 1, 2]


def test_exact_ties_go_by_id() -> None:
    assert order([0.5, 0.5], [[1, 0], [0, 1]], weight=0.5, id_rank=[1, 0]) == [1, 0]


@pytest.mark.parametrize(
    ("weight", "has"), [(1.0, [True, True]), (0.0, [True, False]), (0.5, [False, False])], ids=str
)
def test_the_list_stays_as_it_is(weight: float, has: list[bool]) -> None:
    assert order([0.1, 0.9], [[1, 0], [0, 1]], weight=weight, has=has) == [0, 1]


def test_a_cosine_of_nothing_is_0() -> None:
    assert diversify.cosine(np.zeros(2), np.array([1.0, 0.0])) == 0.0
    assert diversify.cosine(np.zeros(0), np.zeros(0)) == 0.0
    assert diversify.cosine(np.array([3.0, 4.0]), np.array([4.0, 3.0])) == pytest.approx(24 / 25)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.tuples(*[st.integers(-2, 2)] * 2), st.booleans()),
        min_size=1, max_size=7,
    ),
    weight=st.sampled_from([0.0, 0.25, 0.5, 0.75]),
)  # fmt: skip
def test_every_choice_is_the_best_left(
    rows: list[tuple[int, tuple[int, int], bool]], weight: float
) -> None:
    scores = [score / 4 for score, *_ in rows]
    vectors = [list(map(float, vector)) for _, vector, _ in rows]
    has = [known for *_, known in rows]
    chosen = order(scores, vectors, weight=weight, has=has)
    assert sorted(chosen) == list(range(len(rows)))
    if sum(has) < 2:
        return
    for step in range(len(chosen)):
        values = [_value(one, chosen[:step], scores, vectors, has, weight) for one in chosen[step:]]
        assert values[0] == pytest.approx(max(values), abs=1e-12)


def _value(
    one: int, taken: list[int], scores: list[float], vectors: list[list[float]], has: list[bool],
    weight: float,
) -> float:  # fmt: skip
    def cosine(a: list[float], b: list[float]) -> float:
        size = (sum(x * x for x in a) * sum(x * x for x in b)) ** 0.5
        return sum(x * y for x, y in zip(a, b, strict=True)) / size if size else 0.0

    alike = [cosine(vectors[one], vectors[other]) for other in taken if has[one] and has[other]]
    return weight * scores[one] - (1 - weight) * max([0.0, *alike])
