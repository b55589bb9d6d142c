"""Bulk loading, against bare SQLite statements for the same rows in the same run."""

import sqlite3
import time

import numpy as np
import pytest

from comis_eval.store import Store, records
from tests.builders import memory

MEMORIES, MENTIONS = 100_000, 2
TIMES_BARE = 5
"""How many times the bare inserts a load may cost: about 2 with few names, 3 with many."""


@pytest.fixture(scope="module", params=[2_000, 20_000], ids="names={}".format)
def batch(request):
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]
    word = lambda: "".join(rng.choice(syllables, size=rng.integers(2, 4)))  # noqa: E731
    words = [word() for _ in range(20_000)]
    names = [f"{word()} {word()}".title() for _ in range(request.param)]
    contents = rng.choice(words, size=(MEMORIES, 14))
    mentions = rng.integers(0, len(names), size=(MEMORIES, MENTIONS))
    return [
        memory(f"m{i}", " ".join(contents[i]), entities=tuple(names[n] for n in mentions[i]))
        for i in range(MEMORIES)
    ]


def bare(path, batch):
    """Insert the rows and index their texts without any rule, link or resolution."""
    db = sqlite3.connect(path)
    columns = ", ".join(records.COLUMNS)
    db.execute(f"CREATE TABLE t (row INTEGER PRIMARY KEY, {columns})")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(content, tokenize='porter unicode61')")
    started = time.perf_counter()
    marks = ", ".join("?" * len(records.COLUMNS))
    db.executemany(f"INSERT INTO t ({columns}) VALUES ({marks})", map(records.to_row, batch))
    db.execute("INSERT INTO f (rowid, content) SELECT row, content FROM t")
    db.commit()
    taken = time.perf_counter() - started
    db.close()
    return taken


def test_a_bulk_load_costs_a_few_times_bare_inserts(benchmark, batch, tmp_path):
    floor = bare(tmp_path / "bare.db", batch)
    stores = iter(range(9))

    def load():
        with Store.open(tmp_path / f"{next(stores)}.db") as store:
            started = time.perf_counter()
            store.add(batch)
            return time.perf_counter() - started, store._number("SELECT count(*) FROM entity_links")

    taken, links = benchmark.pedantic(load, rounds=1)
    assert links > 0.99 * MEMORIES * MENTIONS
    assert taken <= TIMES_BARE * floor, (taken, floor)
