"""The text arm: all words, then some, on one scale."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.lanes.fts import STOP_WORDS, FtsIndex
from comis_eval.lanes.tool_text import Scored, all_words, merge, or_words, search
from comis_eval.stages.recall_tool.request import Request
from comis_eval.store.tool_corpus import Caller, ToolCorpus, Views
from comis_eval.types import Tenancy
from tests.builders import NOW, memory
from tests.golden_data import cases

HERE = Tenancy("t", "a")


@pytest.mark.parametrize(
    "case",
    [c for c in cases("recall-tool", "fts_fallback") if c["input"]["fn"] == "or_tokens"],
    ids=lambda c: c["name"],
)
def test_golden_or_tokens(case):
    assert " | ".join(or_words(case["input"]["query"])) == case["expected"]


@pytest.mark.parametrize(
    "case",
    [c for c in cases("recall-tool", "fts_fallback") if c["input"]["fn"] == "or_merge"],
    ids=lambda c: c["name"],
)
def test_golden_or_merge(case):
    def scored(rows):
        return Scored(
            np.array([row["id"] for row in rows], dtype=np.int64),
            np.array([row["score"] for row in rows], dtype=np.float64),
        )

    given_ = case["input"]
    found = merge(scored(given_["and_rows"]), scored(given_["or_rows"]))
    cut = given_["limit"] or len(found.rows)
    assert found.rows[:cut].tolist() == [one["id"] for one in case["expected"]]
    assert found.scores[:cut].tolist() == pytest.approx(
        [one["score"] for one in case["expected"]], rel=1e-12
    )


def corpus_of(*contents, **fields):
    made = [
        memory(f"m{number:02}", text, tenancy=HERE, **fields)
        for number, text in enumerate(contents)
    ]
    return ToolCorpus.of(made)


def run(corpus, *texts, depth=200, request=None):
    index = FtsIndex(corpus, [list(corpus.keys), [m.content for m in corpus.memories]])
    asked = request or Request(query="", limit=5)
    callers = [Caller(HERE, NOW)] * len(texts)
    views = Views.of(corpus, callers, [asked] * len(texts))
    return search(index, corpus, texts, views, depth=depth)


def ids(corpus, hits, query=0):
    return [corpus.memories[row].id for row in hits.of(query)]


def test_who_has_all_words_leads_who_has_some():
    corpus = corpus_of(
        "glaze glaze glaze glaze", "kiln copper glaze test", "a kiln", "copper glaze and a test"
    )
    found = ids(corpus, run(corpus, "kiln copper glaze test"))
    assert found[0] == "m01"
    assert set(found) == {"m00", "m01", "m02", "m03"}


def test_with_three_that_have_all_words_nobody_else_joins():
    corpus = corpus_of("red kiln", "a red kiln", "the kiln is red", "red", "kiln")
    assert set(ids(corpus, run(corpus, "red kiln"))) == {"m00", "m01", "m02"}


def test_short_words_count_only_together():
    corpus = corpus_of("db ci", "db", "ci")
    assert ids(corpus, run(corpus, "db ci")) == ["m00"]


def test_stop_words_alone_find_nothing_and_stems_meet():
    corpus = corpus_of("the kilns", "the")
    hits = run(corpus, "the and of", "kiln", "")
    assert [ids(corpus, hits, query) for query in range(3)] == [[], ["m00"], []]


def test_keys_are_searched_and_tags_are_not():
    made = [
        memory("a", "nothing", key="kiln-log", tenancy=HERE),
        memory("b", "nothing", tags=("kiln",), tenancy=HERE),
    ]
    corpus = ToolCorpus.of(made)
    assert ids(corpus, run(corpus, "kiln log")) == ["a"]


def test_what_may_not_be_shown_is_neither_found_nor_counted():
    seen = ["red kiln", "blue kiln", "green glaze"]
    alone = run(corpus_of(*seen), "kiln glaze")
    made = [memory(f"m{n:02}", text, tenancy=HERE) for n, text in enumerate(seen)]
    made += [
        memory("gone", "kiln kiln", tenancy=HERE, archived=True),
        memory("late", "kiln glaze", tenancy=HERE, expires_at=NOW),
        memory("hers", "kiln glaze", tenancy=HERE, scope="agent", created_by="b"),
        memory("there", "kiln glaze", tenancy=Tenancy("u", "a")),
    ]
    both = run(ToolCorpus.of(made), "kiln glaze")
    assert alone.rows.tolist() == both.rows.tolist()
    assert alone.scores.tolist() == both.scores.tolist()


def test_equal_scores_stand_newest_first_then_by_key():
    made = [
        memory("a", "kiln", key="kb", created_at=1, tenancy=HERE),
        memory("b", "kiln", key="kc", created_at=2, tenancy=HERE),
        memory("c", "kiln", key="ka", created_at=1, tenancy=HERE),
    ]
    corpus = ToolCorpus.of(made)
    hits = run(corpus, "kiln", request=Request(query="", limit=5, include_expired=True))
    assert ids(corpus, hits) == ["b", "c", "a"]


WORDS = ["kiln", "kilns", "glaze", "the", "running", "runs", "red", "x1", "東京", "don't", "café"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


@given(contents=st.lists(TEXT, min_size=1, max_size=9), text=TEXT)
@settings(max_examples=150, derandomize=True, deadline=None)
def test_sqlite_ranks_the_same(contents, text):
    corpus = corpus_of(*contents)
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(key, content, tokenize='porter unicode61')")
    db.executemany(
        "INSERT INTO t (rowid, key, content) VALUES (?, ?, ?)",
        [(row, m.key, m.content) for row, m in enumerate(corpus.memories)],
    )

    def said(tokens, operator):
        if not tokens:
            return {}
        match = f" {operator} ".join(f'"{token}"' for token in tokens)
        sql = "SELECT rowid, -bm25(t) FROM t WHERE t MATCH ?"
        return dict(db.execute(sql, (match,)).fetchall())

    strict = said(all_words(text), "AND")
    expected = strict
    if len(strict) < 3:
        loose = said([w for w in or_words(text) if w not in STOP_WORDS], "OR")
        if not all_words(text):
            loose = {}
        discounted = {row: score * (1 if row in strict else 0.8) for row, score in loose.items()}
        expected = {**strict, **discounted}
    db.close()
    hits = run(corpus, text)
    assert dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)) == pytest.approx(
        expected, rel=1e-9, abs=1e-15
    )
    assert (np.diff(hits.scores) <= 0).all()
