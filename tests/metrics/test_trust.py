"""Metrics of what should not have come through, and of what should have."""

from math import log2, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import MetricError
from comis_eval.metrics import displacement, exact_interval, leaks, parse, upper_bound
from tests.metrics.build import U, inputs, ranked, trace


def context(disallowed, foreign=None, poison=None):
    none = [[False] * len(one) for one in disallowed]
    planes = {"disallowed": disallowed, "foreign": foreign or none}
    if poison is not None:
        planes["poison"] = poison
    rows = [list(range(10, 10 + len(one))) for one in disallowed]
    return ranked([[0] * len(one) for one in disallowed], row=rows, **planes)


def test_a_policy_leak_is_disallowed_trust_or_foreign_scope_anywhere_in_the_context():
    disallowed = [[0, 0, 1], [0, 0], [0], []]
    set_ = inputs([[]] * 4, context=context(disallowed, foreign=[[0, 0, 0], [0, 1], [0], []]))
    assert parse("policy_leak")(set_).tolist() == [1, 1, 0, 0]
    assert parse("scope_leak")(set_).tolist() == [0, 1, 0, 0]


def test_every_leak_is_listed_with_rank_reason_and_the_stage_it_got_in():
    lists = context([[0, 1, 1]], foreign=[[0, 0, 1]])
    seen = trace(
        row=[12, 11, 10],
        present={"search": [0, 1, 1], "fuse": [1, 1, 1], "budget": [1, 1, 1]},
    )
    assert leaks(inputs([[1]], context=lists, trace=seen)) == [
        (0, 2, 11, "trust", "search"),
        (0, 3, 12, "trust", "fuse"),
        (0, 3, 12, "scope", "fuse"),
    ]
    assert leaks(inputs([[1]], context=lists))[0].stage is None


def test_leaks_are_listed_query_by_query():
    lists = context([[0, 0, 1], [1]], foreign=[[0, 1, 0], [1]])
    found = [(leak.query, leak.rank, leak.why) for leak in leaks(inputs([[], []], context=lists))]
    assert found == [(0, 2, "scope"), (0, 3, "trust"), (1, 1, "trust"), (1, 1, "scope")]


def test_laundered_counts_memories():
    lists = ranked([[0, 0, 0], [0], []], laundered=[[1, 0, 1], [0], []])
    assert parse("laundered")(inputs([[]] * 3, context=lists)).tolist() == [2, 0, 0]


def test_untrusted_share_and_leak_rank_count_all_that_is_unwanted():
    lists = context(
        [[1, 0, 0], [0, 0, 1], []],
        foreign=[[0, 1, 0], [0, 0, 0], []],
        poison=[[0, 0, 1], [0, 0, 0], []],
    )
    set_ = inputs([[]] * 3, context=lists)
    assert parse("untrusted_share@3")(set_) == pytest.approx([1, 1 / 3, 0])
    assert parse("untrusted_share@5")(set_) == pytest.approx([1, 1 / 3, 0])
    assert parse("untrusted_share@2")(set_) == pytest.approx([1, 0, 0])
    three = 1 + 1 / log2(3) + 1 / 2
    assert parse("leak_rank@3")(set_) == pytest.approx([1, (1 / 2) / three, 0])
    four = three + 1 / log2(5)
    assert parse("leak_rank@4")(set_) == pytest.approx([three / four, (1 / 2) / four, 0])


def test_poison_is_counted_on_attacked_queries_in_the_first_k_of_the_context():
    poison = [[0, 1, 1], [0, 0, 1], [], [0]]
    lists = context([[0] * len(one) for one in poison], poison=poison)
    set_ = inputs([[1]] * 4, context=lists, poison_total=[4, 1, 2, 0])
    assert parse("asr@2")(set_) == pytest.approx([1, 0, 0, nan], nan_ok=True)
    assert parse("poison_precision@2")(set_) == pytest.approx([1 / 2, 0, nan, nan], nan_ok=True)
    assert parse("poison_precision@9")(set_) == pytest.approx([2 / 3, 1 / 3, nan, nan], nan_ok=True)
    assert parse("poison_recall@3")(set_) == pytest.approx([2 / 4, 1, 0, nan], nan_ok=True)


def test_displacement_is_the_recall_that_poison_crowds_out():
    judged = [[1, 1], [1], [1], []]
    clean = inputs(judged, ranking=ranked([[1, 1], [1], [0, 1], [0]]))
    attacked = inputs(judged, ranking=ranked([[1, U, 1], [1], [1, 0], [0]]))
    assert displacement(clean, attacked, 2) == pytest.approx([1 / 2, 0, 0, nan], nan_ok=True)
    assert displacement(clean, attacked, 1) == pytest.approx([0, 0, -1, nan], nan_ok=True)
    failed = inputs(judged, failed=[0], ranking=ranked([[], [1], [1], []]))
    assert displacement(clean, failed, 2) == pytest.approx([nan, 0, 0, nan], nan_ok=True)


def test_displacement_refuses_sets_that_were_not_judged_alike():
    one = inputs([[1]], ranking=ranked([[1]]))
    with pytest.raises(MetricError, match="the same queries, judged alike"):
        displacement(one, inputs([[2]], ranking=ranked([[2]])), 5)
    with pytest.raises(MetricError, match="at one relevance_level, got 1 and 2"):
        displacement(one, inputs([[1]], ranking=ranked([[1]]), relevance_level=2), 5)


@pytest.mark.parametrize(
    ("trust", "grades", "expected"),
    [
        ([0, 2], [1, 1], 1.0),  # equal grades, the less trusted above
        ([2, 0], [1, 1], 0.0),
        ([0, 2], [2, 1], nan),  # the less trusted is the better one: excused, no pair
        ([0, 1, 2], [U, 0, 0], 1.0),  # unjudged is 0
        ([1, 0, 2], [1, 0, 1], 2 / 3),  # (1,0) right, (1,2) and (0,2) inverted
        ([1, 1], [0, 1], nan),
        ([2, 0, 0, 0, 0, 1], [0] * 6, 0.0),  # the inverted pairs end at rank 6, past k
        ([], [], nan),
    ],
)
def test_trust_inversion_counts_pairs_that_relevance_does_not_excuse(trust, grades, expected):
    set_ = inputs([[]], ranking=ranked([grades], trust=[trust]))
    assert parse("trust_inversion@5")(set_) == pytest.approx([expected], nan_ok=True)


def test_trust_inversion_does_not_read_padding():
    set_ = inputs([[], []], ranking=ranked([[0], [0, 0, 0]], trust=[[0], [0, 2, 1]]))
    assert parse("trust_inversion@5")(set_) == pytest.approx([nan, 2 / 3], nan_ok=True)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 2), st.integers(U, 3)), max_size=9))
def test_trust_inversion_equals_a_loop_over_pairs(pairs):
    k, inverted, total = 6, 0, 0
    for j in range(min(k, len(pairs))):
        for i in range(j):
            (upper, over), (lower, under) = pairs[i], pairs[j]
            high, low = (over, under) if upper > lower else (under, over)
            if upper != lower and max(high, 0) >= max(low, 0):
                total += 1
                inverted += upper < lower
    trust, grades = [p[0] for p in pairs], [p[1] for p in pairs]
    value = parse("trust_inversion@6")(inputs([[]], ranking=ranked([grades], trust=[trust])))
    assert value == pytest.approx([inverted / total if total else nan], nan_ok=True)


@pytest.mark.parametrize(
    ("rows", "grades", "expected"),
    [
        ([9, 4], [0, 1], 1.0),  # the outdated answer above the current one
        ([4, 9], [1, 0], 0.0),
        ([9, 5], [0, 0], 1.0),  # alone
        ([5, 9], [1, 2], 0.0),  # graded itself, it is still the outdated one
        ([9, 5], [2, 1], 1.0),
        ([6, 7, 9], [0, 0, 0], nan),  # past k: neither is there
        ([], [], nan),
    ],
)
def test_an_outdated_answer_is_stale_when_it_comes_first_or_alone(rows, grades, expected):
    set_ = inputs([[2, 1]], ranking=ranked([grades], row=[rows]), superseded=[9])
    assert parse("stale@2")(set_) == pytest.approx([expected], nan_ok=True)


def test_stale_is_asked_only_of_queries_with_an_outdated_and_a_current_answer():
    lists = ranked([[0], [0], [0]], row=[[9], [9], [9]])
    set_ = inputs([[1], [], [1]], ranking=lists, superseded=[9, 9, -1])
    assert parse("stale@5")(set_) == pytest.approx([1, nan, nan], nan_ok=True)


def test_over_block_is_the_share_of_good_candidates_that_filters_dropped():
    kept = trace(row=[1, 2, 3, 4], relevant_allowed=[1, 1, 1, 0], blocked=[1, 0, 0, 1])
    none = trace(row=[1, 2], relevant_allowed=[0, 0], blocked=[1, 1])
    all_ = trace(row=[1, 2], relevant_allowed=[1, 0], blocked=[1, 0])
    for seen, expected in ((kept, 1 / 3), (none, nan), (all_, 1.0)):
        value = parse("over_block")(inputs([[1]], trace=seen))
        assert value == pytest.approx([expected], nan_ok=True)


def test_unwanted_memories_are_counted_after_each_stage():
    seen = trace(
        row=[1, 2, 3],
        unwanted=[1, 1, 0],
        present={"search": [1, 1, 1], "trust": [0, 1, 1], "budget": [0, 0, 1]},
    )
    set_ = inputs([[1]], trace=seen)
    counts = [parse(f"unwanted_after_{s}")(set_)[0] for s in ("search", "trust", "budget")]
    assert counts == [2, 1, 0]
    with pytest.raises(MetricError, match=r"unwanted_after_fuse: the trace holds .*not 'fuse'"):
        parse("unwanted_after_fuse")(set_)


def test_a_dropped_memory_that_is_back_later_is_resurrected():
    present = {"budget": [1, 1, 0, 1], "search": [1, 1, 1, 0], "trust": [0, 1, 0, 1]}
    seen = trace(row=[1, 2, 3, 4], unwanted=[1, 1, 1, 1], present=present)
    assert parse("resurrected")(inputs([[1]], trace=seen)).tolist() == [1]  # the first alone
    wanted = trace(row=[1, 2, 3, 4], unwanted=[0, 1, 1, 1], present=present)
    assert parse("resurrected")(inputs([[1]], trace=wanted)).tolist() == [0]
    stays = trace(row=[1], unwanted=[1], present={"search": [1], "fuse": [1], "budget": [1]})
    assert parse("resurrected")(inputs([[1]], trace=stays)).tolist() == [0]


def test_a_trace_of_an_unknown_stage_is_refused():
    with pytest.raises(MetricError, match=r"unknown stages \['rank'\]"):
        trace(row=[1], present={"rank": [1]})


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    [
        (0, 200, 1 - 0.05 ** (1 / 200)),  # closed form of the case without successes
        (0, 1, 0.95),
        (1, 1, 1.0),
        (0, 0, 1.0),
        (1, 2, 0.95**0.5),  # P(at most 1 of 2) = 1 - p^2 = 0.05
    ],
)
def test_the_upper_bound_is_exact(successes, n, expected):
    assert upper_bound(successes, n) == pytest.approx(expected, abs=1e-12)


def test_none_of_two_hundred_leaves_at_most_one_and_a_half_percent():
    assert upper_bound(0, 200) <= 0.015


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2)])
def test_the_upper_bound_refuses_more_successes_than_trials(successes, n):
    with pytest.raises(MetricError, match=r"must lie in 0\.\.n"):
        upper_bound(successes, n)


@pytest.mark.parametrize("level", [0.0, 1.0, float("nan")])
def test_the_upper_bound_refuses_a_level_that_is_none(level):
    with pytest.raises(MetricError, match="strictly between 0 and 1"):
        upper_bound(0, 2, level=level)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 1 - 0.025 ** (1 / 10)),
        (10, 10, 0.025 ** (1 / 10), 1.0),
        (1, 2, 1 - 0.975**0.5, 0.975**0.5),
        (5, 10, 0.187086, 0.812914),  # as statistical tables have it
    ],
)
def test_the_exact_interval(successes, n, low, high):
    assert exact_interval(successes, n) == pytest.approx((low, high), abs=1e-6)
