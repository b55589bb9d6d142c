import math
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.lanes.fts import STOP_WORDS, FtsIndex, match_query, match_tokens, search
from comis_eval.lanes.terms import occurrences, sequences
from comis_eval.store import Store
from comis_eval.store.corpus import Corpus
from comis_eval.types import Filters, MemoryType, Tenancy, TrustLevel
from tests.builders import NOW, memory
from tests.golden_data import cases
from tests.lanes.build import HERE, THERE, batch_of, corpus_of, ids, listed, single

SPLIT = "\u19b0"  # a letter by today's Unicode, a separator to FTS5: it makes a phrase
WORDS = [
    "kiln",
    "kilns",
    "glaze",
    "the",
    "running",
    "Café",
    "東京",
    "x1",
    f"red{SPLIT}blue",
    f"red{SPLIT}red",
    "red",
    "blue",
    SPLIT,
    "—",
    "don't",
]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
MODES = [(s, f) for s in ("scope", "table") for f in ("in_lane", "after_fusion")]


def run(corpus, texts, *, depth=100, statistics="scope", scope_filter="in_lane", **asked):
    batch = batch_of(corpus, texts, **asked)
    index = FtsIndex(corpus)
    return search(index, batch, depth=depth, statistics=statistics, scope_filter=scope_filter)


def sqlite_says(contents, texts, depth=100):
    """Row and negated bm25 as FTS5 itself answers, one MATCH a query."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(content, tokenize='porter unicode61')")
    db.executemany("INSERT INTO t (rowid, content) VALUES (?, ?)", enumerate(contents))
    sql = "SELECT rowid, -bm25(t) FROM t WHERE t MATCH ? ORDER BY rank, rowid LIMIT ?"
    said = [
        [] if match_query(text) is None else db.execute(sql, (match_query(text), depth)).fetchall()
        for text in texts
    ]
    db.close()
    return said


def test_a_term_that_fts5_cuts_within_a_character_is_found_as_fts5_finds_it():
    long = "記" * 11_000
    assert {len(term) for term in occurrences([long]).terms} != {11_000}  # it was cut
    contents, texts = [long, "kiln"], ["kiln", long]
    corpus = corpus_of(*contents)
    found = run(corpus, texts, statistics="table", scope_filter="after_fusion")
    for query, said in enumerate(sqlite_says(contents, texts)):
        assert [id_ for id_, _ in listed(corpus, found, query)] == [f"m{row}" for row, _ in said]
        assert [score for _, score in listed(corpus, found, query)] == [s for _, s in said]
    assert listed(corpus, found, 0)


@pytest.mark.parametrize("case", cases("memory-recall", "fts_query"), ids=lambda c: c["name"])
def test_golden_match_query(case):
    assert match_query(case["input"]) == case["expected"]


@pytest.mark.parametrize("statistics", ["scope", "table"])
@pytest.mark.parametrize("case", cases("memory-recall", "fts_search"), ids=lambda c: c["name"])
def test_golden_search(case, statistics):
    given_ = case["input"]
    with Store.open() as store:
        store.add([memory(m["id"], m["content"]) for m in given_["memories"]])
        for op in given_["ops"]:
            if op["op"] == "delete":
                store.delete([op["id"]])
            else:
                assert op["op"] == "update"
                store.update_content(op["id"], op["content"])
        corpus = store.corpus()
    index = FtsIndex(corpus)
    for query in case["queries"]:
        assert match_query(query["query"]) == query["match"]
        hits = search(
            index,
            batch_of(corpus, [query["query"]]),
            depth=query["limit"],
            statistics=statistics,
            scope_filter="in_lane",
        )
        found = listed(corpus, hits)
        assert [id_ for id_, _ in found] == [hit["id"] for hit in query["expected"]]
        assert [-score for _, score in found] == pytest.approx(
            [hit["rank"] for hit in query["expected"]], rel=1e-12
        )


@pytest.mark.parametrize(
    "case",
    [case for case in cases("memory-recall", "hybrid") if "queries" in case],
    ids=lambda case: case["name"],
)
def test_golden_hybrid_keyword_lists(case):
    corpus = Corpus.from_memories(
        [
            memory(m["id"], m["content"], tenancy=Tenancy(m["tenantId"], m["agentId"]))
            for m in case["input"]["memories"]
        ]
    )
    index = FtsIndex(corpus)
    for query in case["queries"]:
        if "debug" not in query:
            continue
        options = query["options"]
        hits = search(
            index,
            batch_of(corpus, [query["query"]], tenancies=[Tenancy(options.get("tenantId"))]),
            depth=2 * options["limit"],
            statistics="table",
            scope_filter="after_fusion",
        )
        assert ids(corpus, hits) == query["debug"]["fts"], query


def test_there_are_107_stop_words():
    assert len(STOP_WORDS) == 107
    assert not {"were", "there", "mine", "yourself"} & STOP_WORDS


def test_quotes_are_deleted_before_anything_is_read():
    assert match_tokens('ki"ln') == ["kiln"]
    assert match_tokens('\ud83d"\ude00 \ud835"\udc1b \ud800x') == ["\U0001d41b", "x"]


def test_bm25_by_hand():
    # Three memories of 2, 2 and 5 terms: average 3. "red" is in two of them: its idf is
    # log((3 - 2 + 0.5) / 2.5) < 0, so 1e-6; "kiln" is in one: log(2.5 / 1.5).
    corpus = corpus_of("red kiln", "blue glaze", "red red red red glaze")
    hits = run(corpus, ["kiln red"])
    norm = {2: 1.2 * (0.25 + 0.75 * 2 / 3), 5: 1.2 * (0.25 + 0.75 * 5 / 3)}
    first = math.log(2.5 / 1.5) * 2.2 / (1 + norm[2]) + 1e-6 * 2.2 / (1 + norm[2])
    second = 1e-6 * (4 * 2.2) / (4 + norm[5])
    assert listed(corpus, hits) == [
        ("m0", pytest.approx(first, rel=1e-12)),
        ("m2", pytest.approx(second, rel=1e-12)),
    ]
    assert hits.exhausted.tolist() == [True]


def test_repeated_tokens_count_again():
    corpus = corpus_of("kiln", "glaze", "glaze")
    once, twice = (run(corpus, [text]).scores[0] for text in ("kiln", "kiln kiln"))
    assert twice == once + once


def test_a_token_the_tokenizer_splits_is_a_phrase():
    corpus = corpus_of("red blue", "blue red", "red red blue", "red")
    assert ids(corpus, run(corpus, [f"red{SPLIT}blue"])) == ["m0", "m2"]
    assert ids(corpus, run(corpus, [f"red{SPLIT}red"])) == ["m2"]
    assert ids(corpus, run(corpus, [SPLIT, f"red{SPLIT}green"])) == []


def test_tokens_are_split_and_stemmed_as_in_memories():
    found = occurrences(["Running runs", "", "\ud800Café"])
    said = [[found.terms[t] for t in line] for line in sequences(found, 3)]
    assert said == [["run", "run"], [], ["cafe"]]
    assert sequences(occurrences([]), 0) == []


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(TEXT, min_size=1, max_size=12),
    st.lists(TEXT, min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_one_tenancy_gets_what_fts5_answers_to_the_bit(contents, texts, depth):
    corpus = corpus_of(*contents)
    expected = sqlite_says(contents, texts, depth)
    for statistics, scope_filter in MODES:
        hits = run(corpus, texts, depth=depth, statistics=statistics, scope_filter=scope_filter)
        for query, said in enumerate(expected):
            start, end = hits.offsets[query : query + 2]
            assert hits.of(query).tolist() == [row for row, _ in said]
            assert hits.scores[start:end].tolist() == [score for _, score in said]


MIXED = st.lists(
    st.tuples(st.sampled_from([HERE, THERE]), TEXT, st.booleans()), min_size=1, max_size=10
)


def mixed(entries):
    return Corpus.from_memories(
        [
            memory(f"m{i}", text, tenancy=tenancy, expires_at=NOW if expired else None)
            for i, (tenancy, text, expired) in enumerate(entries)
        ]
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    MIXED,
    st.lists(st.tuples(st.sampled_from([HERE, THERE]), TEXT), min_size=1, max_size=5),
    st.integers(1, 4),
)
def test_a_batch_is_its_members(entries, asked, depth):
    corpus = mixed(entries)
    batch = batch_of(corpus, [text for _, text in asked], tenancies=[t for t, _ in asked])
    index = FtsIndex(corpus)
    for statistics, scope_filter in MODES:
        mode = {"depth": depth, "statistics": statistics, "scope_filter": scope_filter}
        together = search(index, batch, **mode)
        for query in range(len(batch)):
            alone = search(FtsIndex(corpus), single(batch, query), **mode)
            assert listed(corpus, alone) == listed(corpus, together, query)
            assert alone.exhausted[0] == together.exhausted[query]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(MIXED, st.lists(TEXT, min_size=1, max_size=3))
def test_another_tenants_memories_change_nothing(entries, texts):
    corpus = mixed(entries)
    mine = Corpus.from_memories([m for m in corpus.memories if m.tenancy == HERE])
    together, alone = run(corpus, texts), run(mine, texts)
    for query in range(len(texts)):
        assert listed(corpus, together, query) == listed(mine, alone, query)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(MIXED, TEXT, st.integers(1, 4))
def test_the_lane_drops_the_ineligible_before_the_depth_and_counts_them(entries, text, depth):
    corpus = mixed(entries)
    mine = [m for m in corpus.memories if m.tenancy == HERE]
    ((*said,),) = sqlite_says([m.content for m in mine], [text])
    kept = [(mine[row].id, score) for row, score in said if mine[row].expires_at is None]
    hits = run(corpus, [text], depth=depth)
    assert listed(corpus, hits) == kept[:depth]
    assert hits.exhausted[0] == (len(kept) <= depth)


def test_after_fusion_returns_everybodys_and_the_expired_by_the_querys_statistics():
    corpus = Corpus.from_memories(
        [
            memory("mine", "kiln"),
            memory("filler", "glaze glaze glaze"),
            memory("late", "kiln kiln", expires_at=NOW),
            memory("foreign", "kiln", tenancy=THERE),
            memory("foreign2", "kiln", tenancy=THERE),
        ]
    )
    hits = run(corpus, ["kiln"], scope_filter="after_fusion")
    # In the query's tenancy: three memories, two with "kiln", so the idf is 1e-6; average 2.
    score = lambda tf, length: 1e-6 * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / 2))  # noqa: E731
    assert listed(corpus, hits) == [
        ("late", pytest.approx(score(2, 2), rel=1e-12)),
        ("mine", pytest.approx(score(1, 1), rel=1e-12)),
        ("foreign", pytest.approx(score(1, 1), rel=1e-12)),
        ("foreign2", pytest.approx(score(1, 1), rel=1e-12)),
    ]
    assert ids(corpus, run(corpus, ["kiln"])) == ["mine"]


def test_filters_hold_inside_the_lane():
    corpus = Corpus.from_memories(
        [
            memory("a", "kiln", memory_type=MemoryType.EPISODIC, tags=("x",)),
            memory("b", "kiln", trust_level=TrustLevel.SYSTEM),
        ]
    )
    filters = [
        Filters(memory_type=MemoryType.EPISODIC),
        Filters(trust_level=TrustLevel.SYSTEM),
        Filters(tags=("x",)),
        Filters(tags=("unknown",)),
        Filters(),
    ]
    hits = run(corpus, ["kiln"] * 5, filters=filters, depth=2)
    assert [ids(corpus, hits, q) for q in range(5)] == [["a"], ["b"], ["a"], [], ["a", "b"]]


def test_equal_scores_stand_in_row_order_across_the_depth():
    corpus = corpus_of(*["kiln"] * 500, "glaze")
    hits = run(corpus, ["kiln"], depth=7)
    assert hits.of(0).tolist() == list(range(7))
    assert hits.exhausted.tolist() == [False]


def test_a_tenancy_without_memories_or_with_empty_ones_finds_nothing():
    corpus = Corpus.from_memories([memory("a", "kiln"), memory("b", "!!!", tenancy=THERE)])
    for scope_filter in ("in_lane", "after_fusion"):
        tenancies = [Tenancy("nobody"), THERE, HERE]
        hits = run(corpus, ["kiln"] * 3, tenancies=tenancies, scope_filter=scope_filter)
        assert hits.lengths.tolist() == [0, 0, 1]
        assert hits.exhausted.all()


@pytest.mark.parametrize(("statistics", "scope_filter"), MODES)
def test_no_memories_and_no_queries_are_no_hits(statistics, scope_filter):
    mode = {"statistics": statistics, "scope_filter": scope_filter}
    assert run(corpus_of(), ["kiln", ""], **mode).lengths.tolist() == [0, 0]
    assert run(corpus_of("kiln"), [], **mode).lengths.tolist() == []


HOSTILE = [
    "", " ", '"', '""', '"unbalanced', "user's", "v2.5", "C++", "host:8080", "NEAR", "NEAR(a b, 5)",
    "kiln AND", "AND OR NOT", "NOT kiln", "kiln*", "^kiln", "content:kiln", "-kiln", "+kiln",
    "{content} : kiln", "(kiln", "kiln)", "((", "*", "^", "kiln\0glaze", "\0", "kiln' OR 1=1; --",
    "\ud800", "a\udc00b", "東京タワー", "مرحبا", "😀", "\u202ekiln", "the of and", "rank = 1",
    "kiln MATCH 'x'", "\\", "%", "k" * 100_000,
    " ".join(f"tok{i}" for i in range(20_000)), "kiln " * 20_000,
]  # fmt: skip


def test_no_query_can_raise():
    assert len(HOSTILE) >= 35
    corpus = corpus_of("red kiln", "blue glaze", "a b c")
    expected = sqlite_says(["red kiln", "blue glaze", "a b c"], HOSTILE[:-2])
    hits = run(corpus, HOSTILE)
    for query, said in enumerate(expected):
        assert hits.of(query).tolist() == [row for row, _ in said], HOSTILE[query]
    assert hits.of(len(HOSTILE) - 1).tolist() == [0]


def test_many_memories_cross_the_inner_block_sizes(monkeypatch):
    monkeypatch.setattr("comis_eval.lanes.postings._CELLS", 64)
    monkeypatch.setattr("comis_eval.lanes.postings._POSTINGS", 16)
    contents = [f"kiln w{i % 7} w{i % 11} w{i % 3}" for i in range(90)]
    texts = ["kiln w1 w2 w5", "w3 w3", "w9", "kiln"]
    corpus = corpus_of(*contents)
    for depth in (1, 10, 100):
        hits = run(corpus, texts, depth=depth)
        for query, said in enumerate(sqlite_says(contents, texts, depth)):
            assert hits.of(query).tolist() == [row for row, _ in said]
