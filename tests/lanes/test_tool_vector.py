"""The vector arm: a memory is as near as its nearest part."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.lanes import tool_vector
from comis_eval.lanes.tool_vector import PartIndex, Parts, part_texts, search
from comis_eval.lanes.vector import stack
from comis_eval.stages.recall_tool.request import Request
from comis_eval.store.corpus import QueryBatch
from comis_eval.store.tool_corpus import Caller, ToolCorpus, Views
from comis_eval.types import Tenancy
from tests.builders import NOW, memory
from tests.golden_data import cases

HERE = Tenancy("t", "a")


def run(corpus, vectors, owners, asked, *, depth=200, **request):
    views = Views.of(corpus, [Caller(HERE, NOW)], [Request(query="", limit=5, **request)])
    owners = np.array(owners, dtype=np.int64)
    matrix = np.array(vectors, dtype=np.float32)
    index = PartIndex(corpus, owners, matrix, np.ones(len(owners), dtype=bool))
    batch = QueryBatch(
        ("",), (HERE,), np.zeros(1, dtype=np.int32), np.array([NOW]), (),
        np.array([asked], dtype=np.float32),
    )  # fmt: skip
    hits = search(index, batch, views, depth=depth)
    named = [corpus.memories[row].id for row in hits.rows.tolist()]
    return dict(zip(named, hits.scores.tolist(), strict=True))


def corpus_of(count, **fields):
    return ToolCorpus.of([memory(f"m{n}", "text", tenancy=HERE, **fields) for n in range(count)])


@pytest.mark.parametrize("case", cases("recall-tool", "cosine"), ids=lambda c: c["name"])
def test_golden_cosine(case):
    a, b = case["input"]["a"], case["input"]["b"]
    if len(a) != len(b):
        # the deployed system says 0 and goes on; here vectors of two models never meet
        corpus = corpus_of(1)
        with pytest.raises(Exception, match="dimensions"):
            stack(corpus, {"m0": b}, dim=len(a))
        return
    if not a:
        assert case["expected"] == 0
        return
    found = run(corpus_of(1), [b], [0], a)
    assert found.get("m0", 0.0) == pytest.approx(case["expected"], abs=1e-7)


def test_a_memory_is_as_near_as_its_best_part_and_stands_once():
    far, near = [0.6, 0.8], [1.0, 0.0]
    found = run(corpus_of(2), [far, near, far, [0.8, 0.6]], [0, 0, 0, 1], [1, 0])
    assert found == pytest.approx({"m0": 1.0, "m1": 0.8})
    assert list(found) == ["m0", "m1"]


def test_many_parts_of_one_memory_take_no_other_ones_place():
    vectors = [[1.0, 0.001 * n] for n in range(40)] + [[0.5, 0.9], [0.4, 0.9]]
    found = run(corpus_of(3), vectors, [0] * 40 + [1, 2], [1, 0], depth=2)
    assert list(found) == ["m0", "m1"]


def test_an_eligible_memory_behind_many_that_are_not_is_found():
    made = [memory(f"m{n:03}", "text", tenancy=HERE, tags=("red",)) for n in range(150)]
    made.append(memory("blue", "text", tenancy=HERE, tags=("blue",)))
    vectors = [[1.0, 0.0]] * 150 + [[0.1, 1.0]]
    found = run(ToolCorpus.of(made), vectors, range(151), [1, 0], depth=3, tags=("blue",))
    assert list(found) == ["blue"]


def test_every_part_stands_behind_key_and_tags_and_nothing_is_lost():
    text = " ".join(f"word{n}" for n in range(100)) + " " + "x" * 90
    one = memory("m", text, key="kiln-log", tags=("hot", "red"))
    parts = part_texts(one, 80)
    assert all(part.startswith("kiln-log hot red ") for part in parts)
    pieces = [part.removeprefix("kiln-log hot red ") for part in parts]
    assert max(map(len, pieces)) <= 80
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert part_texts(memory("m", "short", key="ab"), 80) == ["ab short"]
    assert Parts.of(ToolCorpus.of([one, memory("n", "short")]), 80).owners.tolist()[-2:] == [0, 1]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000), depth=st.integers(1, 12), share=st.sampled_from((0.05, 0.5, 1.0)),
    levels=st.sampled_from((2, 5, 1_000)), budget=st.sampled_from((1, 1 << 23)),
)  # fmt: skip
def test_the_list_is_the_one_that_multiplying_everything_in_float64_gives(
    seed, depth, share, levels, budget
):
    dice = np.random.default_rng(seed)
    counts = dice.integers(0, 4, 30)
    owners = np.repeat(np.arange(30), counts)
    # Few levels: many ties, and vectors of zeros.
    vectors = (dice.integers(0, levels, (len(owners), 3)) / levels).astype(np.float32)
    asked = (dice.integers(0, levels, (4, 3)) / levels).astype(np.float32)
    corpus = corpus_of(30)
    masks = dice.random((2, 30)) < share
    views = Views(masks, np.array([0, 1, 1, 0]))
    has = dice.random(len(owners)) < 0.9
    batch = QueryBatch(
        ("",) * 4, (HERE,) * 4, np.zeros(4, dtype=np.int32), np.full(4, NOW), (), asked
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool_vector, "_PRODUCTS", budget)
        hits = search(PartIndex(corpus, owners, vectors, has), batch, views, depth=depth)
    for query in range(4):
        best = {}
        for part, row in enumerate(owners.tolist()):
            a, b = asked[query].astype(np.float64), vectors[part].astype(np.float64)
            norms = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
            if norms and has[part] and masks[views.which[query], row]:
                best[row] = max(best.get(row, -2.0), float((a * b).sum() / norms))
        expected = sorted(best, key=lambda row: (-best[row], int(corpus.key_rank[row])))
        part = slice(*hits.offsets[query : query + 2])
        scores = [best[row] for row in expected]
        assert hits.scores[part].tolist() == pytest.approx(scores[:depth], abs=1e-12)
        assert [best[row] for row in hits.of(query).tolist()] == pytest.approx(
            scores[:depth], abs=1e-12
        )
        assert len(set(hits.of(query).tolist())) == len(hits.of(query))
        assert bool(hits.exhausted[query]) == (len(best) <= depth)
