"""LongMemEval: every question with its haystack; one file by the benchmark's own code."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.datasets import load_dataset
from comis_eval.datasets.importers import LongMemEvalOptions, Redactor, import_longmemeval
from comis_eval.errors import DatasetError

GOLDEN = Path(__file__).parents[2] / "golden" / "formats" / "longmemeval-custom_history.json"
SAID = {"role": "user", "content": "I fired the kiln on Monday"}
HEARD = {"role": "assistant", "content": "How hot was it?"}
OTHER = {"role": "user", "content": "What about tax?"}


def question(own="q1", **changes):
    """One member of the file: two sessions, the first answers."""
    value = {
        "question_id": own,
        "question_type": "temporal-reasoning",
        "question": "When did I fire the kiln?",
        "answer": 7,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["answer_1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [[SAID | {"has_answer": True}, HEARD], [OTHER]],
        "answer_session_ids": ["answer_1"],
    }
    value.update(changes)
    return value


def imported(tmp_path, *members, **options):
    source = tmp_path / "longmemeval.json"
    source.write_text(json.dumps(members), encoding="utf-8")
    before = source.read_bytes()
    report = import_longmemeval(source, tmp_path / "set", LongMemEvalOptions(**options))
    assert source.read_bytes() == before
    return load_dataset(tmp_path / "set"), report


def ms(*date):
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)


def graded(dataset):
    judged = dataset.judgments
    return {
        (dataset.queries[q].id, dataset.memories[m].id): int(g)
        for q, m, g in zip(judged.queries, judged.rows, judged.grades, strict=True)
    }


@pytest.mark.parametrize(
    ("unit", "relevant"),
    [
        ("session", {"7a1c:answer_7a1c_1", "7a1c:answer_7a1c_2"}),
        ("turn", {"7a1c:answer_7a1c_1:0", "7a1c:answer_7a1c_2:2"}),
    ],
)
def test_a_file_that_the_benchmarks_own_code_wrote(tmp_path, unit, relevant):
    report = import_longmemeval(GOLDEN, tmp_path / "set", LongMemEvalOptions(unit))
    dataset = load_dataset(tmp_path / "set")
    assert {memory_id for _, memory_id in graded(dataset)} == relevant
    sessions, turns = (11, 23)
    assert len(dataset.memories) == (sessions if unit == "session" else turns)
    first, second = dataset.queries
    assert (first.text, first.answerable) == ("How many times did I fire the kiln?", True)
    assert first.now == ms(2023, 5, 30, 22, 50)
    assert (second.id, second.answerable) == ("9e2f_abs", False)
    assert second.now == ms(2023, 6, 3, 23, 59)  # the code leaves some questions without a time
    assert [note.done for note in report.notes] == [  # it draws fillers with replacement
        "kept as '7a1c_1#2'",
        "kept as '7a1c_1#3'",
        "left out: nothing answers them",
    ]


def test_sessions_are_memories_of_the_questions_own_tenant(tmp_path):
    dataset, report = imported(tmp_path, question())
    first, second = dataset.memories
    assert first.id == "q1:answer_1"
    assert first.content == "user: I fired the kiln on Monday\nassistant: How hot was it?"
    assert (first.created_at, second.created_at) == (
        ms(2023, 5, 20, 2, 21),
        ms(2023, 5, 21, 10, 0),
    )
    (query,) = dataset.queries
    assert (query.text, query.category) == ("When did I fire the kiln?", "temporal-reasoning")
    assert query.now == ms(2023, 5, 30, 23, 40)
    assert {m.tenancy.tenant_id for m in dataset.memories} == {query.tenancy.tenant_id} == {"q1"}
    assert graded(dataset) == {("q1", "q1:answer_1"): 1}
    assert [tuple(count) for count in report.counts.values()] == [(2, 2), (1, 1), (1, 1)]
    assert report.notes == ()


def test_turns_are_memories_a_second_apart_and_marked_ones_are_relevant(tmp_path):
    dataset, _ = imported(tmp_path, question(), unit="turn")
    assert [m.id for m in dataset.memories] == ["q1:answer_1:0", "q1:answer_1:1", "q1:s2:0"]
    assert dataset.memories[1].content == "assistant: How hot was it?"
    assert dataset.memories[1].created_at - dataset.memories[0].created_at == 1000
    assert dataset.memories[1].source.who == "assistant"
    assert graded(dataset) == {("q1", "q1:answer_1:0"): 1}


@pytest.mark.parametrize("unit", ["session", "turn"])
def test_abstention_questions_are_unanswerable_and_their_evidence_is_told(tmp_path, unit):
    dataset, report = imported(tmp_path, question(), question("q1_abs"), unit=unit)
    assert [query.answerable for query in dataset.queries] == [True, False]
    assert {query for query, _ in graded(dataset)} == {"q1"}
    assert report.counts["judgments"] == (2, 1)
    assert any("pieces of evidence of _abs questions" in note.what for note in report.notes)


def test_questions_that_share_evidence_or_a_twin_share_a_group(tmp_path):
    other = {"haystack_session_ids": ["x", "s2"], "answer_session_ids": ["x"]}
    both = {"answer_session_ids": ["s2", "answer_1"]}
    third = {"haystack_session_ids": ["y", "s9"], "answer_session_ids": ["y"]}
    dataset, _ = imported(
        tmp_path,
        question("q1"),
        question("q2", **other),
        question("q3_abs", answer_session_ids=["z"]),
        question("q4", **both),
        question("q3", **third),
    )
    assert [query.group for query in dataset.queries] == ["q1", "q2", "q3_abs", "q1", "q3_abs"]


def test_evidence_that_is_not_there_is_told_and_a_question_without_any_goes(tmp_path):
    members = (
        question("q1", answer_session_ids=["answer_1", "gone"]),
        question("q2", answer_session_ids=["gone"]),
    )
    dataset, report = imported(tmp_path, *members)
    assert [query.id for query in dataset.queries] == ["q1"]
    assert {m.tenancy.tenant_id for m in dataset.memories} == {"q1"}
    assert report.counts == {"memories": (4, 2), "queries": (2, 1), "judgments": (3, 1)}
    assert [note.done for note in report.notes] == [
        "evidence dropped",
        "evidence dropped",
        "question dropped with its haystack: it cannot be judged",
    ]


def test_without_a_marked_turn_a_question_cannot_be_judged_by_turn(tmp_path):
    unmarked = question("q2", haystack_sessions=[[SAID, HEARD], [OTHER]])
    dataset, report = imported(tmp_path, question("q1"), unmarked, unit="turn")
    assert [query.id for query in dataset.queries] == ["q1"]
    assert "no marked turn" in report.notes[0].what


def test_turns_and_sessions_without_text_are_left_out_and_counted(tmp_path):
    blank = {"role": "user", "content": " \n"}
    member = question(haystack_sessions=[[SAID, blank], [blank]])
    dataset, report = imported(tmp_path, member)
    assert [m.content for m in dataset.memories] == ["user: I fired the kiln on Monday"]
    told = [str(note) for note in report.notes]
    assert any("2 turns without text; left out" in note for note in told)
    assert any("1 sessions without text; left out" in note for note in told)


def test_a_session_that_stands_twice_is_kept_twice(tmp_path):
    dataset, report = imported(tmp_path, question(haystack_session_ids=["answer_1", "answer_1"]))
    assert [m.id for m in dataset.memories] == ["q1:answer_1", "q1:answer_1#2"]
    assert len(graded(dataset)) == 2
    assert "stands twice" in report.notes[0].what


def test_odd_days_and_sessions_of_the_future_are_counted(tmp_path):
    member = question(
        question_date="2023/05/20 (Mon) 03:00", haystack_dates=["2023/05/20 02:21"] * 2
    )
    late = question("q2", question_date="2023/05/20 (Sat) 03:00")
    dataset, report = imported(tmp_path, member, late)
    assert dataset.queries[0].now == ms(2023, 5, 20, 3, 0)
    told = [str(note) for note in report.notes]
    assert any("1 sessions are dated after their question; kept" in note for note in told)
    assert any("1 dates have another day of the week" in note for note in told)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"question_id": 7}, "question_id is 7"),
        ({"question_id": "a b"}, "holds no white space"),
        ({"question": " "}, "question is ' '; it must be text"),
        ({"question_type": None}, "question_type is None"),
        ({"question_type": "all"}, "'all' is taken"),
        ({"question_date": "30 May 2023"}, "it must be like '2023/05/20 (Sat) 02:21'"),
        ({"question_date": "2023/05/30 (Tue)  23:40"}, "it must be like"),
        ({"question_date": "2023/05/30 (Tue) 24:40"}, "hour must be in 0..23"),
        ({"question_date": "2023/02/30 (Thu) 02:21"}, "day is out of range"),
        ({"question_date": "２０２３/05/30 (Tue) 23:40"}, "it must be like"),
        ({"haystack_dates": []}, "have 2, 0 and 2 members"),
        ({"haystack_sessions": [[SAID], {}]}, r"haystack_sessions[1] is {}"),
        ({"haystack_sessions": [["hi"], []]}, "haystack_sessions[0][0] is 'hi'"),
        ({"haystack_sessions": [[{"role": "user"}], []]}, "must have role and content"),
        ({"haystack_sessions": [[SAID | {"has_answer": "yes"}], []]}, "has_answer is 'yes'"),
        ({"answer_session_ids": None}, "answer_session_ids is None"),
        ({"question_id": "q1"}, "already stands before it"),
    ],
)
def test_a_malformed_question_is_listed_with_its_place_and_counted(tmp_path, changes, why):
    members = question("q1"), question(**{"question_id": "q2"} | changes)
    dataset, report = imported(tmp_path, *members, max_bad=0.5)
    assert [query.id for query in dataset.queries] == ["q1"]
    assert report.counts["queries"] == (2, 1)
    note = report.notes[0]
    assert (note.where, note.done) == ("[1] (line 1)", "dropped: malformed")
    assert why in note.what


def test_more_than_one_in_a_hundred_malformed_stops_the_import(tmp_path):
    with pytest.raises(DatasetError, match=r"1 of 2 records are malformed.*\n.*question_id is 7"):
        imported(tmp_path, question("q1"), question(question_id=7))
    assert not (tmp_path / "set").exists()


def test_redaction_reaches_sessions_and_questions(tmp_path):
    secret = {"role": "user", "content": "mail ada@example.org"}
    member = question(
        haystack_sessions=[[secret | {"has_answer": True}], [OTHER]],
        question="Who is ada@example.org?",
    )
    imported(tmp_path, member, redactor=Redactor(b"k" * 32))
    for name in ("memories.jsonl", "queries.jsonl"):
        text = (tmp_path / "set" / name).read_text()
        assert "example.org" not in text
        assert "[email:" in text


def test_no_question_no_folder(tmp_path):
    with pytest.raises(DatasetError, match="no question that can be used"):
        imported(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["longmemeval.json"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "a", "_abs", "2023/05/30 23:40"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "has_answer"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None, derandomize=True)
@given(changes=st.dictionaries(st.sampled_from(sorted(question())), JSON, max_size=4))
def test_whatever_a_member_holds_is_taken_or_told(changes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    try:
        dataset, report = imported(folder, question("fine"), question(**changes), max_bad=1)
    except DatasetError:
        pytest.fail("one bad member ended an import that allows it")
    assert report.counts["queries"].found == 2
    assert "fine" in dataset.position_of
