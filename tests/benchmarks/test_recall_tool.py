"""A call of the recall tool with filters, against the same as plain SQL, in the same run.

100,000 memories in one SQLite file: SQL asks its FTS5 index for the words, joins the rows,
filters them and orders by bm25, as one would without a harness; with vectors it selects the
eligible rows and multiplies them in numpy. Both give the same memories.
"""

import json
import sqlite3
import time

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.datasets.labels import Policy, ScopeRule
from comis_eval.lanes.fts import match_tokens
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.store import Store
from comis_eval.types import Filters, Memory, Query, Tenancy, TrustLevel
from tests.builders import DAY, NOW

MEMORIES, CALLS, DIM, DEPTH = 100_000, 40, 384, 200
ME = Tenancy("t", "me")
TEXT = Config().evolve(**{"harness.lanes": ("fts",)})
TEXT_SHARE = 0.25
"""What a call may take of the time that the same query takes as plain SQL."""

SQL = """
SELECT m.row, m.id FROM words JOIN memories m ON m.row = words.rowid
WHERE words MATCH ? AND {filters} ORDER BY bm25(words), m.created_at DESC, m.key LIMIT 200
"""
FILTERS = """
  m.tenant_id = 't' AND m.scope = 'project' AND m.project_id = ? AND m.importance >= 0.3
  AND m.archived = 0 AND m.status <> 'superseded' AND m.created_at >= ?
  AND EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = ?)
"""
SINCE = "2026-01-01T00:00:00Z"
SINCE_MS = 1_767_225_600_000


class Dice:
    """Vectors by the hash of a text: the same text, the same direction."""

    name, fingerprint, dim, reportable = "dice", "2" * 64, DIM, True

    def __init__(self):
        self.pool = np.random.default_rng(1).normal(size=(4_096, DIM)).astype(np.float32)

    def embed(self, texts):
        picked = np.array([sum(text.encode()) * 31 % 4_096 for text in texts], dtype=np.int64)
        other = np.array([len(text) * 7_919 % 4_096 for text in texts], dtype=np.int64)
        return self.pool[picked] + 0.5 * self.pool[other]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The memories as a dataset and as a SQLite file."""
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]
    words = sorted({"".join(rng.choice(syllables, size=rng.integers(2, 4))) for _ in range(9_000)})
    shares = 1 / np.arange(5, 5 + len(words))
    shares /= shares.sum()
    picked = rng.choice(len(words), size=(MEMORIES, 24), p=shares)
    memories = tuple(
        Memory(
            id=f"m{n}",
            content=" ".join(words[w] for w in picked[n]),
            tenancy=ME,
            key=f"note-{n}",
            scope="project",
            project_id=f"p{n % 4}",
            created_by="me",
            tags=("red" if n % 3 else "blue", "permanent"),
            importance=0.2 + 0.1 * (n % 8),
            relevance=1.0,
            trust_level=TrustLevel.LEARNED,
            archived=n % 20 == 0,
            status="active",
            created_at=NOW - (n * 7 % 200) * DAY,
            updated_at=NOW,
        )
        for n in range(MEMORIES)
    )
    asked = tuple(
        Query(
            id=f"q{n}",
            # A question has words of every frequency: most of them rare, some in many texts.
            text=" ".join(words[w] for w in rng.choice(len(words), size=3 + n % 5, p=shares)),
            tenancy=ME,
            now=NOW,
            filters=Filters(
                tags=("red",),
                parameters={"scope": "project", "project_id": f"p{n % 4}", "since": SINCE},
            ),
        )
        for n in range(CALLS)
    )
    dataset = Dataset(
        name="many",
        memories=memories,
        queries=asked,
        judgments=Judgments.of([], n_queries=CALLS),
        policy=Policy(scope=ScopeRule.TENANT),
    )
    path = tmp_path_factory.mktemp("many") / "many.db"
    with Store.open(path) as store:
        store.add(memories)
    db = sqlite3.connect(path)
    db.execute("CREATE VIRTUAL TABLE words USING fts5(key, content, tokenize='porter unicode61')")
    db.execute("INSERT INTO words (rowid, key, content) SELECT row, key, content FROM memories")
    db.commit()
    yield dataset, db
    db.close()


def by_sql(db, query):
    """All words together; where fewer than three memories have them, some of them."""
    tokens = [f'"{token}"' for token in match_tokens(query.text)]
    values = (query.filters.parameters["project_id"], SINCE_MS, "red")
    statement = SQL.format(filters=FILTERS)
    rows = db.execute(statement, (" ".join(tokens), *values)).fetchall()
    if len(rows) < 3:
        rows = db.execute(statement, (" OR ".join(tokens), *values)).fetchall()
    return rows


def timed(queries, *calls, rounds=3):
    """Median processor time of each call, s, and what each gave.

    Calls take turns, and what other processes take does not count: all work is this one's.
    """
    taken, given = [[] for _ in calls], [[] for _ in calls]
    for turn in range(rounds):
        for query in queries:
            for call, times, answers in zip(calls, taken, given, strict=True):
                started = time.process_time()
                answer = call(query)
                times.append(time.process_time() - started)
                if not turn:
                    answers.append(answer)
    return [float(np.median(times)) for times in taken], given


def test_a_filtered_call_takes_a_quarter_of_plain_sql(benchmark, world, capsys):
    dataset, db = world
    tool = RecallTool(Retriever(dataset, cache=None), TEXT)
    started = time.perf_counter()
    tool.recall(dataset.queries[0])  # builds the index
    built = time.perf_counter() - started
    (sql, mine), (rows, pages) = timed(
        dataset.queries, lambda query: by_sql(db, query), tool.recall
    )
    benchmark(tool.recall, dataset.queries[1])
    started = time.perf_counter()
    lists = tool.paged(dataset.queries).lists
    batch = (time.perf_counter() - started) / CALLS
    assert sum(map(len, rows)) > 10 * CALLS
    for said, listed, page in zip(rows, lists, pages, strict=True):
        ids = {memory_id for _, memory_id in said}
        shown = {dataset.memories[row].id for row in listed.rows}
        assert len(ids) == len(shown)
        if len(ids) < DEPTH:  # cut lists may differ in whom they cut: words weigh otherwise
            assert ids == shown
        assert page["total"] == min(5, len(ids))
    with capsys.disabled():
        print(  # noqa: T201
            f"\ntext: SQL {1000 * sql:.2f} ms, recall {1000 * mine:.2f} ms ({mine / sql:.3f}), "
            f"in batch {1000 * batch:.2f} ms; built in {built:.1f} s"
        )
    assert mine <= TEXT_SHARE * sql, (mine, sql)


def test_with_vectors_it_beats_sql_and_numpy(world, capsys):
    dataset, db = world
    model = Dice()
    tool = RecallTool(Retriever(dataset, embedder=model, cache=None), Config())
    started = time.perf_counter()
    tool.recall(dataset.queries[0])
    built = time.perf_counter() - started
    texts = [f"{m.key} {' '.join(m.tags)} {m.content}" for m in dataset.memories]
    vectors = model.embed(texts)
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    eligible = f"SELECT m.row - 1 FROM memories m WHERE {FILTERS}"

    def plain(query):
        values = (query.filters.parameters["project_id"], SINCE_MS, "red")
        rows = np.fromiter((row for (row,) in db.execute(eligible, values)), dtype=np.int64)
        asked = model.embed([query.text])[0]
        cosines = vectors[rows] @ (asked / np.linalg.norm(asked))
        nearest = rows[np.argsort(-cosines)[:DEPTH]]
        return by_sql(db, query), nearest

    (sql, mine), (found, _) = timed(dataset.queries, plain, tool.recall)
    table = tool.table(dataset.queries).candidates
    for query, (_, nearest) in enumerate(found):
        asked = model.embed([dataset.queries[query].text])[0]
        theirs = np.sort(vectors[nearest] @ (asked / np.linalg.norm(asked)))
        lane = table.lanes["vector"]
        mine_ = np.sort(lane.scores[query][lane.ranks[query] > 0])
        assert mine_ == pytest.approx(theirs, abs=1e-5)
    with capsys.disabled():
        print(  # noqa: T201
            f"\nwith vectors: SQL and numpy {1000 * sql:.2f} ms, recall {1000 * mine:.2f} ms "
            f"({mine / sql:.3f}); built in {built:.1f} s"
        )
    assert mine <= sql, (mine, sql)


def test_the_filters_of_the_file_are_those_of_the_tool(world):
    dataset, db = world
    tool = RecallTool(
        Retriever(dataset, cache=None), Config().evolve(**{"harness.lanes": ("fts",)})
    )
    visible = tool.table(dataset.queries[:1]).views.row(0)
    values = (dataset.queries[0].filters.parameters["project_id"], SINCE_MS, "red")
    rows = db.execute(f"SELECT m.id FROM memories m WHERE {FILTERS}", values).fetchall()
    assert {row for (row,) in rows} == {dataset.memories[n].id for n in np.flatnonzero(visible)}
    assert json.loads(db.execute("SELECT tags FROM memories LIMIT 1").fetchone()[0])
