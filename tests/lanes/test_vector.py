import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import LaneError
from comis_eval.lanes.vector import VectorIndex, search, stack
from comis_eval.store.corpus import Corpus
from comis_eval.types import Filters, MemoryType, Tenancy
from tests.builders import NOW, memory
from tests.golden_data import cases
from tests.lanes.build import HERE, THERE, batch_of, corpus_of, ids, listed, single


def index_of(corpus, vectors, has=None):
    matrix = np.array(vectors, dtype=np.float32).reshape(len(corpus), -1)
    return VectorIndex(corpus, matrix, np.ones(len(corpus), bool) if has is None else np.array(has))


def run(corpus, vectors, asked, *, depth=10, scope_filter="in_lane", **fields):
    batch = batch_of(corpus, ["text"] * len(asked), vectors=asked, **fields)
    return search(index_of(corpus, vectors), batch, depth=depth, scope_filter=scope_filter)


def brute(vectors, asked, rows):
    """Every cosine, one by one in float64; rows of equal ones in order."""
    wide, q = np.array(vectors, dtype=np.float32).astype(float), np.float32(asked).astype(float)
    cosine = {
        row: float((wide[row] * q).sum())
        / (np.sqrt((q * q).sum()) * np.sqrt((wide[row] * wide[row]).sum()))
        for row in rows
        if wide[row].any()
    }
    return sorted(cosine.items(), key=lambda hit: (-hit[1], hit[0]))


def test_cosine_by_hand():
    corpus = corpus_of("a", "b", "c", "d")
    hits = run(corpus, [[3, 4], [-1, 0], [0, 2], [5, 0]], [[2, 0]])
    assert listed(corpus, hits) == [("m3", 1.0), ("m0", 0.6), ("m2", 0.0), ("m1", -1.0)]
    assert hits.exhausted.tolist() == [True]


@pytest.mark.parametrize(
    "case",
    [case for case in cases("memory-recall", "hybrid") if "queries" in case],
    ids=lambda case: case["name"],
)
def test_golden_hybrid_vector_lists(case):
    entries = case["input"]["memories"]
    corpus = Corpus.from_memories([memory(m["id"], m["content"]) for m in entries])
    given_ = {m["id"]: m["embedding"] for m in entries if m.get("embedding")}
    index = VectorIndex(corpus, *stack(corpus, given_, dim=case["input"]["dim"]))
    for query in case["queries"]:
        if "debug" not in query or not query["embedding"]:
            continue
        batch = batch_of(corpus, [query["query"]], vectors=[query["embedding"]])
        depth = 2 * query["options"]["limit"]
        found = listed(corpus, search(index, batch, depth=depth, scope_filter="after_fusion"))
        expected = [(hit["id"], hit["distance"]) for hit in query["debug"]["vec"]]
        assert [id_ for id_, _ in found] == [id_ for id_, _ in expected]
        assert [1 - score for _, score in found] == pytest.approx(
            [distance for _, distance in expected], abs=1e-5
        )


@pytest.mark.parametrize("scope_filter", ["in_lane", "after_fusion"])
@pytest.mark.parametrize("dim", [1, 3, 33])
def test_neighbours_are_those_of_brute_force_to_the_bit(dim, scope_filter):
    rng = np.random.default_rng(dim)
    vectors = rng.integers(-2, 3, size=(300, dim)).astype(np.float32)  # ties and zeros abound
    vectors[150:] += rng.standard_normal((150, dim)).astype(np.float32)
    tenancies = [HERE if n % 3 else THERE for n in range(300)]
    expiries = [NOW if n % 7 == 0 else None for n in range(300)]
    corpus = Corpus.from_memories(
        [
            memory(f"m{n:03}", tenancy=t, expires_at=e)
            for n, (t, e) in enumerate(zip(tenancies, expiries, strict=True))
        ]
    )
    asked = rng.standard_normal((9, dim)).astype(np.float32)
    asked[1::2] = rng.integers(1, 3, size=(4, dim))
    for depth in (1, 5, 40, 500):
        hits = run(corpus, vectors, asked, depth=depth, scope_filter=scope_filter)
        everywhere = scope_filter == "after_fusion"
        rows = [n for n in range(300) if everywhere or (n % 3 and n % 7)]
        for query, vector in enumerate(asked):
            expected = brute(vectors, vector, rows)
            start, end = hits.offsets[query : query + 2]
            found = zip(hits.of(query).tolist(), hits.scores[start:end].tolist(), strict=True)
            assert list(found) == expected[:depth]
            assert hits.exhausted[query] == (len(expected) <= depth)


def test_a_batch_is_its_members_to_the_bit():
    rng = np.random.default_rng(0)
    corpus = corpus_of(*["text"] * 700)
    vectors = rng.standard_normal((700, 48)).astype(np.float32)
    vectors[350:] = vectors[:350] * (1 + 1e-7)  # near ties that float32 products reorder
    index = index_of(corpus, vectors)
    batch = batch_of(corpus, [""] * 60, vectors=rng.standard_normal((60, 48)))
    for scope_filter in ("in_lane", "after_fusion"):
        together = search(index, batch, depth=20, scope_filter=scope_filter)
        for query in range(60):
            alone = search(index, single(batch, query), depth=20, scope_filter=scope_filter)
            assert listed(corpus, alone) == listed(corpus, together, query)
            assert alone.exhausted[0] == together.exhausted[query]


def test_equal_vectors_stand_in_row_order_however_many():
    corpus = corpus_of(*["text"] * 400)
    hits = run(corpus, [[1, 2]] * 400, [[2, 1]], depth=5)
    assert hits.of(0).tolist() == [0, 1, 2, 3, 4]
    assert hits.exhausted.tolist() == [False]


VECTORS = st.lists(st.tuples(*[st.integers(-2, 2)] * 2), min_size=1, max_size=8)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(VECTORS, st.data())
def test_another_tenants_memories_change_nothing(vectors, data):
    tenancies = [data.draw(st.sampled_from([HERE, THERE])) for _ in vectors]
    corpus = Corpus.from_memories([memory(f"m{i}", tenancy=t) for i, t in enumerate(tenancies)])
    mine = Corpus.from_memories([m for m in corpus.memories if m.tenancy == HERE])
    kept = [v for v, t in zip(vectors, tenancies, strict=True) if t == HERE]
    if not kept:
        return
    asked = [data.draw(st.tuples(*[st.integers(-2, 2)] * 2))]
    assert listed(corpus, run(corpus, vectors, asked)) == listed(mine, run(mine, kept, asked))


def test_filters_hold_inside_the_lane_and_are_refilled_from_behind():
    corpus = Corpus.from_memories(
        [
            memory(f"m{n}", memory_type=MemoryType.EPISODIC if n > 150 else MemoryType.WORKING)
            for n in range(200)
        ]
    )
    vectors = [[1, n / 200] for n in range(200)]
    filters = [Filters(memory_type=MemoryType.EPISODIC)]
    hits = run(corpus, vectors, [[1, 0]], depth=3, filters=filters)
    assert ids(corpus, hits) == ["m151", "m152", "m153"]
    assert hits.exhausted.tolist() == [False]


def test_zero_vectors_are_skipped_and_never_found():
    corpus = corpus_of("a", "b", "c")
    hits = run(corpus, [[0, 0], [1, 0], [0, 1]], [[0, 0], [1, 1]])
    assert hits.lengths.tolist() == [0, 2]
    assert ids(corpus, hits, 1) == ["m1", "m2"]
    assert hits.exhausted.tolist() == [True, True]


def test_memories_without_a_vector_are_never_found():
    corpus = corpus_of("a", "b")
    matrix = np.array([[np.nan, 1], [1, 1]], dtype=np.float32)
    index = VectorIndex(corpus, matrix, np.array([False, True]))
    hits = search(index, batch_of(corpus, [""], vectors=[[1, 0]]), depth=5, scope_filter="in_lane")
    assert ids(corpus, hits) == ["m1"]


def test_nothing_to_find_is_nothing_found():
    corpus = corpus_of("a")
    nobody = [Tenancy("nobody")]
    assert run(corpus, [[1, 0]], [[1, 0]], tenancies=nobody).lengths.tolist() == [0]
    assert run(corpus, [[1, 0]], np.empty((0, 2))).lengths.tolist() == []
    empty = corpus_of()
    index = VectorIndex(empty, np.empty((0, 2), np.float32), np.empty(0, bool))
    for scope_filter in ("in_lane", "after_fusion"):
        batch = batch_of(empty, ["x"], vectors=[[1, 0]])
        assert search(index, batch, depth=3, scope_filter=scope_filter).lengths.tolist() == [0]


def test_the_callers_arrays_are_not_changed():
    corpus = corpus_of("a", "b")
    vectors, asked = np.array([[3, 4], [1, 0]], np.float32), np.array([[5, 5]], np.float32)
    before = vectors.tobytes(), asked.tobytes()
    index = VectorIndex(corpus, vectors, np.ones(2, bool))
    search(index, batch_of(corpus, ["x"], vectors=asked), depth=1, scope_filter="in_lane")
    assert (vectors.tobytes(), asked.tobytes()) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named(bad):
    corpus = corpus_of("a", "b")
    with pytest.raises(LaneError, match="vector of memory 'm1' holds NaN or infinity"):
        index_of(corpus, [[1, 0], [0, bad]])
    with pytest.raises(LaneError, match=r"vector of query 1 \('text'\) holds NaN or infinity"):
        run(corpus, [[1, 0], [0, 1]], [[1, 1], [bad, 0]])


def test_wrong_dimensions_are_named():
    corpus = corpus_of("a", "b")
    with pytest.raises(LaneError, match="vector of memory 'm1' has 3 dimensions, not 2"):
        stack(corpus, {"m0": [1, 0], "m1": [1, 0, 0]}, dim=2)
    with pytest.raises(LaneError, match="vector for memory 'zz', which does not exist"):
        stack(corpus, {"zz": [1, 0]}, dim=2)
    with pytest.raises(LaneError, match=r"memories of 2 dimensions .* got \(1, 3\)"):
        run(corpus, [[1, 0], [0, 1]], [[1, 2, 3]])
    with pytest.raises(LaneError, match=r"2 memories needs vectors \(2, dim\).* got \(1, 2\)"):
        VectorIndex(corpus, np.ones((1, 2), np.float32), np.ones(2, bool))
    with pytest.raises(LaneError, match="needs query vectors"):
        search(
            index_of(corpus, [[1], [2]]), batch_of(corpus, ["x"]), depth=1, scope_filter="in_lane"
        )
