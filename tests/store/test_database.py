import sqlite3
import stat
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import LaunderingError, StoreError
from comis_eval.store import Store
from comis_eval.store.schema import APPLICATION_ID, MIGRATIONS
from comis_eval.types import Memory, MemoryType, Source, Tenancy, TrustLevel
from tests.builders import memory

SYSTEM, LEARNED, EXTERNAL = TrustLevel.SYSTEM, TrustLevel.LEARNED, TrustLevel.EXTERNAL
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
TIME = st.integers(-(2**53) + 1, 2**53 - 1)
NUMBER = st.floats(-1e9, 1e9)


@pytest.fixture
def store():
    with Store.open() as opened:
        yield opened


def full(id_, draw):
    maybe = lambda strategy: draw(st.none() | strategy)  # noqa: E731
    return Memory(
        id=id_,
        content=draw(TEXT.filter(str.strip)),
        trust_level=draw(st.sampled_from(TrustLevel)),
        created_at=draw(TIME),
        tenancy=Tenancy(draw(TEXT), draw(TEXT)),
        memory_type=draw(st.sampled_from(MemoryType)),
        source=Source(maybe(TEXT), maybe(TEXT), maybe(TEXT)),
        source_type=maybe(TEXT),
        taint_level=maybe(TEXT),
        occurred_at=maybe(TIME),
        expires_at=maybe(TIME),
        proof_count=maybe(st.integers(0, 2**53 - 1)),
        confidence=maybe(st.floats(0, 1)),
        entities=draw(TEXTS),
        tags=draw(TEXTS),
        key=maybe(TEXT),
        scope=maybe(TEXT),
        project_id=maybe(TEXT),
        created_by=maybe(TEXT),
        author_type=maybe(TEXT),
        relevance=maybe(NUMBER),
        importance=maybe(NUMBER),
        archived=maybe(st.booleans()),
        status=maybe(TEXT),
        updated_at=maybe(TIME),
        version=maybe(st.integers(1, 2**53 - 1)),
        duplicate_of=maybe(TEXT),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_what_is_written_is_read(data):
    ids = data.draw(st.lists(TEXT.filter(bool), unique=True, min_size=1, max_size=4))
    written = [full(id_, data.draw) for id_ in ids]
    with Store.open() as store:
        store.add(written)
        assert list(store.corpus().memories) == written
        assert store.get(reversed(ids)) == {m.id: m for m in reversed(written)}


def test_a_file_is_private_and_survives_closing(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        store.add([memory("a", entities=("Maya",))])
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    with Store.open(path) as store:
        store.add([memory("b", entities=("maya",))])
        assert [m.id for m in store.corpus().memories] == ["a", "b"]
        assert [entity.mentions for entity in store.entities()] == [2]


def test_a_new_file_is_ours_in_wal_with_foreign_keys(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        assert store._number("PRAGMA foreign_keys") == 1
        assert store._number("PRAGMA trusted_schema") == 0
        assert store._number("PRAGMA user_version") == len(MIGRATIONS)
        assert store._number("PRAGMA application_id") == APPLICATION_ID
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "store.db"
    Store.open(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    raw.close()
    with pytest.raises(StoreError, match=r"schema version 3, .* up to 2; upgrade comis_eval"):
        Store.open(path)


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE memories (id TEXT)")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="of another program"):
        Store.open(path)
    assert path.read_bytes() == before


def test_what_is_no_database_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be read as one" * 50)
    with pytest.raises(StoreError, match=r"notes\.txt cannot be used: file is not a database"):
        Store.open(path)
    with pytest.raises(StoreError, match="cannot be created: No such file or directory"):
        Store.open(tmp_path / "missing" / "store.db")


def test_a_second_writer_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("comis_eval.store.database.WAIT_S", 0.05)
    path = tmp_path / "store.db"
    with Store.open(path) as first, Store.open(path) as second, first._transaction("IMMEDIATE"):
        with pytest.raises(StoreError, match=r"being written by somebody else; one writer"):
            second.add([memory("b")])
        assert len(second.corpus()) == 0


def test_writers_may_take_turns(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(path) as first, Store.open(path) as second:
        first.add([memory("a", entities=("Maya",))])
        second.add([memory("b", entities=("Zoe",))])
        first.add([memory("c", entities=("zoë", "Maya"))])
        assert [(e.name, e.mentions) for e in second.entities()] == [("Maya", 2), ("Zoe", 2)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": ""}, "memory id is ''; it must be a non-empty string"),
        ({"content": " \n"}, "memory 'm': content is blank"),
        ({"trust_level": "high"}, "trustLevel is 'high'; it must be system, learned, external"),
        ({"memory_type": "odd"}, "memoryType is 'odd'; it must be working, episodic"),
        ({"created_at": None}, "createdAt is missing"),
        ({"created_at": 1.5}, r"createdAt is 1\.5; it must be an integer"),
        ({"expires_at": 2**60}, "expiresAt is 1152921504606846976; it must be an integer within"),
        ({"occurred_at": True}, "occurredAt is True"),
        ({"proof_count": -1}, "proofCount is -1; it must be >= 0"),
        ({"confidence": 1.01}, r"confidence is 1\.01; it must be in \[0, 1\]"),
        ({"confidence": -0.1}, r"confidence is -0\.1; it must be in \[0, 1\]"),
        ({"confidence": float("nan")}, "confidence is nan; it must be a finite number"),
        ({"importance": float("inf")}, "importance is inf; it must be a finite number"),
        ({"content": "half \ud83d"}, r"holds '\\ud83d', half of a surrogate pair"),
        ({"entities": ("\udc00",)}, "half of a surrogate pair"),
        ({"source_ids": ("gone",)}, "sourceIds names 'gone', which is neither in the store"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(store, fields, message):
    bad = replace(memory("m"), **fields)
    with pytest.raises(StoreError, match=message):
        store.add([memory("good", entities=("Maya",)), bad])
    assert len(store.corpus()) == 0
    assert store.entities() == ()


def test_an_id_is_taken_once(store):
    with pytest.raises(StoreError, match="memory 'a' is given twice"):
        store.add([memory("a"), memory("b"), memory("a")])
    store.add([memory("a")])
    with pytest.raises(StoreError, match="memory 'a' is in the store already"):
        store.add([memory("c", entities=("Maya",)), memory("a")])
    assert [m.id for m in store.corpus().memories] == ["a"]
    store.add([memory("d", entities=("Maya",))])
    assert [entity.mentions for entity in store.entities()] == [1]


@pytest.mark.parametrize("order", [1, -1])
def test_laundering_is_refused_whatever_the_order(store, order):
    derived = memory("d", trust_level=LEARNED, source_ids=("s", "e"))
    batch = [memory("s", trust_level=SYSTEM), memory("e", trust_level=EXTERNAL), derived]
    with pytest.raises(
        LaunderingError,
        match="memory 'd' claims trust 'learned', but its least trusted source is 'external'",
    ):
        store.add(batch[::order])
    assert len(store.corpus()) == 0
    store.add([replace(m, trust_level=EXTERNAL) if m is derived else m for m in batch[::order]])
    assert len(store.corpus()) == 3


def test_laundering_from_the_store_is_refused(store):
    store.add([memory("e", trust_level=EXTERNAL)])
    with pytest.raises(
        LaunderingError, match="'system', but its least trusted source is 'external'"
    ):
        store.add([memory("d", trust_level=SYSTEM, source_ids=("e",))])


def test_deleting_takes_links_and_embeddings_and_renumbers(store):
    store.add(
        [
            memory(id_, entities=(name,))
            for id_, name in zip("abc", ("Maya", "Zoe", "Priya"), strict=True)
        ]
    )
    store.put_embeddings("f", ["a", "b", "c"], np.eye(3, 2, dtype=np.float32))
    store.delete(["b"])
    corpus = store.corpus()
    assert [m.id for m in corpus.memories] == ["a", "c"]
    assert corpus.entities.rows.tolist() == [0, 1]
    assert corpus.entities.entities.tolist() == [0, 2]
    assert store.embeddings("f").vectors.tolist() == [[1, 0], [0, 0]]
    store.add([memory("b")])
    assert [m.id for m in store.corpus().memories] == ["a", "c", "b"]
    with pytest.raises(StoreError, match="memory 'zz' is not in the in-memory store"):
        store.delete(["a", "zz"])
    assert "a" in store.get(["a"])
    with pytest.raises(StoreError, match="memory 'zz' is not in"):
        store.get(["zz"])


def test_the_last_row_is_not_given_again(store):
    store.add([memory("a"), memory("b")])
    store.delete(["b"])
    store.add([memory("c")])
    assert store._rows().tolist() == [1, 3]


def matched(store, term):
    found = store._connection.execute(
        "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid", (term,)
    )
    return [row for (row,) in found]


def test_the_keyword_index_follows_every_change(store):
    store.add([memory("a", "red kiln"), memory("b", "red glaze"), memory("c", "kilns")])
    assert matched(store, "kiln") == [1, 3]
    store.update_content("a", "blue glaze")
    store.delete(["c"])
    assert (matched(store, "kiln"), matched(store, "glaze"), matched(store, "red")) == (
        [],
        [1, 2],
        [2],
    )
    store._connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('integrity-check')")


def test_new_content_drops_the_embedding_and_may_not_be_blank(store):
    store.add([memory("a"), memory("b")])
    store.put_embeddings("f", ["a", "b"], np.ones((2, 2), dtype=np.float32))
    store.update_content("a", "changed")
    assert store.get(["a"])["a"].content == "changed"
    assert store.embeddings("f").has.tolist() == [False, True]
    with pytest.raises(StoreError, match="memory 'a': content is blank"):
        store.update_content("a", " ")
    with pytest.raises(StoreError, match="half of a surrogate pair"):
        store.update_content("a", "\ud800")
    with pytest.raises(StoreError, match="memory 'x' is not in"):
        store.update_content("x", "text")


def test_embeddings_are_kept_by_model_to_the_bit(store):
    store.add([memory("a"), memory("b"), memory("c")])
    vectors = np.array([[0.1, -1e-30], [3e38, 0.0]], dtype=np.float32)
    store.put_embeddings("f", ["c", "a"], vectors)
    store.put_embeddings("g", ["b"], np.ones((1, 3), dtype=np.float32))
    read = store.embeddings("f")
    assert read.has.tolist() == [True, False, True]
    assert read.vectors[[2, 0]].tobytes() == vectors.tobytes()
    assert store.embeddings("g").vectors.shape == (3, 3)
    assert store.embeddings("none").vectors.shape == (3, 0)
    store.put_embeddings("f", ["a"], np.ones((1, 2), dtype=np.float32))
    assert store.embeddings("f").vectors[0].tolist() == [1, 1]


def test_embeddings_that_do_not_fit_are_refused(store):
    store.add([memory("a"), memory("b")])
    with pytest.raises(StoreError, match=r"must have shape \(1, dim\).*got \(2, 2\)"):
        store.put_embeddings("f", ["a"], np.ones((2, 2), dtype=np.float32))
    with pytest.raises(StoreError, match="embedding of memory 'b' holds NaN"):
        store.put_embeddings("f", ["a", "b"], np.array([[0], [np.nan]], dtype=np.float32))
    store.put_embeddings("f", ["a"], np.ones((1, 2), dtype=np.float32))
    with pytest.raises(StoreError, match=r"memory 'b' has 3 dimensions, those stored .* have 2"):
        store.put_embeddings("f", ["b"], np.ones((1, 3), dtype=np.float32))
    with pytest.raises(StoreError, match="memory 'zz' is not in"):
        store.put_embeddings("f", ["b", "zz"], np.ones((2, 2), dtype=np.float32))
    assert store.embeddings("f").has.tolist() == [True, False]


def test_an_empty_store_is_an_empty_corpus(store):
    store.add([])
    corpus = store.corpus()
    assert (len(corpus), corpus.tenancies, corpus.entities.names) == (0, (), ())
    assert store.embeddings("f").vectors.shape == (0, 0)


def test_a_text_with_nul_is_kept_and_indexed_whole(store):
    store.add([memory("a\0b", "before\0after")])
    assert store.get(["a\0b"])["a\0b"].content == "before\0after"
    assert matched(store, "after") == [1]
