"""The vector arm: a memory is as near as its nearest part."""

import numpy as np
import pytest

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
