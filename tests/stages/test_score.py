"""Each signal worked on paper, and the order against the comparator it is defined by."""

from functools import cmp_to_key
from itertools import pairwise
from math import e, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.stages import score

DAY = 86_400_000


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_age_is_in_days_and_the_future_is_now() -> None:
    ages = score.age_days(floats(0, 36 * DAY, 37 * DAY, np.nan), np.float64(36 * DAY))
    assert ages[:3].tolist() == [36.0, 0.0, 0.0]
    assert np.isnan(ages[3])


def test_recency_halves_after_a_day() -> None:
    assert score.recency(floats(0, 1, 3)).tolist() == [1.0, 0.5, 0.25]


def test_an_event_of_unknown_time_is_neutral() -> None:
    assert score.temporal(floats(0, 4, np.nan)).tolist() == [1.0, 0.2, 0.5]


def test_proof_strength_grows_with_the_logarithm() -> None:
    counts = [None, 0, 1, 3, 148, 149, 10**9]
    # 0.5 + ln(3)/10; e^5 = 148.4: ln(148)/10 is still below 0.5, ln(149)/10 above.
    strengths = score.proof_strength(counts).tolist()
    assert strengths[:3] == [0.5, 0.0, 0.5]
    assert strengths[3] == pytest.approx(0.5 + log(3) / 10)
    assert strengths[4] < 1.0
    assert strengths[5:] == [1.0, 1.0]
    assert round(e**5) == 148


def test_proof_is_pulled_to_neutral_by_doubt_and_age() -> None:
    signal = score.proof(
        floats(1, 1, 1, 0, 1), floats(1, 0.5, 1, 0.5, np.nan), floats(0, 0, 30, 60, 900)
    )
    # 0.5 + 0.5 x {1, 0.5, 0.5^1}, 0.5 - 0.5 x 0.5 x 0.25, and 1 whole: no confidence, no decay.
    assert signal.tolist() == [1.0, 0.75, 0.75, 0.4375, 1.0]


def test_usefulness_is_the_share_used_and_neutral_when_never_shown() -> None:
    assert score.usefulness(floats(3, 0, 0), floats(1, 2, 0)).tolist() == [0.75, 0.0, 0.5]


def signals(**known: float) -> score.Signals:
    return score.Signals(*(floats(known.get(name, 0.5)) for name in score.Signals._fields))


def test_factors_pull_by_alpha_times_the_distance_from_neutral() -> None:
    seen = signals(recency=1.0, temporal=0.0, proof=0.75, trust=0.0, usefulness=1.0)
    alphas = score.Alphas(0.2, 0.2, 0.1, 0.1, 0.0)
    factors = [factor[0] for factor in score.factors(seen, alphas)]
    assert factors == pytest.approx([1.1, 0.9, 1.025, 0.95, 1.0])
    boosted = score.boost(floats(0.6), seen, alphas)[0]
    assert boosted == 0.6 * factors[0] * factors[1] * factors[2] * factors[3]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    base=st.floats(0, 1),
    seen=st.tuples(*[st.floats(0, 1)] * 5),
    alphas=st.tuples(*[st.floats(0, 1)] * 5),
)
def test_a_boost_multiplies_left_to_right_and_stays_within_its_bounds(
    base: float, seen: tuple[float, ...], alphas: tuple[float, ...]
) -> None:
    given_signals = score.Signals(*map(floats, seen))
    given_alphas = score.Alphas(*alphas)
    boosted = score.boost(floats(base), given_signals, given_alphas)[0]
    product, low, high = base, base, base
    for factor, alpha in zip(score.factors(given_signals, given_alphas), alphas, strict=True):
        product, low, high = product * factor[0], low * (1 - alpha / 2), high * (1 + alpha / 2)
    assert boosted == product
    assert low * (1 - 1e-12) <= boosted <= high * (1 + 1e-12)


def reference(
    final: list[float], trust: list[int], tail: list[bool], alive: list[bool]
) -> list[int]:
    """Python's own sort with the comparator of the specification, pool before tail."""

    def compare(a: int, b: int) -> float:
        if abs(final[b] - final[a]) > 1e-9:
            return final[b] - final[a]
        return trust[b] - trust[a]

    columns = range(len(final))
    pool = [c for c in columns if alive[c] and not tail[c]]
    rest = [c for c in columns if alive[c] and tail[c]]
    key = cmp_to_key(compare)
    return [*sorted(pool, key=key), *sorted(rest, key=key), *(c for c in columns if not alive[c])]


def ordered(final: list[float], trust: list[int], tail: list[bool], alive: list[bool]) -> list[int]:
    return score.order(
        np.array([final]), np.array([trust], dtype=np.int8), np.array([tail]), np.array([alive])
    )[0].tolist()  # fmt: skip


def test_a_near_tie_goes_to_the_higher_trust_and_a_real_gap_does_not() -> None:
    everyone, nobody = [True, True], [False, False]
    assert ordered([0.5 + 0.9e-9, 0.5], [0, 2], nobody, everyone) == [1, 0]
    assert ordered([0.5 + 1.1e-9, 0.5], [0, 2], nobody, everyone) == [0, 1]
    assert ordered([0.5, 0.5 + 0.9e-9], [1, 1], nobody, everyone) == [0, 1], "the incoming order"


def test_a_chain_of_near_ties_is_ordered_as_timsort_orders_it() -> None:
    # a ~ b ~ c, but a and c are 1.6e-9 apart: the comparator is not transitive.
    final = [0.5, 0.5 + 0.8e-9, 0.5 + 1.6e-9]
    for trust in ([1, 1, 1], [2, 1, 0], [0, 1, 2], [1, 0, 1], [2, 0, 1]):
        expected = reference(final, trust, [False] * 3, [True] * 3)
        assert ordered(final, trust, [False] * 3, [True] * 3) == expected


CELLS = st.tuples(
    st.integers(0, 12),  # steps of 0.4e-9: three make a gap
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(rows=st.lists(st.lists(CELLS, min_size=40, max_size=40), min_size=1, max_size=3))
def test_order_is_timsorts_over_clustered_scores(
    rows: list[list[tuple[int, int, bool, bool]]],
) -> None:
    final = [[0.5 + 0.4e-9 * step for step, *_ in row] for row in rows]
    trust, tail, alive = ([[cell[i] for cell in row] for row in rows] for i in (1, 2, 3))
    order = score.order(
        np.array(final), np.array(trust, dtype=np.int8), np.array(tail), np.array(alive)
    )
    expected = [reference(*row) for row in zip(final, trust, tail, alive, strict=True)]
    assert order.tolist() == expected


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.25, 0.5, 0.5 + 1e-9, 0.75]) | st.floats(0, 1),
            st.integers(0, 2), st.booleans(), st.booleans(),
        ),
        max_size=70,
    )
)  # fmt: skip
def test_order_is_the_comparators_over_any_scores(
    cells: list[tuple[float, int, bool, bool]],
) -> None:
    final, trust, tail, alive = ([cell[i] for cell in cells] for i in range(4))
    assert ordered(final, trust, tail, alive) == reference(final, trust, tail, alive)


def test_the_pool_stays_before_the_tail_whatever_the_scores() -> None:
    order = ordered([0.1, 0.9, 0.2, 0.8], [1] * 4, [False, True, False, True], [True] * 4)
    assert order == [2, 0, 1, 3]


def test_the_dead_come_last_in_incoming_order() -> None:
    order = ordered([0.1, 0.9, 0.2, 0.8], [1] * 4, [False] * 4, [True, False, True, False])
    assert order == [2, 0, 1, 3]


def test_equals_are_ordered_by_trust_and_then_as_they_come() -> None:
    # Every tie is equal to the bit; the 1s are a real gap away, the dead one is trusted most.
    final = [0.5, 1.0, 0.5, 0.5, 1.0, 0.5]
    trust = [0, 1, 2, 0, 2, 2]
    alive = [True, True, True, True, True, False]
    assert ordered(final, trust, [False] * 6, alive) == [4, 1, 2, 0, 3, 5]
    assert ordered(final, trust, [True, True, False, False, False, False], alive) == [
        4, 2, 3, 1, 0, 5,
    ]  # fmt: skip


def test_scores_alone_order_what_no_tie_leaves_open() -> None:
    final = np.array([[0.1, 0.9, 0.2, 0.8], [0.5, 0.9, 0.5 + 0.9e-9, 0.8], [0.3, 0.2, 0.3, 0.1]])
    tail = np.array([[False, True, False, True], [False] * 4, [True, False, False, False]])
    alive = np.array([[True] * 4, [True] * 4, [True, True, True, False]])
    behind = np.ldexp([[1.0, 2.0, 3.0, 4.0]] * 3, 1000)
    order, tied = score.order_by_score(final, tail, alive, behind)
    assert order[0].tolist() == [2, 0, 1, 3], "the pool before the tail"
    assert order[2].tolist() == [2, 1, 0, 3], "equals on both sides of the tail are no tie"
    assert tied.tolist() == [1], "0.9e-9 apart"


def test_who_is_not_in_the_list_stands_by_the_keys_behind_and_is_no_tie() -> None:
    final, everyone = np.full((1, 4), 0.5), np.zeros((1, 4), dtype=bool)
    alive = np.array([[False, False, True, False]])
    behind = np.ldexp([[3.0, 1.0, 2.0, 4.0]], 1000)
    order, tied = score.order_by_score(final, everyone, alive, behind)
    assert (order.tolist(), tied.tolist()) == ([[2, 1, 0, 3]], [])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(rows=st.lists(st.lists(CELLS, min_size=8, max_size=8), min_size=1, max_size=3))
def test_where_no_tie_is_told_scores_alone_give_the_comparators_order(
    rows: list[list[tuple[int, int, bool, bool]]],
) -> None:
    final = np.array([[0.5 + 0.4e-9 * 3 * step for step, *_ in row] for row in rows])
    trust, tail, alive = (np.array([[cell[i] for cell in row] for row in rows]) for i in (1, 2, 3))
    behind = np.broadcast_to(np.ldexp(np.arange(1.0, 9.0), 1000), final.shape)
    order, tied = score.order_by_score(final, tail, alive, behind)
    for row in set(range(len(rows))) - set(tied.tolist()):
        told = [plane[row].tolist() for plane in (final, trust, tail, alive)]
        assert order[row].tolist() == reference(*told)
    for row in tied:
        listed = sorted((bool(tail[row, c]), final[row, c]) for c in range(8) if alive[row, c])
        assert any(a[0] == b[0] and b[1] - a[1] <= score.TIE for a, b in pairwise(listed)), (
            "a tie that is none costs a second sort"
        )
