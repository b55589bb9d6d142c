import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import LaneError
from comis_eval.lanes.causal import Links, spread
from comis_eval.store.corpus import Corpus
from tests.builders import memory
from tests.lanes.build import HERE, THERE, everyone, ids, listed


def linked(corpus, *links):
    rows = [[corpus.row_of[link[end]] for link in links] for end in (0, 1)]
    sources, targets = (np.array(line, dtype=np.int32) for line in rows)
    return Links(sources, targets, np.array([link[2] for link in links], dtype=np.float64))


def run(corpus, seeds, links, *, cap=100, scope=None, allowed=everyone):
    width = max(map(len, seeds), default=0)
    rows = [[corpus.row_of[id_] for id_ in line] + [-1] * (width - len(line)) for line in seeds]
    scope = [0] * len(seeds) if scope is None else scope
    return spread(
        np.array(rows, dtype=np.int32).reshape(len(seeds), width),
        corpus,
        np.array(scope, dtype=np.int32),
        links,
        cap=cap,
        allowed=allowed,
    )


def test_one_hop_both_ways_by_hand():
    corpus = Corpus.from_memories(
        [memory(id_) for id_ in ("s", "effect", "cause", "far", "b", "a")]
    )
    links = linked(
        corpus,
        ("s", "effect", 0.5),
        ("cause", "s", 0.9),
        ("effect", "far", 1.0),
        ("s", "b", 0.5),
        ("s", "a", 0.5),
        ("a", "s", 0.2),
        ("s", "s", 1.0),
    )
    hits = run(corpus, [["s"]], links)
    assert listed(corpus, hits) == [("cause", 0.9), ("a", 0.5), ("b", 0.5), ("effect", 0.5)]
    capped = run(corpus, [["s"]], links, cap=1)
    assert (ids(corpus, capped), capped.exhausted.tolist()) == (["cause"], [False])
    assert ids(corpus, run(corpus, [["s", "effect"]], links)) == ["far", "cause", "a", "b"]


def test_links_into_another_tenancy_lead_nowhere():
    corpus = Corpus.from_memories([memory("a"), memory("x", tenancy=THERE), memory("b")])
    links = linked(corpus, ("a", "x", 1.0), ("x", "b", 1.0))
    hits = run(corpus, [["a"], ["x"], ["a"]], links, scope=[0, 0, -1])
    assert hits.lengths.tolist() == [0, 0, 0]


def test_no_links_no_queries_and_what_is_not_allowed():
    corpus = Corpus.from_memories([memory("a"), memory("b"), memory("c")])
    assert run(corpus, [["a"]], linked(corpus)).lengths.tolist() == [0]
    assert run(corpus, [], linked(corpus)).lengths.tolist() == []
    links = linked(corpus, ("a", "b", 0.9), ("a", "c", 0.1))
    not_b = lambda queries, rows: rows != corpus.row_of["b"]  # noqa: E731
    assert ids(corpus, run(corpus, [["a"]], links, cap=1, allowed=not_b)) == ["c"]


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.1])
def test_a_confidence_out_of_bounds_is_named(bad):
    corpus = Corpus.from_memories([memory("a"), memory("b")])
    with pytest.raises(LaneError, match=r"link from 'a' to 'b' has confidence .*; it must be in"):
        run(corpus, [["a"]], linked(corpus, ("a", "b", bad)))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([HERE, THERE]), min_size=1, max_size=6), st.integers(1, 4), st.data()
)
def test_a_whole_query_set_gets_what_each_link_says(tenancies, cap, data):
    corpus = Corpus.from_memories([memory(f"m{i}", tenancy=t) for i, t in enumerate(tenancies)])
    row = st.integers(0, len(corpus) - 1)
    name = row.map("m{}".format)
    links = data.draw(st.lists(st.tuples(name, name, st.sampled_from([0.1, 0.5, 1.0])), max_size=8))
    scopes = st.integers(0, len(corpus.tenancies) - 1)
    asked = data.draw(
        st.lists(st.tuples(scopes, st.lists(name, max_size=3)), min_size=1, max_size=4)
    )
    hits = run(
        corpus,
        [line for _, line in asked],
        linked(corpus, *links),
        cap=cap,
        scope=[scope for scope, _ in asked],
    )
    mine = lambda id_, scope: corpus.scope[corpus.row_of[id_]] == scope  # noqa: E731
    for query, (scope, line) in enumerate(asked):
        best = {}
        for a, b, confidence in links + [(b, a, c) for a, b, c in links]:
            if a in line and b not in line and mine(a, scope) and mine(b, scope):
                best[b] = max(best.get(b, 0), confidence)
        expected = sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:cap]
        assert listed(corpus, hits, query) == expected
