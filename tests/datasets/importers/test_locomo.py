from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from comis_eval.datasets import load_dataset, write_dataset
from comis_eval.datasets.importers import Count, import_locomo
from comis_eval.errors import DatasetError
from comis_eval.types import Memory, MemoryType, Query, Source, Tenancy, TrustLevel

LOCOMO = Path(__file__).parents[3].parent / "shared" / "data" / "locomo" / "locomo10.json"
DAY = 86_400_000


def turn(dia_id: str, text: str, speaker: str = "Kim", **more: object) -> dict[str, object]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **more}


def question(text: str, evidence: list[object], category: int = 4) -> dict[str, object]:
    return {"question": text, "evidence": evidence, "category": category, "answer": 3}


def conversation(*questions: dict[str, object], **changes: object) -> dict[str, object]:
    """Make one conversation in LoCoMo's shape, its words made up for this test."""
    talk: dict[str, object] = {
        "speaker_a": "Kim",
        "speaker_b": "Lee",
        "session_10_date_time": "12:05 am on 1 March, 2021",
        "session_10": [turn("D10:1", "The boat sank.")],
        "session_2_date_time": "12:30 pm on 29 February, 2020",
        "session_2": [
            turn("D2:1", " I bought a boat ", blip_caption="a boat"),
            turn("D2:2", "Which colour?", "Lee"),
        ],
        "session_11_date_time": "1:00 pm on 2 March, 2021",
        "session_12_date_time": "1:00 pm on 3 March, 2021",
        "session_12": [],
    }
    qa = questions or (question("What did Kim buy?", ["D2:1"]),)
    return {"sample_id": "conv-1", "qa": list(qa), "conversation": talk | changes}


def imported(tmp_path: Path, *entries: object):
    source = tmp_path / "locomo.json"
    source.write_text(json.dumps(list(entries)))
    return import_locomo(source)


def test_a_turn_becomes_a_memory_and_sessions_follow_their_numbers(tmp_path):
    dataset, report = imported(tmp_path, conversation())
    assert [memory.id for memory in dataset.memories] == [
        "conv-1:D2:1",
        "conv-1:D2:2",
        "conv-1:D10:1",
    ]
    # 29 February 2020 12:30 UTC is 1582979400 s; the second turn is one second later.
    assert dataset.memories[1] == Memory(
        id="conv-1:D2:2",
        content="Lee: Which colour?",
        trust_level=TrustLevel.LEARNED,
        created_at=1_582_979_401_000,
        tenancy=Tenancy("conv-1", "default"),
        memory_type=MemoryType.EPISODIC,
        source=Source(who="Lee", session_key="session_2"),
    )
    assert dataset.memories[0].content == "Kim:  I bought a boat "
    assert dataset.memories[0].created_at == 1_582_979_400_000
    assert [str(note) for note in report.notes] == [
        "conv-1: 1 turns carry an image caption; captions left out",
        "conv-1: sessions 11, 12 have a time but no turns; ignored",
    ]


def test_a_question_is_asked_a_day_after_the_last_session_with_turns(tmp_path):
    dataset, report = imported(tmp_path, conversation(question("Did it float?", ["D10:1"], 2)))
    # 1 March 2021 00:05 UTC is 1614557100 s.
    assert dataset.queries == (
        Query(
            id="conv-1:q0",
            text="Did it float?",
            now=1_614_557_100_000 + DAY,
            category="temporal",
            group="conv-1:q0",
            tenancy=Tenancy("conv-1", "default"),
        ),
    )
    assert dataset.judgments.rows.tolist() == [2]
    assert dataset.judgments.grades.tolist() == [1]
    assert report.counts == {
        "memories": Count(3, 3),
        "queries": Count(1, 1),
        "judgments": Count(1, 1),
    }
    assert report.dropped_share == 0


@pytest.mark.parametrize(
    ("evidence", "rows", "notes"),
    [
        (["D2:1", "D10:1"], [0, 2], []),
        (["D2:1; D10:1"], [0, 2], ["'D2:1; D10:1' is not one turn id; read as D2:1, D10:1"]),
        (["D:10:1"], [2], ["evidence 'D:10:1' is not one turn id; read as D10:1"]),
        (["D2:02 D2:1"], [0, 1], ["evidence 'D2:02 D2:1' is not one turn id; read as D2:2, D2:1"]),
        (["D2:1", "D"], [0], ["evidence 'D' is not one turn id; dropped: it names no turn"]),
        (["D2:1 or so", "D2:2"], [1], ["'D2:1 or so' is not one turn id; dropped: it names no"]),
        (["D2:1", "D4:36"], [0], ["evidence D4:36 is no turn of conv-1; dropped"]),
        (["D2:1", "D2:1"], [0], ["evidence D2:1 stands twice; counted once"]),
    ],
)  # fmt: skip
def test_evidence_is_read_mended_or_noted(tmp_path, evidence, rows, notes):
    dataset, report = imported(tmp_path, conversation(question("?", evidence)))
    assert dataset.judgments.rows.tolist() == rows
    found = [str(note) for note in report.notes if note.where == "conv-1:q0"]
    assert len(found) == len(notes)
    assert all(note in told for told, note in zip(found, notes, strict=True))


@pytest.mark.parametrize("evidence", [[], ["D"], ["D4:36"]])
def test_a_question_without_usable_evidence_is_dropped_and_noted(tmp_path, evidence):
    dataset, report = imported(
        tmp_path, conversation(question("lost", evidence), question("kept", ["D2:2"]))
    )
    assert [query.id for query in dataset.queries] == ["conv-1:q1"]
    assert report.counts["queries"] == Count(2, 1)
    assert report.counts["queries"].dropped == 1
    assert report.notes[-1].done == "question dropped: it cannot be judged"


def test_categories_have_names_and_adversarial_stays_outside_the_headline(tmp_path):
    questions = [question(f"{n}?", ["D2:1"], n) for n in range(1, 6)]
    dataset, _ = imported(tmp_path, conversation(*questions))
    assert [query.category for query in dataset.queries] == [
        "multi-hop",
        "temporal",
        "open-domain",
        "single-hop",
        "adversarial",
    ]
    assert [dataset.headline(query.category) for query in dataset.queries] == [True] * 4 + [False]
    assert all(query.answerable for query in dataset.queries)


def test_equal_questions_share_a_group_within_a_conversation_only(tmp_path):
    same = [question("Which  boat?", ["D2:1"]), question("which boat?", ["D2:2"])]
    other = conversation(question("Which boat?", ["D2:1"])) | {"sample_id": "conv-2"}
    dataset, _ = imported(tmp_path, conversation(*same), other)
    assert [query.group for query in dataset.queries] == ["conv-1:q0", "conv-1:q0", "conv-2:q0"]
    assert dataset.queries[2].tenancy == Tenancy("conv-2", "default")
    assert dataset.judgments.rows.tolist() == [0, 1, 3]


def test_a_turn_without_text_is_dropped_and_noted(tmp_path):
    session = [turn("D2:1", " "), turn("D2:2", "Yes")]
    dataset, report = imported(tmp_path, conversation(question("?", ["D2:2"]), session_2=session))
    assert [memory.id for memory in dataset.memories] == ["conv-1:D2:2", "conv-1:D10:1"]
    assert report.counts["memories"] == Count(3, 2)
    assert report.dropped_share == 1 / 5
    assert "conv-1:session_2[0]: turn without text; turn dropped" in map(str, report.notes)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"qa": []}, r"\[0\] has no 'sample_id'; is this a LoCoMo file\?"),
        (["x"], r"locomo\.json\[0\] is \['x'\]; a LoCoMo file has a dict there"),
        (conversation() | {"sample_id": "a b"}, r"\[0\]\.sample_id is 'a b'; an id holds no white"),
        (conversation(question("?", ["D2:1"], 6)), r"conv-1:q0\.category is 6; known: 1 multi-hop"),
        (conversation(question("?", [7])), r"conv-1:q0\.evidence is 7; .* has a str there"),
        (conversation(session_2=[{"speaker": "Kim"}]), r"conv-1:session_2 has no 'text'"),
        (conversation(session_2=[turn("D2:1", "hi", " ")]), r"session_2\.speaker is blank"),
        (conversation(session_2=[turn("D10:1", "hi")]), r"turn 'conv-1:D10:1' stands twice"),
        (conversation(session_2_date_time="29 February 2020"), r"session_2: time .* cannot be"),
        (conversation(session_2_date_time="1:00 pm on 29 February, 2021"), r"day is out of range"),
        (conversation(session_2_date_time="13:00 pm on 1 May, 2021"), r"the hour must be 1 to 12"),
        (conversation(session_2_date_time="1:00 pm on 1 Mayo, 2021"), r"cannot be read"),
        (conversation(question("?", [])), r"3 turns and 0 usable questions"),
    ],
)  # fmt: skip
def test_a_file_of_another_shape_is_an_error_naming_the_place(tmp_path, entry, expected):
    with pytest.raises(DatasetError, match=expected):
        imported(tmp_path, entry)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"{}", r"locomo\.json is {}; a LoCoMo file has a list there"),
        (b'[{"a": 1, "a": 2}]', "key 'a' stands twice"),
        (b'[{"a":\n', "not JSON: Expecting value at line 2, column 1; it looks cut off"),
        (b'["\xff"]', "not UTF-8 from byte 2 on"),
    ],
)
def test_an_unreadable_file_is_an_error(tmp_path, raw, expected):
    source = tmp_path / "locomo.json"
    source.write_bytes(raw)
    with pytest.raises(DatasetError, match=expected):
        import_locomo(source)
    with pytest.raises(DatasetError, match="cannot be read: No such file"):
        import_locomo(tmp_path / "missing.json")


def test_importing_twice_gives_the_same_and_it_reads_back(tmp_path):
    entries = [conversation(), conversation() | {"sample_id": "conv-2"}]
    first, _ = imported(tmp_path, *entries)
    second, _ = imported(tmp_path, *entries)
    assert first.fingerprint == second.fingerprint
    folder = write_dataset(first, tmp_path / "out")
    assert load_dataset(folder).fingerprint == first.fingerprint


@pytest.mark.skipif(not LOCOMO.is_file(), reason="LoCoMo is not here")
def test_locomo_itself():
    dataset, report = import_locomo(LOCOMO)
    assert report.counts == {
        "memories": Count(5882, 5882),
        "queries": Count(1986, 1982),
        "judgments": Count(2824, 2820),
    }
    by_category = Counter(query.category for query in dataset.queries)
    assert by_category == {
        "single-hop": 841,
        "adversarial": 446,
        "temporal": 321,
        "multi-hop": 282,
        "open-domain": 92,
    }
    assert sum(n for name, n in by_category.items() if dataset.headline(name)) == 1536
    assert len(dataset.queries) - len({query.group for query in dataset.queries}) == 12
    mended = [note.where for note in report.notes if "read as" in note.done]
    assert len(mended) == 6
    lost = [note.what for note in report.notes if note.done.startswith("dropped")]
    assert lost == [
        "evidence D10:19 is no turn of conv-42",
        "evidence 'D' is not one turn id",
        "evidence D4:36 is no turn of conv-47",
    ]
    assert len({memory.tenancy for memory in dataset.memories}) == 10
    # A stored baseline names it: a change of the importer must be seen here.
    assert dataset.fingerprint == (
        "370fcd3cfbab7013d579323b7bcd2f7c25ff6a968c29d5914a40ddef64af91db"
    )
