"""Rows read a block at a time are the rows read one by one, whatever stands in them."""

import json
import multiprocessing
import os
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comis_eval.datasets.importers import ComisOptions, comis_lines, comis_links, import_comis
from comis_eval.datasets.importers.comis_rows import BLOCK, Reader
from comis_eval.errors import DatasetError
from tests.datasets.importers.databases import ENTITIES, NEW, T0, database, row

LENIENT = ComisOptions(max_bad=1)


def imported(path, folder, options=LENIENT):
    """Import, and return the report and the objects of the lines, without what is empty."""
    report = import_comis(path, folder, options)
    lines = (folder / "memories.jsonl").read_bytes().decode().splitlines()
    return report, [_known(json.loads(line)) for line in lines]


def _known(value):
    if not isinstance(value, dict):
        return value
    known = {key: _known(member) for key, member in value.items()}
    return {key: member for key, member in known.items() if member not in (None, {}, [])}


VALUES = {
    "id": ["~x", "é", "a b", 'q"\\', "\0", "m\x01", "", 7, b"m", None],
    "content": ["", " ", "\u00a0x", "}\n{", '"\\\t', "\x7f", "é☕", "a\0b", "~", 5, b"x", None],
    "tenant_id": ["default", "ü", "a b", "", 7, None],
    "trust_level": ["system", "external", "SYSTEM", 0, None],
    "memory_type": ["working", "", None],
    "source_who": ["", " ", "ada", 5, b"x"],
    "source_channel": ["", "telegram", 5],
    "source_session_key": ["s:1", "\t"],
    "created_at": [T0 + 1, 1.5, -1, 2**60, "x", None],
    "updated_at": [T0, -1, 1.5],
    "confidence": [0.5, 0.1 + 0.2, 1, 2, "x"],
    "proof_count": [3, -1],
    "tags": ["", "[]", " []", '["a"]', '["a",\n"b"]', "[1]", '["é"]', "x", "{}", 5, b"[]", None],
    "source_ids": ["", '["n0"]', '["n1", "gone"]', " []", "[1]", "x", None],
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}
    ),
    min_size=1,
    max_size=5,
)
LINKS = st.lists(
    st.tuples(st.sampled_from(["n0", "n1", "é", "gone"]), st.sampled_from(["e1", "e2", "e3", "no"]))
)
TYPED = [NEW, NEW.replace("id TEXT PRIMARY KEY", "id").replace(" TEXT", "").replace(" INTEGER", "")]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=ROWS, links=LINKS, columns=st.sampled_from(TYPED), tenant=st.sampled_from([None, "ü"])
)
def test_a_block_at_once_and_row_by_row_are_the_same(
    tmp_path_factory, monkeypatch, changes, links, columns, tenant
):
    folder = tmp_path_factory.mktemp("rows")
    entities = (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', 'Ada \"☕'), ('e2', 'Tea'),"
        " ('e3', CAST(x'ff' AS TEXT));"
    )
    named = "".join(
        f"INSERT INTO memory_entity_links VALUES ('{memory}', '{entity}');"
        for memory, entity in sorted(set(links))
    )
    rows = [row(f"n{number}") | change for number, change in enumerate(changes)]
    try:
        path = database(folder / "a.db", rows, columns=columns, more=ENTITIES + entities + named)
    except sqlite3.IntegrityError:  # two rows drew the same id
        return
    options = ComisOptions(max_bad=1, tenant=tenant)
    seen = []
    for name, at_once in (("one", Reader._read_at_once), ("two", lambda *_: None)):
        monkeypatch.setattr(Reader, "_read_at_once", at_once)
        try:
            seen.append(imported(path, folder / name, options))
        except DatasetError as error:
            seen.append(str(error))
    monkeypatch.undo()
    if isinstance(seen[0], str):
        assert seen[0] == seen[1]
        return
    assert seen[0][1] == seen[1][1]
    assert seen[0][0].notes == seen[1][0].notes
    assert seen[0][0].counts == seen[1][0].counts


def test_entities_and_tags_stay_with_their_memory_among_rows_that_are_examined(tmp_path):
    rows = [
        row(
            f"ü{number}" if number % 11 == 0 else f"m{number}",
            content=b"bad" if number % 7 == 3 else "\u00a0odd" if number % 5 == 0 else "plain",
            tags="[1]" if number % 13 == 6 else f'["t{number}"]',
        )
        for number in range(BLOCK + 50)
    ]
    more = ENTITIES + "".join(
        f"INSERT INTO memory_entities (id, canonical_name) VALUES ('e{number}', 'N{number}');"
        f"INSERT INTO memory_entity_links VALUES ('{r['id']}', 'e{number}');"
        for number, r in enumerate(rows)
    )
    _, memories = imported(database(tmp_path / "a.db", rows, more=more), tmp_path / "out")
    numbers = [int(memory["id"][1:]) for memory in memories]
    assert numbers == [n for n in range(len(rows)) if n % 7 != 3 and n % 13 != 6]
    assert [m["tags"] for m in memories] == [[f"t{number}"] for number in numbers]
    assert [m["entities"] for m in memories] == [[f"N{number}"] for number in numbers]


def test_more_links_than_are_held_are_read_a_block_at_a_time(tmp_path, monkeypatch):
    more = ENTITIES + (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', 'Ada'), ('e2', 'Tea');"
        "INSERT INTO memory_entity_links VALUES ('m1', 'e2'), ('m1', 'e1'), ('m1', 'no'),"
        " ('m2', 'e1'), ('gone', 'e1');"
    )
    path = database(tmp_path / "a.db", [row("m1"), row("m2"), row("m3")], more=more)
    held = imported(path, tmp_path / "held")
    monkeypatch.setattr(comis_links, "MAX_HELD", 3)
    assert imported(path, tmp_path / "out") == (
        held[0].__class__(held[0].counts, held[0].notes, "out"), held[1]
    )  # fmt: skip
    assert [memory.get("entities") for memory in held[1]] == [["Ada", "Tea"], ["Ada"], None]
    assert "1 links name an entity that is gone" in str(held[0].notes[0])


def test_an_entity_whose_name_is_not_utf8_makes_its_memory_malformed(tmp_path):
    more = ENTITIES + (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', CAST(x'ff' AS TEXT));"
        "INSERT INTO memory_entity_links VALUES ('m2', 'e1');"
    )
    path = database(tmp_path / "a.db", [row("m1"), row("m2")], more=more)
    report, memories = imported(path, tmp_path / "out")
    assert [memory["id"] for memory in memories] == ["m1"]
    assert "entities hold text that is not UTF-8" in str(report.notes[0])


@pytest.mark.parametrize("column", ["id", "content", "tenant_id", "source_who", "tags"])
def test_a_number_where_the_schema_says_text_is_listed(tmp_path, column):
    untyped = NEW.replace(f"{column} TEXT", column)
    path = database(tmp_path / "a.db", [row("m1"), row("m2") | {column: 65}], columns=untyped)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = ? WHERE name = 'memories'",
            [f"CREATE TABLE memories ({untyped.replace(column, column + ' TEXT', 1)})"],
        )
        connection.commit()
    report, memories = imported(path, tmp_path / "out")
    assert [memory["id"] for memory in memories] == ["m1"]
    assert "is 65" in str(report.notes[0])


def test_more_malformed_rows_than_allowed_end_the_reading_early(tmp_path, monkeypatch):
    rows = [row(f"m{number}", content=b"x") for number in range(3 * BLOCK)]
    path = database(tmp_path / "a.db", rows)
    read = []
    monkeypatch.setattr(
        Reader, "read", lambda *block, read_=Reader.read: read.append(block) or read_(*block)
    )
    with pytest.raises(DatasetError, match=f"{BLOCK} of {3 * BLOCK} records are malformed"):
        import_comis(path, tmp_path / "out")
    assert len(read) == 1


@pytest.mark.parametrize(
    "threads", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["fork", "spawn"]
)
def test_processes_of_either_kind_find_all_they_need(tmp_path, monkeypatch, threads):
    more = ENTITIES + (
        "INSERT INTO memory_entities (id, canonical_name) VALUES ('e1', 'Ada');"
        "INSERT INTO memory_entity_links VALUES ('m2200', 'e1');"
    )
    path = database(tmp_path / "a.db", [row(f"m{i}") for i in range(2500)], more=more)
    alone = imported(path, tmp_path / "alone")
    monkeypatch.setattr(comis_lines, "WORKERS_FROM", 1)
    monkeypatch.setattr(threading, "active_count", lambda: threads)
    told = []
    options = ComisOptions(max_bad=1, workers=3, tell=lambda *said: told.append(said))
    _, memories = imported(path, tmp_path / "many", options)
    assert memories == alone[1]
    assert told[-1] == ("memories", 2500, 2500)
    assert sorted(p.name for p in (tmp_path / "many").iterdir()) == [
        "dataset.yaml", "memories.jsonl", "queries.jsonl",
    ]  # fmt: skip


def test_a_process_that_is_ended_from_outside_is_one_error_and_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(comis_lines, "WORKERS_FROM", 1)
    path = database(tmp_path / "a.db", [row(f"m{i}") for i in range(2500)])
    here, read = os.getpid(), Reader.read
    monkeypatch.setattr(
        Reader, "read", lambda *block: read(*block) if os.getpid() == here else os._exit(9)
    )
    with pytest.raises(DatasetError, match="ended from outside"):
        import_comis(path, tmp_path / "out", ComisOptions(workers=2))
    assert [p.name for p in tmp_path.iterdir()] == ["a.db"]


def test_an_interrupt_does_not_wait_for_what_is_being_read():
    def interrupted() -> None:
        with comis_lines.processes(1) as pool:
            pool.submit(time.sleep, 60)
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - start < 30
    assert not multiprocessing.active_children()
