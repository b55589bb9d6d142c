"""Fusion of the lanes, worked on paper, and properties of every fusion."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from comis_eval.errors import StageError
from comis_eval.stages import fuse


def ranks(*rows: list[int]) -> NDArray[np.int32]:
    return np.array(rows, dtype=np.int32)


def totals(*values: float) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


@st.composite
def lanes(draw: st.DrawFn) -> tuple[list[NDArray[np.int32]], list[float]]:
    """Up to three lanes over the same columns of up to three queries, with weights."""
    queries, width = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    count = draw(st.integers(1, 3))
    made = []
    for _ in range(count):
        rows = []
        for _ in range(queries):
            shown = draw(st.lists(st.integers(0, width - 1), unique=True))
            row = [0] * width
            for rank, column in enumerate(shown, start=1):
                row[column] = rank
            rows.append(row)
        made.append(ranks(*rows))
    weights = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=count, max_size=count))
    return made, weights


def test_rrf_adds_weighted_reciprocals_and_divides_by_the_best_possible() -> None:
    scores = fuse.rrf([ranks([1, 2, 0]), ranks([0, 1, 2])], [1.0, 1.5], totals(2.5))
    # (1/61) / (2.5/61) = 0.4; (1/62 + 1.5/61) / (2.5/61) = (61/62 + 1.5) / 2.5; 1.5 x 61/62 / 2.5
    assert scores[0].tolist() == pytest.approx([0.4, (61 / 62 + 1.5) / 2.5, 1.5 * 61 / 62 / 2.5])


def test_rrf_counts_a_smaller_k_more_steeply() -> None:
    scores = fuse.rrf([ranks([1, 2])], [1.0], totals(1.0), k=1)
    # 1/2 and 1/3, over 1/2.
    assert scores[0].tolist() == pytest.approx([1.0, 2 / 3])


def test_rrf_is_zero_where_no_weight_counts_and_never_above_one() -> None:
    scores = fuse.rrf([ranks([1, 0], [1, 0])], [3.0], totals(0.0, 1.0))
    # Query 0 counts no lane. Query 1 counts 1.0 of a lane that weighs 3: 3, cut to 1.
    assert scores.tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("weights", [[], [1.0, 1.0]], ids=str)
def test_rrf_refuses_another_number_of_weights(weights: list[float]) -> None:
    with pytest.raises(StageError, match=r"one weight per lane.*len\(weights\)"):
        fuse.rrf([ranks([1])], weights, totals(1.0))


def test_rrf_refuses_no_lane() -> None:
    with pytest.raises(StageError, match="and a lane"):
        fuse.rrf([], [], totals(1.0))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(lanes())
def test_rrf_is_the_sum_of_exact_fractions(
    drawn: tuple[list[NDArray[np.int32]], list[float]],
) -> None:
    made, weights = drawn
    total = np.full(len(made[0]), sum(weights))
    scores = fuse.rrf(made, weights, total)
    for (query, column), score in np.ndenumerate(scores):
        there = [(w, lane[query, column]) for lane, w in zip(made, weights, strict=True)]
        exact = sum((Fraction(w) / (60 + int(rank)) for w, rank in there if rank), Fraction(0))
        best = Fraction(sum(weights)) / 61
        assert score == pytest.approx(float(exact / best) if best else 0.0, rel=1e-12)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(lanes())
def test_fused_scores_lie_between_0_and_1_and_only_the_found_score(
    drawn: tuple[list[NDArray[np.int32]], list[float]],
) -> None:
    made, weights = drawn
    total = np.full(len(made[0]), sum(weights))
    found = np.logical_or.reduce([lane > 0 for lane in made])
    own = [np.where(lane > 0, 10.0 - lane, 0.0) for lane in made]
    for scores in (fuse.rrf(made, weights, total), fuse.convex(own, made, weights, total)):
        assert ((scores >= 0) & (scores <= 1)).all()
        assert not scores[~found].any()


def test_convex_scales_each_lane_and_averages() -> None:
    own = [np.array([[8.0, 6.0, 4.0, 0.0]]), np.array([[0.0, 0.9, 0.0, 0.9]])]
    scores = fuse.convex(own, [ranks([1, 2, 3, 0]), ranks([0, 1, 0, 2])], [1.0, 3.0], totals(4.0))
    # fts: 1, 1/2, 0 and absent. vector: all alike, so 1 each. (1 x fts + 3 x vector) / 4.
    assert scores[0].tolist() == [0.25, (0.5 + 3) / 4, 0.0, 0.75]


def test_convex_of_negative_scores_and_of_an_empty_lane() -> None:
    own = [np.array([[-2.0, -6.0, 0.0]]), np.zeros((1, 3))]
    scores = fuse.convex(own, [ranks([1, 2, 0]), ranks([0, 0, 0])], [2.0, 5.0], totals(2.0))
    assert scores[0].tolist() == [1.0, 0.0, 0.0]


def test_join_fuses_again_by_rank_only_where_a_spread_lane_has_a_hit() -> None:
    inner = np.array([[0.9, 0.5, 0.0], [0.9, 0.5, 0.0]])
    search, entity = ranks([1, 2, 0], [1, 2, 0]), ranks([0, 1, 2], [0, 0, 0])
    scores = fuse.join(inner, [search, entity], [1.0, 0.5])
    # Query 0: best possible 1.5/61. Query 1 has one list, whose scores pass.
    assert scores[0].tolist() == pytest.approx(
        [1 / 1.5, (61 / 62 + 0.5) / 1.5, 0.5 * 61 / 62 / 1.5]
    )
    assert scores[1].tolist() == [0.9, 0.5, 0.0]


def test_join_does_not_count_a_search_list_without_hits() -> None:
    scores = fuse.join(np.zeros((1, 2)), [ranks([0, 0]), ranks([2, 1])], [1.0, 0.25])
    # Only the entity lane counts: 0.25/62 and 0.25/61, over 0.25/61.
    assert scores[0].tolist() == pytest.approx([61 / 62, 1.0])


def test_first_seen_numbers_lane_after_lane() -> None:
    ordinal = fuse.first_seen([ranks([0, 2, 1, 0]), ranks([1, 0, 2, 0])])
    # First lane: columns 2, 1; then the second's own: column 0; column 3 nowhere.
    assert np.argsort(ordinal[0]).tolist() == [2, 1, 0, 3]
    assert ordinal[0, 3] > ordinal[0, :3].max()


def test_equal_scores_stand_as_they_were_first_seen() -> None:
    scores = np.array([[0.5, 0.7, 0.5, 0.5]])
    assert fuse.order(scores, np.array([[3, 9, 1, 2]]))[0].tolist() == [1, 2, 3, 0]
    assert fuse.order(scores, np.array([[0, 1, 2, 2]]))[0].tolist() == [1, 0, 2, 3]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, -np.inf]), st.integers(0, 5)),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_order_is_a_sort_by_score_then_ordinal_then_column(cells: list[tuple[float, int]]) -> None:
    order = fuse.order(
        np.array([[score for score, _ in cells]]), np.array([[seen for _, seen in cells]])
    )
    expected = sorted(range(len(cells)), key=lambda c: (-cells[c][0], cells[c][1], c))
    assert order[0].tolist() == expected


@pytest.mark.parametrize(
    "ordinal", [[[1, 4, 4, 9], [0, 1, 2, 3]], [[3, 9, 1, 3], [0, 1, 2, 3]]], ids=["rising", "not"]
)
def test_keys_behind_rise_by_first_sight_then_column_above_every_score(
    ordinal: list[list[int]],
) -> None:
    keys = fuse.behind(np.array(ordinal))
    for row, seen in zip(keys, ordinal, strict=True):
        assert row.argsort().tolist() == sorted(range(4), key=lambda c: (seen[c], c))
        assert len(set(row)) == 4
        assert row.min() > 1e300
        assert np.isfinite(row).all()


def test_who_is_not_in_the_list_stands_last_and_as_first_seen() -> None:
    scores = np.array([[0.9, 0.1, 0.5, 0.7]])
    alive = np.array([[False, True, True, False]])
    assert fuse.listed(scores, np.array([[3, 2, 1, 0]]), alive)[0].tolist() == [2, 1, 3, 0]
