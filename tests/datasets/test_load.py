from __future__ import annotations

import json
import re

import numpy as np
import pytest

from comis_eval.datasets import (
    Attack,
    Edge,
    Link,
    Policy,
    ScopeRule,
    Usefulness,
    load_dataset,
    validate,
    write_dataset,
)
from comis_eval.datasets.lines import MAX_LINE_BYTES
from comis_eval.errors import DatasetError
from comis_eval.types import (
    Filters,
    Memory,
    MemoryType,
    Query,
    Source,
    Tenancy,
    TrustLevel,
    Turn,
)
from tests.datasets.folders import DAY, HEADER, MEMORIES, NOW, QRELS, lines, memory, query, tiny


def faults(folder) -> list[str]:
    return [str(fault) for fault in validate(folder).faults]


def warnings(folder) -> list[str]:
    report = validate(folder)
    assert not report.faults
    return [str(warning) for warning in report.warnings]


def test_a_valid_folder_loads_without_fault_or_warning(tmp_path):
    folder = tiny(tmp_path)
    assert faults(folder) == warnings(folder) == []
    dataset = load_dataset(folder)
    assert (dataset.name, dataset.version, dataset.licence) == ("tiny", "1", "CC0-1.0")
    assert (dataset.judged_by, dataset.folder) == ("people", folder)
    assert dataset.policy == Policy()
    assert [memory.id for memory in dataset.memories] == ["m1", "m2", "m3"]
    assert dataset.memories[0] == Memory(
        id="m1", content="Ada likes tea", trust_level=TrustLevel.SYSTEM, created_at=NOW - 3 * DAY
    )
    assert dataset.queries[0] == Query(id="q1", text="what does Ada drink?", now=NOW, group="q1")
    assert dataset.judgments.judged(0).rows.tolist() == [0, 1]
    assert dataset.judgments.judged(0).grades.tolist() == [3, 1]


def test_a_folder_still_to_be_judged_loads_when_asked_and_else_does_not(tmp_path):
    folder = tiny(tmp_path)
    (folder / "qrels.tsv").unlink()
    assert [fault.file for fault in validate(folder).faults] == ["qrels.tsv"]
    assert len(load_dataset(folder, labelled=False).judgments) == 0
    (folder / "qrels.tsv").write_text("")
    assert "has no memory of grade >= 1" in validate(folder).faults[0].message
    assert load_dataset(folder, labelled=False).queries
    (folder / "qrels.tsv").write_text("nobody 0 m1 3\n")
    with pytest.raises(DatasetError, match="nobody"):
        load_dataset(folder, labelled=False)


def test_every_field_is_read(tmp_path):
    full_memory = {
        "id": "m4",
        "content": "Ada moved to Lund",
        "tenantId": "acme",
        "agentId": "helper",
        "trustLevel": "external",
        "memoryType": "episodic",
        "source": {"who": "Bo", "channel": "mail", "sessionKey": "s1"},
        "sourceType": "tool",
        "taintLevel": "wrapped",
        "createdAt": NOW,
        "occurredAt": -1,
        "expiresAt": NOW + 6,
        "proofCount": 0,
        "confidence": 1,
        "sourceIds": ["m1", "m3"],
        "entities": ["Ada", "Lund"],
        "tags": ["kind:fact"],
        "key": "ada-home",
        "scope": "agent",
        "projectId": "p1",
        "createdBy": "helper",
        "authorType": "agent",
        "relevance": 0.5,
        "importance": 0.25,
        "archived": False,
        "status": "stale",
        "updatedAt": NOW,
        "version": 3,
        "duplicateOf": "m2",
    }
    full_query = {
        "id": "q3",
        "text": "",
        "turns": [{"role": "user", "text": "hi"}],
        "now": NOW + 5,
        "category": "temporal",
        "group": "home",
        "tags": ["slow"],
        "tenancy": {"tenantId": "acme", "agentId": "helper"},
        "filters": {
            "memoryType": "episodic",
            "trustLevel": "external",
            "tags": ["kind:fact"],
            "limit": 3,
            "tags_any": ["a", "b"],
            "relevance_min": 0,
        },
        "answerable": True,
        "superseded": "m1",
    }
    folder = tiny(
        tmp_path,
        dataset_yaml=HEADER
        + "policy: {trustLevels: [system], scope: tenant}\n"
        + "categories:\n  uncategorised:\n  temporal: {headline: false}\n",
        memories_jsonl=memory(**full_memory),
        queries_jsonl=query(**full_query),
        qrels_tsv=QRELS + "q3 0 m4 2\r\n",
        attacks_jsonl=lines([{"query": "q3", "poison": ["m3"], "kind": "crowding"}]),
        links_jsonl=lines([{"from": "m1", "to": "m2", "confidence": 0.5}]),
        edges_jsonl=lines([{"from": "m2", "to": "m1", "kind": "relates_to", "weight": 1}]),
        usefulness_csv="memory,used,ignored\nm1,3,0\n",
    )
    (folder / "README.md").write_text("not data")
    assert warnings(folder) == []
    dataset = load_dataset(folder)
    assert dataset.memories[3] == Memory(
        id="m4",
        content="Ada moved to Lund",
        trust_level=TrustLevel.EXTERNAL,
        created_at=NOW,
        tenancy=Tenancy("acme", "helper"),
        memory_type=MemoryType.EPISODIC,
        source=Source("Bo", "mail", "s1"),
        source_type="tool",
        taint_level="wrapped",
        occurred_at=-1,
        expires_at=NOW + 6,
        proof_count=0,
        confidence=1.0,
        source_ids=("m1", "m3"),
        entities=("Ada", "Lund"),
        tags=("kind:fact",),
        key="ada-home",
        scope="agent",
        project_id="p1",
        created_by="helper",
        author_type="agent",
        relevance=0.5,
        importance=0.25,
        archived=False,
        status="stale",
        updated_at=NOW,
        version=3,
        duplicate_of="m2",
    )
    assert dataset.queries[2] == Query(
        id="q3",
        text="",
        now=NOW + 5,
        turns=(Turn("user", "hi"),),
        category="temporal",
        group="home",
        tags=("slow",),
        tenancy=Tenancy("acme", "helper"),
        filters=Filters(
            memory_type=MemoryType.EPISODIC,
            trust_level=TrustLevel.EXTERNAL,
            tags=("kind:fact",),
            parameters={"limit": 3, "tags_any": ("a", "b"), "relevance_min": 0.0},
        ),
        superseded="m1",
    )
    assert dataset.policy == Policy(frozenset({TrustLevel.SYSTEM}), ScopeRule.TENANT)
    assert dataset.headline("uncategorised")
    assert not dataset.headline("temporal")
    assert dataset.attacks == (Attack("q3", ("m3",), "crowding"),)
    assert dataset.links == (Link("m1", "m2", 0.5),)
    assert dataset.edges == (Edge("m2", "m1", "relates_to", 1.0),)
    assert dataset.usefulness == {"m1": Usefulness(3, 0)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"createdAt": "ABSENT"}, "createdAt is missing; it is required"),
        ({"createdAt": None}, "createdAt is missing; it is required"),
        ({"createdAt": "2024"}, "createdAt is '2024' (text); it must be a whole number; times"),
        ({"createdAt": 1.5}, "createdAt is 1.5 (a number); it must be a whole number"),
        ({"createdAt": True}, "createdAt is True (true or false); it must be a whole number"),
        ({"createdAt": 2**63}, "it must fit into 64 bits; times are whole milliseconds"),
        ({"id": 7}, 'id is 7 (a number); it must be text (ids are always text: write "7"'),
        ({"id": "a b"}, "id is 'a b'; an id holds no white space"),
        ({"id": "a\u00a0b"}, "an id holds no white space"),
        ({"id": "a\u0007"}, "an id holds no white space or control characters"),
        ({"id": ""}, "id is empty"),
        ({"id": "m2"}, "id 'm2' already stands on line 2"),
        ({"content": " \n"}, "content is blank"),
        ({"content": 5}, "content is 5 (a number); it must be text"),
        ({"trustLevel": "trusted"}, "is 'trusted'; allowed: system, learned, external"),
        ({"trustLevel": ["system"]}, "trustLevel is ['system']; allowed: system"),
        ({"memoryType": "fact"}, "allowed: working, episodic, semantic, procedural"),
        ({"proofCount": -1}, "proofCount is -1; it must be >= 0"),
        ({"proofCount": 1.0}, "proofCount is 1.0 (a number); it must be a whole number"),
        ({"confidence": 1.01}, "confidence is 1.01; it must lie in [0, 1]"),
        ({"confidence": 10**400}, "it must lie in [0, 1]"),
        ({"confidence": True}, "confidence is True (true or false); it must be a number"),
        ({"confidence": "1"}, "confidence is '1' (text); it must be a number"),
        ({"tags": "a"}, "tags is 'a' (text); it must be a list"),
        ({"tags": ["a", 1]}, "tags[1] is 1 (a number); it must be text"),
        ({"source": {"whom": "x"}}, "source.unknown key 'whom'; did you mean 'who'?"),
        ({"source": "x"}, "source is 'x' (text); it must be an object with who, channel"),
        ({"sourceIds": ["m9"]}, "sourceIds names 'm9', no id in memories.jsonl"),
        ({"sourceIds": ["m4"]}, "'m4' names itself as its origin"),
        (
            {"sourceIds": ["m1", "m3"]},
            "launders trust: learned but derived from 'm3', which is",
        ),
        ({"duplicateOf": "m9"}, "duplicateOf names 'm9'"),
        ({"trust_level": "x"}, "unknown key 'trust_level'; did you mean 'trustLevel'?"),
        ({"scope": "all"}, "scope is 'all'; allowed: workspace, project, agent"),
        ({"scope": "agent"}, "scope is 'agent' but nobody owns it; state createdBy or agentId"),
        ({"key": "Bad_Key"}, "key is 'Bad_Key'; a key has at least two of a-z, 0-9"),
        ({"status": "gone"}, "status is 'gone'; allowed: active"),
        ({"archived": 0}, "archived is 0 (a number); it must be true or false"),
    ],
)
def test_a_bad_memory_is_a_fault_on_its_line(tmp_path, changes, expected):
    found = faults(tiny(tmp_path, memories_jsonl=memory(**changes)))
    assert len(found) == 1
    assert found[0].startswith("memories.jsonl:4: ")
    assert expected in found[0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"id": "q1"}, "id 'q1' already stands on line 1"),
        ({"text": "ABSENT"}, "text is missing"),
        ({"answerable": True}, "query 'q3' has no memory of grade >= 1 in qrels.tsv; judge one"),
        ({"superseded": "m9"}, "superseded names 'm9', no id in memories.jsonl"),
        ({"turns": [{"role": "user"}]}, "turns[0].text is missing"),
        ({"turns": [{"role": "user", "text": "a", "at": 1}]}, "turns[0].unknown key 'at'"),
        ({"tenancy": {"tenant": "a"}}, "tenancy.unknown key 'tenant'; did you mean 'tenantId'?"),
        ({"tenancy": {"tenantId": 1}}, "tenancy.tenantId is 1 (a number)"),
        ({"filters": {"limits": 1}}, "filters.unknown key 'limits'; did you mean 'limit'?"),
        ({"filters": {"limit": "5"}}, "filters.limit is '5' (text); it must be a whole number"),
        ({"category": "all"}, "category 'all' is taken"),
        ({"now": 1e12}, "now is 1000000000000.0 (a number); it must be a whole number"),
    ],
)
def test_a_bad_query_is_a_fault_on_its_line(tmp_path, changes, expected):
    found = faults(tiny(tmp_path, queries_jsonl=query(**changes)))
    assert len(found) == 1
    assert found[0].startswith("queries.jsonl:3: ")
    assert expected in found[0]


def test_an_unanswerable_query_with_a_relevant_memory_is_a_fault(tmp_path):
    found = faults(tiny(tmp_path, qrels_tsv=QRELS + "q2 0 m1 1\n"))
    assert found == [
        "queries.jsonl:2: query 'q2' is answerable: false but has a memory of grade >= 1 in "
        "qrels.tsv; drop the one or the other"
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 0 m3 0.5", "grade of query 'q1' and memory 'm3' is '0.5'; allowed: 0, 1, 2, 3"),
        ("q1 0 m3 4", "is '4'; allowed: 0, 1, 2, 3"),
        ("q1 0 m3 -1", "is '-1'; allowed: 0, 1, 2, 3"),
        ("q1 0 m1 3", "query 'q1' and memory 'm1' were already judged on line 1; keep one"),
        ("q9 0 m1 0", "query 'q9' is no id in queries.jsonl"),
        ("q1 0 m9 1", "memory 'm9' is no id in memories.jsonl"),
        ("q1 Q0 m3 1", "second column is 'Q0'; it must be 0"),
        ("q1 m3 1", "has 3 columns, must have 4: query 0 memory grade"),
        ("   ", "blank line; remove it"),
    ],
)
def test_a_bad_judgment_is_a_fault_on_its_line(tmp_path, line, expected):
    found = faults(tiny(tmp_path, qrels_tsv=QRELS + line + "\n"))
    assert len(found) == 1
    assert found[0].startswith("qrels.tsv:4: ")
    assert expected in found[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"id": "m4", "content": "cut', "not JSON: Unterminated string at line 1, column 25; it"),
        (b'{"id": "m4", "content": "cut"', "it looks cut off"),
        (b'{"id": "m4", "id": "m5"}', "key 'id' stands twice in one object"),
        (b'{"id": "m4", "confidence": NaN}', "NaN is not a JSON number"),
        (b'{"id": "m4", "confidence": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"id": "m4", "confidence": 1e999}', "number '1e999' is too large"),
        (b'{"id": "m4", "content": "\\ud800"}', "half of a surrogate pair"),
        (b'{"id": "m4", "content": "\xff"}', "not UTF-8 from byte 26 of the line on"),
        (b'["m4"]', "must be one JSON object, found ['m4']"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"proofCount": ' + b"9" * 5000 + b"}", "not usable JSON"),
        (b"", "blank line; remove it"),
        (b'{"id": "' + b"a" * MAX_LINE_BYTES + b'"}', "longer than 8388608 bytes"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_an_unreadable_line_is_one_fault_and_reading_goes_on(tmp_path, line, expected):
    text = lines(MEMORIES).encode() + line + b"\n" + lines([{"id": 5}]).encode()
    found = faults(tiny(tmp_path, memories_jsonl=text))
    assert found[0].startswith("memories.jsonl:4: ")
    assert expected in found[0]
    assert {fault.split(":")[1] for fault in found[1:]} == {"5"}


def test_a_byte_order_mark_is_a_fault(tmp_path):
    found = faults(tiny(tmp_path, queries_jsonl=b"\xef\xbb\xbf" + query().encode()))
    assert found[0].startswith("queries.jsonl:1: starts with a byte order mark")


def test_line_separators_inside_text_do_not_end_a_line(tmp_path):
    hostile = "a\u2028b\u0085c\x0bd\re"
    row = {"id": "m4", "content": hostile, "trustLevel": "learned", "createdAt": NOW}
    text = lines(MEMORIES) + json.dumps(row, ensure_ascii=False) + "\n"
    dataset = load_dataset(tiny(tmp_path, memories_jsonl=text.encode()))
    assert dataset.memories[3].content == hostile


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("attacks_jsonl", '{"query": "q9", "poison": ["m3"], "kind": "k"}', "query 'q9' is no id"),
        ("attacks_jsonl", '{"query": "q1", "poison": ["m9"], "kind": "k"}', "poison names 'm9'"),
        ("attacks_jsonl", '{"query": "q1", "poison": [], "kind": "k"}', "poison is empty"),
        ("attacks_jsonl", '{"query": "q1", "poison": ["m3"]}', "kind is missing"),
        ("links_jsonl", '{"from": "m1", "to": "m9", "confidence": 1}', "to names 'm9'"),
        ("links_jsonl", '{"from": "m1", "to": "m1", "confidence": 1}', "'m1' is tied to itself"),
        ("links_jsonl", '{"from": "m1", "to": "m2", "confidence": 2}', "must lie in [0, 1]"),
        ("edges_jsonl", '{"from": "m9", "to": "m2", "kind": "k", "weight": 1}', "from names 'm9'"),
        ("edges_jsonl", '{"from": "m1", "to": "m2", "weight": 1}', "kind is missing"),
        ("usefulness_csv", "memory,used,ignored\nm9,1,1", "memory names 'm9'"),
        ("usefulness_csv", "memory,used,ignored\nm1,-1,1", "both must be whole numbers >= 0"),
        ("usefulness_csv", "memory,used,ignored\nm1,1.0,1", "both must be whole numbers >= 0"),
        ("usefulness_csv", "memory,used,ignored\nm1,1", "must hold memory,used,ignored"),
        ("usefulness_csv", "memory,used,ignored\nm1,1,1\nm1,2,2", "already stands on line 2"),
        ("usefulness_csv", "m1,1,1", "must be 'memory,used,ignored'"),
        ("usefulness_csv", "", "is empty; it must begin with 'memory,used,ignored'"),
        ("memories_jsonl", "", "is empty; a dataset needs at least one record in it"),
        ("queries_jsonl", "", "is empty; a dataset needs at least one record in it"),
        ("memories_jsonl", None, "no such file"),
        ("qrels_tsv", None, "no such file; it holds: query 0 memory grade"),
    ],
)
def test_a_bad_file_is_a_fault(tmp_path, name, content, expected):
    found = faults(tiny(tmp_path, **{name: content}))
    assert found[0].startswith(name.replace("_", "."))
    assert expected in found[0]


def test_two_links_between_the_same_memories_are_a_fault_but_two_kinds_of_edge_are_not(tmp_path):
    link = {"from": "m1", "to": "m2", "confidence": 1}
    edge = {"from": "m1", "to": "m2", "kind": "a", "weight": 1}
    folder = tiny(
        tmp_path, links_jsonl=lines([link, link]), edges_jsonl=lines([edge, edge | {"kind": "b"}])
    )
    assert faults(folder) == ["links.jsonl:2: the same two memories are already tied on line 1"]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (HEADER + "nom: 3\n", "dataset.yaml:7: unknown key 'nom'; did you mean 'now'?"),
        ("version: '1'\nnow: 1\n", "name is missing; it is required"),
        ("name: a/b\nnow: 1\n", ":1: name is 'a/b'; a name matches [A-Za-z0-9._-]{1,64}"),
        ("name: ..\nnow: 1\n", ":1: name is '..'; a name matches"),
        ('name: "a\\n"\nnow: 1\n', "dataset.yaml:1: name is 'a\\n'; a name matches"),
        ("name: a\nversion: 1.0\nnow: 1\n", '.yaml:2: version is 1.0 (a number); it must be text'),
        ("name: a\nnow: 2024-01-01\n", "dataset.yaml:2: now is '2024-01-01' (text)"),
        (HEADER + "policy: {trustLevels: [all]}\n", "policy.trustLevels[0] is 'all'; allowed"),
        (HEADER + "policy: {scope: mine}\n", "policy.scope is 'mine'; allowed: tenancy, tenant"),
        (HEADER + "categories: {all: {}}\n", "categories.all is taken"),
        (HEADER + "categories: {a: {headlin: 1}}\n", "categories.a.unknown key 'headlin'; did you"),
        (HEADER + "categories: [a]\n", "categories is ['a']; it must map each category"),
        (HEADER + "splits: {tune: [q1], test: [q1]}\n", "splits.test names group 'q1' a second"),
        (HEADER + "splits: {train: [q1]}\n", "splits.unknown key 'train'"),
        ("- name\n", "must hold keys (name, version"),
        ("name: [\n", "dataset.yaml"),
        (None, "dataset.yaml"),
    ],
)  # fmt: skip
def test_a_bad_header_is_a_fault(tmp_path, header, expected):
    found = faults(tiny(tmp_path, dataset_yaml=header))
    assert len(found) == 1
    assert expected in found[0]


def test_now_must_be_stated_by_the_query_or_the_dataset(tmp_path):
    no_now = HEADER.replace(f"now: {NOW}\n", "")
    found = faults(tiny(tmp_path, dataset_yaml=no_now, queries_jsonl=query(now=NOW)))
    assert found == [
        f"queries.jsonl:{line}: now is missing, here and in dataset.yaml; state one of them (ms)"
        for line in (1, 2)
    ]


def test_a_category_that_is_not_declared_is_a_fault_and_an_unused_one_a_warning(tmp_path):
    folder = tiny(
        tmp_path,
        dataset_yaml=HEADER + "categories: {uncategorised: , temporal: {headline: false}}\n",
        queries_jsonl=query(category="tempral"),
    )
    assert faults(folder) == [
        "queries.jsonl:3: category 'tempral' is not declared in dataset.yaml; "
        "did you mean 'temporal'?"
    ]
    tiny(tmp_path)
    (folder / "dataset.yaml").write_text(HEADER + "categories: {uncategorised: , b: }\n")
    assert warnings(folder) == ["dataset.yaml: category 'b' has no query"]


def test_fixed_splits_must_place_every_group_and_no_other(tmp_path):
    folder = tiny(tmp_path, dataset_yaml=HEADER + "splits: {tune: [q1], test: [q7]}\n")
    assert faults(folder) == [
        "dataset.yaml: splits names group 'q7', which no query has",
        "queries.jsonl:2: group 'q2' is in none of the splits of dataset.yaml",
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memories_jsonl": memory(createdAt=NOW + 1)}, "memories.jsonl:4: createdAt 17"),
        ({"memories_jsonl": memory(createdAt=NOW // 1000)}, "times are milliseconds, not seconds"),
        ({"memories_jsonl": memory(expiresAt=NOW)}, "memories.jsonl:4: expiresAt is not after"),
        ({"queries_jsonl": query(id="q0", now=NOW + DAY, answerable=True, tenancy={"agentId": "b"}),
          "qrels_tsv": QRELS + "q0 0 m1 1\n"}, "qrels.tsv:4: memory 'm1' is relevant to query 'q0' "
                                               "but outside the scope it may be answered from"),
        ({"queries_jsonl": query(now=NOW - 3 * DAY - 1, answerable=True),
          "qrels_tsv": QRELS + "q3 0 m1 1\n"}, "was written after the query's now"),
        ({"memories_jsonl": memory(createdAt=NOW - DAY, expiresAt=NOW),
          "qrels_tsv": QRELS + "q1 0 m4 1\n"},
         "qrels.tsv:4: memory 'm4' is relevant to query 'q1' but has expired by"),
        ({"attack_jsonl": "x"}, "attack.jsonl: is not read; did you mean attacks.jsonl?"),
        ({"attacks_jsonl": lines([{"query": "q1", "poison": ["m1"], "kind": "k"}])},
         "attacks.jsonl:1: poison 'm1' is judged relevant to its query"),
        ({"dataset_yaml": HEADER.replace("licence: CC0-1.0\n", "")}, "licence is not stated"),
    ],
)  # fmt: skip
def test_what_is_probably_not_meant_is_a_warning(tmp_path, files, expected):
    found = warnings(tiny(tmp_path, **files))
    assert len(found) == 1
    assert expected in found[0]


def test_all_faults_of_all_files_are_raised_at_once_in_file_order(tmp_path):
    folder = tiny(
        tmp_path,
        dataset_yaml=HEADER + "color: red\n",
        memories_jsonl=memory(id=7, confidence=-1),
        qrels_tsv=QRELS + "q1 0 m3 9\n",
    )
    with pytest.raises(DatasetError) as caught:
        load_dataset(folder)
    told = str(caught.value).splitlines()
    assert told[0] == f"{folder} has 4 faults:"
    assert [line.split(": ")[0] for line in told[1:]] == [
        "dataset.yaml:7",
        "memories.jsonl:4",
        "memories.jsonl:4",
        "qrels.tsv:4",
    ]


def test_faults_of_one_file_stand_in_line_order_however_they_were_found(tmp_path):
    found = faults(tiny(tmp_path, queries_jsonl=query(text=5), qrels_tsv="q2 0 m3 0\n"))
    assert [fault.split(": ")[0] for fault in found] == ["queries.jsonl:1", "queries.jsonl:3"]


def test_a_memory_written_at_the_moment_of_asking_is_not_in_the_future(tmp_path):
    folder = tiny(tmp_path, memories_jsonl=memory(createdAt=NOW), qrels_tsv=QRELS + "q1 0 m4 1\n")
    assert warnings(folder) == []


@pytest.mark.parametrize("author", [{"agentId": "default"}, {"createdBy": "ann"}])
def test_a_row_of_agent_scope_needs_an_owner_of_either_kind(tmp_path, author):
    assert faults(tiny(tmp_path, memories_jsonl=memory(scope="agent", **author))) == []


def test_a_single_fault_is_one_line(tmp_path):
    folder = tiny(tmp_path, qrels_tsv=QRELS + "q1 0 m3 0.5\n")
    expected = f"{folder}/qrels.tsv:4: grade of query 'q1' and memory 'm3' is '0.5'"
    with pytest.raises(DatasetError, match=f"^{re.escape(expected)}"):
        load_dataset(folder)


def test_the_message_lists_fifty_faults_and_counts_the_rest(tmp_path):
    folder = tiny(tmp_path, memories_jsonl=lines(MEMORIES) + '{"id": 7}\n' * 30)
    with pytest.raises(DatasetError) as caught:
        load_dataset(folder)
    told = str(caught.value).splitlines()
    assert told[0].endswith("has 120 faults:")
    assert len(told) == 52
    assert told[-1] == "... and 70 more"
    assert len(validate(folder).faults) == 120


def test_hostile_text_is_shown_escaped_and_cut(tmp_path):
    found = faults(tiny(tmp_path, memories_jsonl=memory(trustLevel="\x1b[31m\u202e" + "x" * 500)))
    assert "\x1b" not in found[0]
    assert "\u202e" not in found[0]
    assert len(found[0]) < 200


def test_a_dataset_is_found_by_name_under_datasets(tmp_path, monkeypatch):
    (tmp_path / "datasets").mkdir()
    tiny(tmp_path / "datasets" / "little")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("little").name == "tiny"
    with pytest.raises(DatasetError, match=r"no dataset 'litle'.*known names: .*little"):
        load_dataset("litle")
    with pytest.raises(DatasetError, match="is a file; a dataset is a folder"):
        load_dataset(tmp_path / "datasets" / "little" / "qrels.tsv")


def test_embeddings_may_be_there_and_are_hashed(tmp_path):
    folder = tiny(tmp_path)
    bare = load_dataset(folder).fingerprint
    (folder / "embeddings.npy").write_bytes(b"abc")
    dataset = load_dataset(folder)
    assert dataset.embeddings == {
        "embeddings.npy": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    }
    assert dataset.fingerprint != bare


def test_select_keeps_the_memories_and_one_split(tmp_path):
    splits = "splits: {tune: [q2], test: [q1]}\n"
    dataset = load_dataset(tiny(tmp_path, dataset_yaml=HEADER + splits))
    part = dataset.select("test", seed=0)
    assert [query.id for query in part.queries] == ["q1"]
    assert part.memories == dataset.memories
    assert part.judgments.queries.tolist() == [0, 0]
    assert part.judgments.rows.tolist() == [0, 1]
    assert dataset.select("all", seed=0) is dataset
    with pytest.raises(DatasetError, match="no query falls into split 'select'"):
        dataset.select("select", seed=0)
    with pytest.raises(DatasetError, match="split is 'dev'; allowed: tune, select, test, all"):
        dataset.select("dev", seed=0)


def test_subset_keeps_the_order_asked_for_and_the_attacks_on_it(tmp_path):
    attacks = lines([{"query": q, "poison": ["m3"], "kind": "k"} for q in ("q1", "q2")])
    dataset = load_dataset(tiny(tmp_path, attacks_jsonl=attacks))
    part = dataset.subset(np.array([1, 0]))
    assert [query.id for query in part.queries] == ["q2", "q1"]
    assert part.judgments.judged(0).rows.tolist() == [2]
    assert part.judgments.judged(1).grades.tolist() == [3, 1]
    assert [a.query_id for a in dataset.subset([1]).attacks] == ["q2"]
    assert dataset.row_of["m3"] == 2
    assert dataset.position_of["q2"] == 1


UNLABELLED = HEADER + "labelled: false\n"


def test_a_dataset_without_labels_needs_neither_judgments_nor_queries(tmp_path):
    folder = tiny(tmp_path / "tiny", dataset_yaml=UNLABELLED, queries_jsonl="", qrels_tsv=None)
    dataset = load_dataset(folder)
    assert not dataset.labelled
    newest = max(memory.created_at for memory in dataset.memories)
    assert dataset.query("x").now == newest
    with pytest.raises(DatasetError, match="nobody judged it"):
        dataset.check_labelled()
    copy = write_dataset(dataset, tmp_path / "copy")
    assert load_dataset(copy).fingerprint == dataset.fingerprint


def test_a_dataset_without_labels_has_another_fingerprint(tmp_path):
    plain = {"queries_jsonl": query(), "qrels_tsv": None}
    judged = load_dataset(tiny(tmp_path / "judged"))
    not_judged = load_dataset(tiny(tmp_path / "not", dataset_yaml=UNLABELLED, **plain))
    assert judged.fingerprint != not_judged.fingerprint


def test_judgments_of_a_dataset_that_says_it_has_none_are_a_fault(tmp_path):
    report = validate(tiny(tmp_path / "tiny", dataset_yaml=UNLABELLED))
    assert [fault.file for fault in report.faults] == ["qrels.tsv"]
    assert "says labelled: false; remove one of them" in report.faults[0].message
