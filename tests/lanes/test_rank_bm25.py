import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from comis_eval.lanes.rank_bm25 import OkapiIndex, search
from comis_eval.store.corpus import Corpus
from comis_eval.types import Tenancy
from tests.builders import NOW, memory
from tests.lanes.build import HERE, THERE, batch_of, corpus_of, ids, listed, single

WORDS = ["kiln", "glaze", "red", "blue", "clay", "wheel", "—"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def run(corpus, texts, *, depth=100, statistics="scope", scope_filter="in_lane", **asked):
    batch = batch_of(corpus, texts, **asked)
    index = OkapiIndex(corpus)
    return search(index, batch, depth=depth, statistics=statistics, scope_filter=scope_filter)


def package_says(contents, text):
    """The package's own scores of the memories that hold a term of the query."""
    # Each word is its own stem but for these two.
    stems = {"glaze": "glaze", "clay": "clai"}
    terms = lambda t: [stems.get(w, w) for w in re.findall(r"\w+", t)]  # noqa: E731
    model = BM25Okapi([terms(content) for content in contents])
    model.idf = {term: max(idf, 0.0) for term, idf in model.idf.items()}
    scores = model.get_scores(terms(text)).tolist()
    return sorted(((-s, row) for row, s in enumerate(scores) if s > 0))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(TEXT, min_size=1, max_size=10), st.lists(TEXT, min_size=1, max_size=3))
def test_scores_are_the_packages_to_the_bit(contents, texts):
    if not any(re.search(r"\w", content) for content in contents):
        contents = [*contents, "kiln"]
    corpus = corpus_of(*contents)
    for statistics in ("scope", "table"):
        hits = run(corpus, texts, statistics=statistics)
        for query, text in enumerate(texts):
            said = [(f"m{row}", -score) for score, row in package_says(contents, text)]
            assert listed(corpus, hits, query) == said


def test_a_score_by_hand():
    corpus = corpus_of("kiln red", "glaze", "blue", "clay wheel wheel")  # average 7 / 4
    ((id_, score),) = listed(corpus, run(corpus, ["kiln"]))
    norm = 1.5 * (0.25 + 0.75 * 2 / (7 / 4))
    assert id_ == "m0"
    assert score == pytest.approx((math.log(3.5) - math.log(1.5)) * 2.5 / (1 + norm), rel=1e-12)


@pytest.mark.parametrize(
    "contents",
    [["kiln"], ["kiln", "glaze"], ["kiln", "kiln"], ["kiln red", "kiln blue", "kiln"]],
    ids=["one memory", "in half of two", "in all", "in all of three"],
)
def test_a_term_that_weighs_nothing_finds_nothing(contents):
    corpus = corpus_of(*contents)
    assert ids(corpus, run(corpus, ["kiln"])) == []


def test_without_any_term_nothing_is_found():
    assert run(corpus_of(), ["kiln"]).lengths.tolist() == [0]
    assert run(corpus_of("!!!", "—"), ["kiln"], statistics="table").lengths.tolist() == [0]
    corpus = Corpus.from_memories([memory("a", "—"), memory("b", "kiln", tenancy=THERE)])
    assert run(corpus, ["kiln", "the"], scope_filter="after_fusion").lengths.tolist() == [0, 0]
    assert run(corpus, ["kiln"], tenancies=[Tenancy("nobody")]).lengths.tolist() == [0]


def test_memories_without_a_term_of_the_query_are_never_returned():
    corpus = corpus_of("kiln", "glaze", "red", "blue")
    assert ids(corpus, run(corpus, ["kiln"])) == ["m0"]


def test_equal_scores_stand_in_row_order():
    corpus = corpus_of("kiln red", "kiln blue", "clay", "wheel", "clay", "wheel")
    hits = run(corpus, ["kiln"], depth=1)
    assert (ids(corpus, hits), hits.exhausted.tolist()) == (["m0"], [False])


MIXED = st.lists(
    st.tuples(st.sampled_from([HERE, THERE]), TEXT, st.booleans()), min_size=1, max_size=9
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(MIXED, st.lists(TEXT, min_size=1, max_size=3))
def test_batches_and_foreign_memories_change_nothing(entries, texts):
    corpus = Corpus.from_memories(
        [
            memory(f"m{i}", text, tenancy=tenancy, expires_at=NOW if expired else None)
            for i, (tenancy, text, expired) in enumerate(entries)
        ]
    )
    mine = Corpus.from_memories([m for m in corpus.memories if m.tenancy == HERE])
    batch, index = batch_of(corpus, texts), OkapiIndex(corpus)
    together, without = run(corpus, texts), run(mine, texts)
    for query in range(len(texts)):
        alone = search(
            index, single(batch, query), depth=100, statistics="scope", scope_filter="in_lane"
        )
        assert listed(corpus, together, query) == listed(corpus, alone)
        assert listed(corpus, together, query) == listed(mine, without, query)


def test_hostile_queries_do_not_raise():
    corpus = corpus_of("red kiln", "blue glaze", "a b c")
    hostile = ['"', "NEAR(", "kiln*", "\0", "\ud800", "\u19b0", "kiln\u19b0red", "kiln " * 20_000]
    hits = run(corpus, hostile)
    assert [ids(corpus, hits, q) for q in (2, 6, 7)] == [["m0"]] * 3
