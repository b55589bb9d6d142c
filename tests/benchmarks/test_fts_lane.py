"""The keyword lane against one SQLite MATCH a query, in the same run."""

import sqlite3
import time

import numpy as np
import pytest

from comis_eval.lanes.fts import FtsIndex, match_query, search
from tests.lanes.build import batch_of, corpus_of

MEMORIES, QUERIES, DEPTH = 20_000, 1_000, 100
TIMES_FASTER = 8


@pytest.fixture(scope="module")
def texts():
    """Memories and queries over a vocabulary with the frequencies of a natural language."""
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]
    words = list({"".join(rng.choice(syllables, size=rng.integers(1, 4))) for _ in range(30_000)})
    words.sort()
    shares = 1 / np.arange(5, 5 + len(words))
    shares /= shares.sum()
    made = lambda low, high: " ".join(rng.choice(words, size=rng.integers(low, high), p=shares))  # noqa: E731
    return [made(6, 30) for _ in range(MEMORIES)], [made(3, 12) for _ in range(QUERIES)]


def test_the_lane_beats_one_match_a_query(benchmark, texts):
    contents, asked = texts
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(content, tokenize='porter unicode61')")
    db.executemany("INSERT INTO t (rowid, content) VALUES (?, ?)", enumerate(contents))
    sql = "SELECT rowid, -bm25(t) FROM t WHERE t MATCH ? ORDER BY rank, rowid LIMIT ?"
    matches = [match_query(text) for text in asked]
    started = time.perf_counter()
    said = [db.execute(sql, (match, DEPTH)).fetchall() if match else [] for match in matches]
    one_by_one = time.perf_counter() - started
    db.close()

    corpus = corpus_of(*contents)
    index, batch = FtsIndex(corpus), batch_of(corpus, asked)
    mode = {"depth": DEPTH, "statistics": "scope", "scope_filter": "in_lane"}
    started = time.perf_counter()
    hits = search(index, batch, **mode)
    at_once = time.perf_counter() - started
    benchmark(search, index, batch, **mode)

    assert hits.rows.tolist() == [row for line in said for row, _ in line]
    assert hits.scores.tolist() == [score for line in said for _, score in line]
    assert hits.lengths.tolist() == list(map(len, said))
    assert one_by_one >= TIMES_FASTER * at_once, (one_by_one, at_once)
