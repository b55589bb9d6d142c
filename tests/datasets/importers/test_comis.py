"""From a Comis memory.db to a dataset folder: what is kept, refused and left untouched."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comis_eval.datasets import load_dataset, validate
from comis_eval.datasets.importers import ComisOptions, comis_lines, foreign, import_comis
from comis_eval.datasets.importers.comis_rows import BLOCK
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.errors import DatasetError
from comis_eval.models.given import load_given
from comis_eval.types import MemoryType, Source, Tenancy, TrustLevel
from tests.datasets.importers.databases import (
    ENTITIES,
    NEW,
    OLD,
    T0,
    database,
    row,
    with_vectors,
)

NOT_NUMBERS = np.full(32, np.nan, "<f4").tobytes().hex()
COLUMNS = sorted(row("x").keys() | {"occurred_at", "proof_count", "source_ids", "confidence"})
LENIENT = ComisOptions(max_bad=1)


def taken(path, tmp_path, options=LENIENT):
    """Import, and return the dataset and the report."""
    report = import_comis(path, tmp_path / "out", options)
    assert not validate(tmp_path / "out").faults
    return load_dataset(tmp_path / "out"), report


def refusals(report):
    return {note.where: note.what for note in report.notes if "malformed" in note.done}


def test_every_column_finds_its_place(tmp_path):
    values = {
        "tenant_id": "acme", "agent_id": "bot", "content": 'Ada "likes" tea\n\\ ☕',
        "trust_level": "system", "memory_type": "episodic", "source_who": "ada",
        "source_channel": "telegram", "source_session_key": "s:1", "tags": '["tea", "drink"]',
        "updated_at": T0 + 1, "occurred_at": T0 - 5, "expires_at": T0 + 99, "proof_count": 3,
        "confidence": 0.1 + 0.2,
    }  # fmt: skip
    entities = ENTITIES + (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', 'Ada'), ('e2', 'Tea');"
        "INSERT INTO memory_entity_links VALUES ('m1', 'e1'), ('m1', 'e2');"
    )
    rows = [row("m1", **values), row("m2", source_ids='["m1"]', trust_level="learned")]
    dataset, report = taken(database(tmp_path / "a.db", rows, more=entities), tmp_path)
    first, second = dataset.memories
    assert first.content == values["content"]
    assert (first.trust_level, first.memory_type) == (TrustLevel.SYSTEM, MemoryType.EPISODIC)
    assert first.tenancy == Tenancy("acme", "bot")
    assert first.source == Source("ada", "telegram", "s:1")
    assert (first.tags, first.entities) == (("tea", "drink"), ("Ada", "Tea"))
    assert (first.created_at, first.updated_at, first.occurred_at) == (T0, T0 + 1, T0 - 5)
    assert (first.expires_at, first.proof_count, first.confidence) == (T0 + 99, 3, 0.1 + 0.2)
    assert second.source_ids == ("m1",)
    assert report.counts["memories"] == (2, 2)
    assert not report.notes
    assert not dataset.labelled
    assert not dataset.queries
    assert dataset.query("x").tenancy in {Tenancy("acme", "bot"), Tenancy()}


def test_an_old_schema_lacks_columns_and_tables(tmp_path):
    dataset, _ = taken(database(tmp_path / "a.db", [row("m1")], columns=OLD), tmp_path)
    assert dataset.memories[0].proof_count is None


def test_the_oldest_schema_has_what_is_required(tmp_path):
    columns = "id TEXT, content TEXT, trust_level TEXT, created_at INTEGER"
    rows = [{"id": "m1", "content": "x", "trust_level": "system", "created_at": T0}]
    dataset, _ = taken(database(tmp_path / "a.db", rows, columns=columns), tmp_path)
    assert dataset.memories[0].tenancy == Tenancy()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"created_at": "yesterday"}, "createdAt is 'yesterday' (text)"),
        ({"created_at": 1.5}, "createdAt is 1.5"),
        ({"created_at": None}, "createdAt is missing"),
        ({"created_at": -1}, "created_at is -1; it must lie in 0"),
        ({"created_at": 2**60}, "2^53"),
        ({"content": b"\x00\x01"}, "content is a blob of 2 bytes"),
        ({"content": None}, "content is missing"),
        ({"content": " \n\u00a0"}, "content is blank"),
        ({"content": 7}, "content is 7"),
        ({"trust_level": "admin"}, "trustLevel is 'admin'; allowed: system, learned, external"),
        ({"trust_level": "SYSTEM"}, "trustLevel is 'SYSTEM'"),
        ({"trust_level": None}, "trustLevel is missing"),
        ({"memory_type": "dream"}, "memoryType is 'dream'"),
        ({"memory_type": ""}, "memoryType is ''"),
        ({"id": "a b"}, "holds no white space"),
        ({"id": None}, "id is missing"),
        ({"id": ""}, "id is empty"),
        ({"tenant_id": "a\tb"}, "tenantId is 'a\\tb'"),
        ({"proof_count": -1}, "proof_count is -1"),
        ({"confidence": float("inf")}, "confidence is inf"),
        ({"confidence": -0.1}, "confidence is -0.1"),
        ({"tags": "{}"}, "tags is {}"),
        ({"tags": "[1]"}, "tags[0] is 1"),
        ({"tags": "not json"}, "tags is 'not json'"),
        ({"tags": '["\\ud800"]'}, "half of a surrogate pair"),
        ({"tags": b"[]"}, "tags is a blob"),
        ({"source_ids": '"m0"'}, "sourceIds is 'm0'"),
        ({"source_ids": '["bad"]', "id": "bad"}, "names the memory itself"),
        ({"source_who": b"\xff"}, "source_who is a blob"),
    ],
)
def test_a_malformed_row_is_listed_with_its_place(tmp_path, changes, why):
    rows = [row("m0"), row(memory_id="bad") | changes, row("m2")]
    dataset, report = taken(database(tmp_path / "a.db", rows), tmp_path)
    assert [memory.id for memory in dataset.memories] == ["m0", "m2"]
    assert report.counts["memories"] == (3, 2)
    (place, told), *others = refusals(report).items()
    assert place == "memories rowid 2"
    assert why in told
    assert not others


@pytest.mark.parametrize("column", ["content", "id", "tags", "source_who", "trust_level"])
def test_text_that_is_not_utf8_is_listed(tmp_path, column):
    path = database(tmp_path / "a.db", [row("m1"), row("m2")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            f"UPDATE memories SET {column} = CAST(x'61eda08062' AS TEXT) WHERE id = 'm2'"
        )
        connection.commit()
    dataset, report = taken(path, tmp_path)
    assert [memory.id for memory in dataset.memories] == ["m1"]
    assert "not UTF-8" in refusals(report)["memories rowid 2"]


def test_a_value_too_long_for_a_line_is_listed_and_never_held_whole(tmp_path):
    rows = [row("m1"), row("m2", content="x" * 9_000_000), row("m3", content="é" * 3_000_000)]
    path = database(tmp_path / "a.db", rows)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE memories SET history = zeroblob(40000000) WHERE id = 'm1'")
        connection.execute(
            "INSERT INTO memories (id, content, trust_level, created_at) "
            "VALUES ('m4', CAST(zeroblob(50000000) AS TEXT), 'learned', 1)"
        )
        connection.commit()
    dataset, report = taken(path, tmp_path)
    assert [memory.id for memory in dataset.memories] == ["m1", "m3"]
    assert "longer than" in refusals(report)["memories rowid 2"]
    assert "cannot be read whole" in refusals(report)["memories rowid 4"]


def test_rows_keep_their_order_whether_clean_or_examined(tmp_path):
    rows = [
        row(
            f"m{i}",
            confidence=0.1 + 0.2 if i % 7 == 0 else None,
            content="\u00a0x" * (i % 5 == 0) or "y",
        )
        for i in range(BLOCK + 500)
    ]
    dataset, _ = taken(database(tmp_path / "a.db", rows), tmp_path)
    assert [memory.id for memory in dataset.memories] == [r["id"] for r in rows]


def test_row_numbers_with_gaps_of_any_width(tmp_path):
    more = "".join(
        f"UPDATE memories SET rowid = {number} WHERE id = '{name}';"
        for name, number in (("m1", -(2**62)), ("m2", 2**63 - 1))
    )
    path = database(tmp_path / "a.db", [row("m1"), row("m2"), row("m3")], more=more)
    dataset, _ = taken(path, tmp_path)
    assert [memory.id for memory in dataset.memories] == ["m1", "m3", "m2"]


def test_duplicate_ids_keep_the_first(tmp_path):
    columns = NEW.replace("id TEXT PRIMARY KEY", "id TEXT")
    rows = [row("m1", content="first"), row("m2"), row("m1", content="second")]
    dataset, report = taken(database(tmp_path / "a.db", rows, columns=columns), tmp_path)
    assert [memory.content for memory in dataset.memories] == ["first", "memory m2"]
    assert refusals(report) == {"memories rowid 3": "id already stands in rowid 1"}


def test_laundered_trust_is_malformed_at_any_remove(tmp_path):
    rows = [
        row("web", trust_level="external"),
        row("first", source_ids='["web"]'),
        row("second", source_ids='["first"]', trust_level="learned"),
        row("honest", source_ids='["web"]', trust_level="external"),
        row("free", source_ids='["honest2"]'),
        row("honest2"),
    ]
    dataset, report = taken(database(tmp_path / "a.db", rows), tmp_path)
    assert [memory.id for memory in dataset.memories] == ["web", "honest", "free", "honest2"]
    assert set(refusals(report)) == {"memories rowid 2", "memories rowid 3"}
    assert "launders trust: learned but derived from 'web'" in refusals(report)["memories rowid 2"]


def test_a_level_that_is_none_vouches_for_nothing(tmp_path):
    rows = [row("odd", trust_level="root"), row("child", source_ids='["odd"]')]
    rows += [row("other")]
    dataset, report = taken(database(tmp_path / "a.db", rows), tmp_path)
    assert [memory.id for memory in dataset.memories] == ["other"]
    assert "launders" in refusals(report)["memories rowid 2"]


def test_sources_that_are_gone_or_malformed_are_left_out_and_counted(tmp_path):
    rows = [
        row("bad", content=b"x"),
        row("m1", source_ids='["gone", "m2", "bad"]'),
        row("m2"),
    ]
    dataset, report = taken(database(tmp_path / "a.db", rows), tmp_path)
    assert dataset.memories[0].source_ids == ("m2",)
    assert any("2 times" in note.what for note in report.notes)


def test_links_to_entities_that_are_gone_are_counted(tmp_path):
    more = ENTITIES + (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', 'Ada'), ('e2', ' '),"
        " ('e3', x'ff');"
        "INSERT INTO memory_entity_links VALUES ('m1', 'e1'), ('m1', 'no'), ('m1', 'e2'),"
        " ('m1', 'e3');"
    )
    dataset, report = taken(database(tmp_path / "a.db", [row("m1")], more=more), tmp_path)
    assert dataset.memories[0].entities == ("Ada",)
    assert "3 links name an entity that is gone" in str(report.notes[0])


def test_only_the_tenant_and_agent_asked_for(tmp_path):
    rows = [
        row("m1", tenant_id="a", agent_id="x"),
        row("m2", tenant_id="a", agent_id="y", content=b"another's malformed row"),
        row("m3", tenant_id="b", agent_id="x"),
        row("m4", tenant_id="A", agent_id="x"),
    ]
    columns = NEW.replace("tenant_id TEXT", "tenant_id TEXT COLLATE NOCASE")
    path = database(tmp_path / "a.db", rows, columns=columns)
    dataset, report = taken(path, tmp_path, ComisOptions(tenant="a", agent="x"))
    assert [memory.id for memory in dataset.memories] == ["m1"]
    assert report.counts["memories"] == (4, 1)
    assert "3 rows are not of tenant a and agent x; left out, as asked" in str(report.notes[0])


def test_more_bad_rows_than_allowed_stop_the_import_and_leave_nothing(tmp_path):
    rows = [row(f"m{i}", content=b"x" if i < 2 else "ok") for i in range(100)]
    path = database(tmp_path / "a.db", rows)
    with pytest.raises(DatasetError, match=r"2 of 100 records are malformed.*--max-bad") as told:
        import_comis(path, tmp_path / "out")
    assert "memories rowid 1: content is a blob" in str(told.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.db"]
    report = import_comis(path, tmp_path / "out", ComisOptions(max_bad=0.02))
    assert report.counts["memories"] == (100, 98)


def test_one_in_a_hundred_is_allowed(tmp_path):
    rows = [row(f"m{i}", content=b"x" if i < 1 else "ok") for i in range(100)]
    assert import_comis(database(tmp_path / "a.db", rows), tmp_path / "out").dropped_share == 0.01


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda p: p.write_bytes(b""), "is empty"),
        (lambda p: p.write_bytes(b"hello, world, hello"), "no SQLite database"),
        (lambda p: p.mkdir(), "no regular file"),
        (os.mkfifo, "no regular file"),
        (lambda p: p.write_bytes(b"SQLite format 3\0" + bytes(100)), "cannot read it"),
        (lambda p: sqlite3.connect(p).executescript("CREATE TABLE t (x)").close(), "no table"),
        (
            lambda p: database(p, [row("m1")], more="ALTER TABLE memories RENAME TO t;"
                               "CREATE VIEW memories AS SELECT * FROM t"),
            "memories is a view, which is never read",
        ),
        (
            lambda p: sqlite3.connect(p).executescript(
                "CREATE VIRTUAL TABLE memories USING fts5 (id, content, trust_level, created_at)"
            ).close(),
            "memories is a virtual table",
        ),
        (
            lambda p: database(p, [], columns="id TEXT, content TEXT"),
            "has no column trust_level, created_at",
        ),
        (
            lambda p: database(p, [], columns=OLD + ") WITHOUT ROWID --"),
            "WITHOUT ROWID",
        ),
        (
            lambda p: database(
                p, [], columns="id TEXT, trust_level, created_at, content AS (zeroblob(1e9))"
            ),
            "has no column content",
        ),
        (lambda p: database(p, []), "holds no memory"),
    ],
)  # fmt: skip
def test_a_source_that_cannot_be_used_is_one_error_and_no_folder(tmp_path, make, why):
    path = tmp_path / "memory.db"
    make(path)
    with pytest.raises(DatasetError, match=why):
        import_comis(path, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["memory.db"]


def test_a_damaged_file_is_one_error(tmp_path):
    path = database(tmp_path / "a.db", [row(f"m{i}", content="x" * 500) for i in range(2000)])
    raw = bytearray(path.read_bytes())
    raw[4096 * 20 : 4096 * 60] = b"\xa5" * (4096 * 40)
    path.write_bytes(raw)
    with pytest.raises(DatasetError, match="SQLite cannot read it"):
        import_comis(path, tmp_path / "out")
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(DatasetError):
        import_comis(path, tmp_path / "out")


@pytest.mark.parametrize("apart", ["/**/", " -- x\n", "/* TABLE */\t"])
def test_a_virtual_table_is_known_however_its_declaration_is_written(tmp_path, apart):
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE VIRTUAL TABLE memories USING fts5 (id, content, trust_level, created_at);"
            "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage = 2, "
            f"sql = replace(sql, 'CREATE ', 'CREATE{apart}') WHERE name = 'memories'"
        )
    with pytest.raises(DatasetError, match="memories is a virtual table"):
        import_comis(path, tmp_path / "out")


def test_a_declaration_of_one_word_is_a_table(tmp_path):
    path = database(tmp_path / "a.db", [row("m1")], columns=OLD.replace(" PRIMARY KEY", ""))
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(sql, ' ', '/**/')"
        )
    dataset, _ = taken(path, tmp_path)
    assert [memory.id for memory in dataset.memories] == ["m1"]


def test_triggers_and_views_of_the_source_do_not_run(tmp_path):
    more = (
        "CREATE TABLE log (x); CREATE VIEW memory_entities AS SELECT 'e' AS id, 'x' AS "
        "canonical_name; CREATE TABLE memory_entity_links (memory_id, entity_id);"
        "CREATE TRIGGER t AFTER INSERT ON memories BEGIN INSERT INTO log VALUES (1); END;"
    )
    dataset, _ = taken(database(tmp_path / "a.db", [row("m1")], more=more), tmp_path)
    assert dataset.memories[0].entities == ()


def test_the_source_is_unchanged_and_a_link_to_it_is_followed(tmp_path):
    path = database(tmp_path / "odd ?#%name.db", [row("m1")])
    before = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
    (tmp_path / "link.db").symlink_to(path)
    taken(tmp_path / "link.db", tmp_path)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_the_copy_is_one_moment_while_another_connection_writes(tmp_path, mode):
    path = database(tmp_path / "a.db", [row(f"m{i}", content="v0") for i in range(3000)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
    stop = threading.Event()

    def write():
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            for version in range(1, 10_000):
                if stop.is_set():
                    return
                connection.execute("UPDATE memories SET content = ?", [f"v{version}"])
                connection.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        dataset, report = taken(path, tmp_path)
    finally:
        stop.set()
        writer.join()
    assert report.counts["memories"] == (3000, 3000)
    assert len({memory.content for memory in dataset.memories}) == 1


def test_a_database_that_stays_locked_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "BUSY_SECONDS", 0.1)
    path = database(tmp_path / "a.db", [row("m1")])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatasetError, match=r"locked.*another process held it"):
            import_comis(path, tmp_path / "out")
    taken(path, tmp_path)


def test_a_write_that_was_cut_off_is_not_repaired_in_the_source(tmp_path):
    path = database(tmp_path / "a.db", [row(f"m{i}", content="x" * 900) for i in range(500)])
    program = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size=2'); c.execute('BEGIN');"
        "c.execute('UPDATE memories SET content = content || 1'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert path.with_name("a.db-journal").stat().st_size
    before = path.read_bytes()
    with pytest.raises(DatasetError, match="SQLite cannot read it"):
        import_comis(path, tmp_path / "out")
    assert path.read_bytes() == before


def test_vectors_that_sqlite_vec_wrote(tmp_path):
    rows = [row(f"m{i}") for i in range(1, 5)]
    dataset, report = taken(with_vectors(database(tmp_path / "a.db", rows)), tmp_path)
    vectors = load_given(tmp_path / "out")
    found = dict(zip(vectors.ids, vectors.matrix.tolist(), strict=True))
    assert found == {"m1": [1, 0, 0, 0.5], "m3": [0, 0, 1, 0], "m4": [0.25, 0.5, 0.75, -1]}
    assert report.counts["embeddings"] == (4, 3)
    assert set(dataset.embeddings) == {"embeddings.npy", "embeddings.ids", "embeddings.yaml"}
    told = " ".join(map(str, report.notes))
    assert "1 vectors are of memories not in the dataset" in told
    assert "--no-embeddings" in told


def test_vectors_of_nobody_else(tmp_path):
    rows = [row("m1"), row("m3", agent_id="other"), row("m4", content=b"malformed")]
    path = with_vectors(database(tmp_path / "a.db", rows))
    _, report = taken(path, tmp_path, ComisOptions(agent="default", max_bad=1))
    assert load_given(tmp_path / "out").ids == ("m1",)
    assert report.counts["embeddings"] == (4, 1)


def test_vectors_left_out_when_asked(tmp_path):
    path = with_vectors(database(tmp_path / "a.db", [row("m1")]))
    _, report = taken(path, tmp_path, ComisOptions(embeddings=False))
    assert load_given(tmp_path / "out") is None
    assert "embeddings" not in report.counts


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE vec_memories_vector_chunks00 SET vectors = x'00'", "vectors are damaged"),
        ("UPDATE vec_memories_chunks SET validity = x'00'", "vectors are damaged"),
        ("UPDATE vec_memories_rowids SET chunk_offset = 10000000000", "vectors are damaged"),
        ("UPDATE vec_memories_rowids SET chunk_id = 'x'", "vectors are damaged"),
        (
            f"UPDATE vec_memories_vector_chunks00 SET vectors = x'{NOT_NUMBERS}'",
            "vectors are damaged",
        ),
        ("DROP TABLE vec_memories_chunks", "unknown layout"),
    ],
)  # fmt: skip
def test_damaged_vectors_are_told_and_left_out(tmp_path, sql, told):
    path = with_vectors(database(tmp_path / "a.db", [row("m1")]))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.commit()
    _, report = taken(path, tmp_path)
    assert load_given(tmp_path / "out") is None
    assert told in " ".join(map(str, report.notes))


def test_used_and_ignored_become_usefulness_and_nothing_else(tmp_path):
    more = (
        "CREATE TABLE memory_feedback (memory_id TEXT, used_count INTEGER, ignored_count INTEGER);"
        "INSERT INTO memory_feedback VALUES ('m1', 3, 1), ('gone', 1, 0), ('m2', -1, 0),"
        " ('m3', 0, 0);"
    )
    rows = [row("m1"), row("m2"), row("m3")]
    dataset, report = taken(database(tmp_path / "a.db", rows, more=more), tmp_path)
    assert dataset.usefulness == {"m1": (3, 1)}
    assert len(dataset.judgments) == 0
    assert report.counts["usefulness"] == (3, 1)
    assert "whole numbers >= 0" in refusals(report)["memory_feedback rowid 3"]


def test_redaction_reaches_every_text_and_joins_still_hold(tmp_path):
    more = ENTITIES + (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', 'ada@example.org');"
        "INSERT INTO memory_entity_links VALUES ('ada@example.org', 'e1');"
    )
    rows = [
        row("ada@example.org", content="mail ada@example.org", tags='["ada@example.org"]',
            source_who="ada@example.org", source_session_key="tg:ada@example.org"),
        row("m2", source_ids='["ada@example.org"]', tenant_id="ada@example.org"),
    ]  # fmt: skip
    path = database(tmp_path / "a.db", rows, more=more)
    dataset, report = taken(path, tmp_path, ComisOptions(redactor=Redactor(b"k" * 32)))
    for file in (tmp_path / "out").iterdir():
        assert b"example.org" not in file.read_bytes()
    first, second = dataset.memories
    mark = Redactor(b"k" * 32).placeholder("email", "ada@example.org")
    assert first.content == f"mail {mark}"
    assert (first.id, first.entities, first.tags) == (mark, (mark,), (mark,))
    assert second.source_ids == (mark,)
    assert any("secrets" in note.what for note in report.notes)


def test_several_processes_read_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(comis_lines, "WORKERS_FROM", 1)
    rows = [row(f"m{i}", content="x" if i % 9 else b"bad") for i in range(2500)]
    path = database(tmp_path / "a.db", rows)
    one = import_comis(path, tmp_path / "one", ComisOptions(max_bad=1))
    two = import_comis(path, tmp_path / "two", ComisOptions(max_bad=1, workers=2))
    assert (one.counts, one.notes) == (two.counts, two.notes)
    same = [(tmp_path / name / "memories.jsonl").read_bytes() for name in ("one", "two")]
    assert same[0] == same[1]


ODD = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.sampled_from(["[]", '["a"]', '["m0"]', "[1]", "system", "external", "working", "\0", "~x"]),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.lists(
        st.dictionaries(
            st.sampled_from(COLUMNS),
            ODD, max_size=4,
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_whatever_stands_in_a_row_the_folder_is_valid_and_every_row_accounted_for(
    tmp_path_factory, changes
):
    folder = tmp_path_factory.mktemp("odd")
    columns = NEW.replace("id TEXT PRIMARY KEY", "id").replace(" TEXT", "").replace(" INTEGER", "")
    columns = columns.replace(" REAL", "")  # or SQLite makes numbers of texts on their way in
    rows = [row("m0"), *(row(f"n{i}") | change for i, change in enumerate(changes))]
    rows = [
        {
            k: v.encode("utf-8", "surrogatepass") if isinstance(v, str) and not _utf8(v) else v
            for k, v in r.items()
        }
        for r in rows
    ]
    dataset, report = taken(database(folder / "a.db", rows, columns=columns), folder)
    assert report.counts["memories"] == (len(rows), len(dataset.memories))
    assert len(refusals(report)) == len(rows) - len(dataset.memories)
    by_id = {r["id"]: r for r in reversed(rows)}  # of a repeated id the first is kept
    for memory in dataset.memories:
        assert memory.content == by_id[memory.id]["content"]
        assert memory.created_at == by_id[memory.id]["created_at"]
        assert memory.confidence == by_id[memory.id].get("confidence")


def _utf8(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_lines_are_json_objects_of_known_keys(tmp_path):
    taken(database(tmp_path / "a.db", [row("m1", content="a\tb\x01c")]), tmp_path)
    (line,) = (tmp_path / "out" / "memories.jsonl").read_text().splitlines()
    assert json.loads(line)["content"] == "a\tb\x01c"
