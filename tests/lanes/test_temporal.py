import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.lanes.temporal import DAY_MS, spread
from comis_eval.store.corpus import Corpus
from tests.builders import memory
from tests.lanes.build import HERE, THERE, everyone, ids, listed


def at(**days):
    return Corpus.from_memories(
        [
            memory(id_, occurred_at=None if day is None else round(day * DAY_MS))
            for id_, day in days.items()
        ]
    )


def run(corpus, seeds, *, window_days=7, cap=100, scope=None, allowed=everyone):
    width = max(map(len, seeds), default=0)
    rows = [[corpus.row_of[id_] for id_ in line] + [-1] * (width - len(line)) for line in seeds]
    scope = [0] * len(seeds) if scope is None else scope
    return spread(
        np.array(rows, dtype=np.int32).reshape(len(seeds), width),
        corpus,
        np.array(scope, dtype=np.int32),
        window_days=window_days,
        cap=cap,
        allowed=allowed,
    )


def test_nearness_by_hand():
    corpus = at(seed=10, b=11, a=9, far=17, edge=3, over=17.1, same=10, never=None, near=10.5)
    hits = run(corpus, [["seed"]])
    assert listed(corpus, hits) == [
        ("near", 1 / 1.5),
        ("a", 1 / 2),
        ("b", 1 / 2),
        ("edge", 1 / 8),
        ("far", 1 / 8),
    ]
    capped = run(corpus, [["seed"]], cap=2)
    assert (ids(corpus, capped), capped.exhausted.tolist()) == (["near", "a"], [False])


def test_the_nearest_seed_counts_and_no_seeds_time_is_returned():
    corpus = at(s1=0, s2=5, a=4, b=1, twin=5, untimed=None)
    assert ids(corpus, run(corpus, [["s1", "s2", "untimed"]])) == ["a", "b"]
    assert ids(corpus, run(corpus, [["untimed"]])) == []


def test_tenancies_stay_apart_on_both_ends():
    corpus = Corpus.from_memories(
        [
            memory("mine", occurred_at=DAY_MS),
            memory("mine2", occurred_at=2 * DAY_MS),
            memory("theirs", tenancy=THERE, occurred_at=2 * DAY_MS),
        ]
    )
    hits = run(corpus, [["mine"], ["mine", "theirs"], ["theirs"], ["mine"]], scope=[0, 0, 0, -1])
    assert [ids(corpus, hits, q) for q in range(4)] == [["mine2"], ["mine2"], [], []]


def test_any_window_and_any_time_can_be_used():
    last = 2**53 - 1
    corpus = Corpus.from_memories([memory("a", occurred_at=-last), memory("b", occurred_at=last)])
    assert ids(corpus, run(corpus, [["a"]], window_days=last)) == ["b"]
    assert run(at(), []).lengths.tolist() == []


def test_what_is_not_allowed_takes_no_place():
    corpus = at(seed=0, a=1, b=2)
    not_a = lambda queries, rows: rows != corpus.row_of["a"]  # noqa: E731
    assert ids(corpus, run(corpus, [["seed"]], cap=1, allowed=not_a)) == ["b"]


ENTRIES = st.lists(
    st.tuples(st.sampled_from([HERE, THERE]), st.none() | st.integers(0, 12)),
    min_size=1,
    max_size=9,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ENTRIES, st.integers(1, 4), st.integers(1, 5), st.data())
def test_a_whole_query_set_gets_what_each_pair_says(entries, window, cap, data):
    corpus = Corpus.from_memories(
        [
            memory(f"m{i}", tenancy=t, occurred_at=None if day is None else day * DAY_MS)
            for i, (t, day) in enumerate(entries)
        ]
    )
    rows = st.integers(0, len(corpus) - 1)
    scopes = st.integers(0, len(corpus.tenancies) - 1)
    asked = data.draw(
        st.lists(st.tuples(scopes, st.lists(rows, max_size=3)), min_size=1, max_size=4)
    )
    hits = run(
        corpus,
        [[f"m{row}" for row in line] for _, line in asked],
        window_days=window,
        cap=cap,
        scope=[scope for scope, _ in asked],
    )
    for query, (scope, line) in enumerate(asked):
        times = [entries[s][1] for s in line if corpus.scope[s] == scope]
        times = [time for time in times if time is not None]
        near = [
            (min(abs(day - time) for time in times), f"m{row}")
            for row, (_, day) in enumerate(entries)
            if times and day is not None and corpus.scope[row] == scope
        ]
        expected = sorted((d, id_) for d, id_ in near if 0 < d <= window)[:cap]
        assert listed(corpus, hits, query) == [
            (id_, pytest.approx(1 / (1 + d), rel=1e-12)) for d, id_ in expected
        ]


@pytest.mark.parametrize("cap", [1, 5, 40, 500])
def test_many_memories_are_ranked_like_few(cap):
    rng = np.random.default_rng(cap)
    days = rng.integers(0, 60, size=400)
    corpus = at(**{f"m{i:03}": int(day) for i, day in enumerate(days)})
    seeds = [[f"m{row:03}" for row in rng.integers(0, 400, size=3)] for _ in range(6)]
    hits = run(corpus, seeds, window_days=20, cap=cap)
    for query, line in enumerate(seeds):
        times = [days[corpus.row_of[id_]] for id_ in line]
        near = sorted(
            (int(min(abs(day - t) for t in times)), f"m{i:03}") for i, day in enumerate(days)
        )
        expected = [id_ for distance, id_ in near if 0 < distance <= 20]
        assert ids(corpus, hits, query) == expected[:cap]
        assert hits.exhausted[query] == (len(expected) <= cap)
