"""BEIR folders: one that BEIR's own functions wrote, and everything that may be wrong in one."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.datasets import load_dataset
from comis_eval.datasets.importers import BeirOptions, Redactor, import_beir
from comis_eval.errors import DatasetError
from comis_eval.types import TrustLevel

GOLDEN = Path(__file__).parents[2] / "golden" / "formats" / "beir-2.2.0"
YEAR_2000 = 946_684_800_000
CORPUS = [{"_id": f"d{n}", "title": "", "text": f"text {n}", "metadata": {}} for n in range(4)]
QUERIES = [{"_id": "q1", "text": "one?"}, {"_id": "q2", "text": "two?"}]
QRELS = "q1\td0\t1\nq2\td1\t2\n"


def beir(tmp_path, corpus=CORPUS, queries=QUERIES, **files):
    """Write a BEIR folder; files are those of qrels, without their header."""
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", corpus), ("queries", queries)):
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    for name, text in (files or {"test": QRELS}).items():
        head = "" if text.startswith("query") else "query-id\tcorpus-id\tscore\n"
        (folder / "qrels" / f"{name}.tsv").write_text(head + text)
    return folder


def taken(source, tmp_path, part=None, grades=(), redactor=None, max_bad=0.01):
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    options = BeirOptions(part, dict(grades), redactor, max_bad)
    report = import_beir(source, tmp_path / "set", options)
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    return load_dataset(tmp_path / "set"), report


def graded(dataset):
    judged = dataset.judgments
    return {
        (dataset.queries[q].id, dataset.memories[m].id): int(g)
        for q, m, g in zip(judged.queries, judged.rows, judged.grades, strict=True)
    }


def test_a_folder_that_beirs_own_functions_wrote(tmp_path):
    dataset, report = taken(GOLDEN, tmp_path)
    assert {m.id: m.content for m in dataset.memories} == {
        "d1": "Kiln log\nThe kiln reached 1,240 °C at dusk.\nIt cooled overnight.",
        "d2": "Maya moved the glazing class to Thursday.",
        'd"3"': "Only a title",
        "d5": "Tabs\tand <b>markup</b> & \u202eturned\u202c text, 東京 😀",
    }
    assert graded(dataset) == {
        ("q1", "d1"): 2,
        ("q1", "d2"): 0,
        ("q2", "d2"): 1,
        ("q2", 'd"3"'): 1,
        ("q3", "d1"): 0,
    }
    assert {q.id: (q.text, q.answerable) for q in dataset.queries} == {
        "q1": ("How hot was the kiln?", True),
        "q2": ("When is glazing class?", True),
        "q3": ("Who fired the kiln?", False),
    }
    assert report.counts == {"memories": (5, 4), "queries": (4, 3), "judgments": (5, 5)}
    told = "\n".join(map(str, report.notes))
    assert "1 documents have no text ('d4'); dropped" in told
    assert "1 queries were judged by nobody ('q4'); dropped" in told
    assert "1 queries were judged, and nothing is relevant to them; answerable: false" in told


def test_without_times_all_is_written_at_once_and_asked_a_day_later(tmp_path):
    dataset, report = taken(beir(tmp_path), tmp_path)
    assert {m.created_at for m in dataset.memories} == {YEAR_2000}
    assert {m.trust_level for m in dataset.memories} == {TrustLevel.LEARNED}
    assert {q.now for q in dataset.queries} == {YEAR_2000 + 86_400_000}
    assert any("4 documents have no time" in note.what for note in report.notes)
    assert report.fingerprint == dataset.fingerprint


def test_several_files_of_judgments_are_fixed_splits(tmp_path):
    source = beir(tmp_path, train="q1\td0\t1\n", test="q2\td1\t1\n", old="q1\td1\t1\n")
    dataset, report = taken(source, tmp_path)
    assert dataset.splits == {"tune": ("q1",), "test": ("q2",)}
    assert any("qrels/old.tsv" in note.where for note in report.notes)


def test_one_split_may_be_asked_for(tmp_path):
    source = beir(tmp_path, train="q1\td0\t1\n", test="q2\td1\t1\n")
    dataset, report = taken(source, tmp_path, part="test")
    assert [query.id for query in dataset.queries] == ["q2"]
    assert dataset.splits == {}
    assert any("qrels/train.tsv" in note.where for note in report.notes)


def test_a_query_in_two_splits_is_refused(tmp_path):
    source = beir(tmp_path, train="q1\td0\t1\n", test="q1\td1\t1\n")
    with pytest.raises(DatasetError, match=r"qrels/test\.tsv:2: query 'q1' is judged in tune too"):
        taken(source, tmp_path)
    assert not (tmp_path / "set").exists()


def test_grades_beyond_three_are_an_error_until_it_is_said_what_they_become(tmp_path):
    source = beir(tmp_path, test="q1\td0\t4\nq1\td1\t2\nq2\td1\t5\n")
    with pytest.raises(DatasetError, match=r"beyond 3: 4 \(qrels/test\.tsv:2\), 5.*--grade 4=3"):
        taken(source, tmp_path)
    dataset, report = taken(source, tmp_path, grades={4: 3, 5: 3, 2: 1})
    assert sorted(graded(dataset).values()) == [1, 3, 3]
    assert any("grade 4 read as 3, as asked" in note.done for note in report.notes)


def test_a_title_that_the_text_begins_with_is_not_told_twice(tmp_path):
    corpus = [{"_id": "d0", "title": "A  b", "text": "A b\nc"}, *CORPUS[1:]]
    corpus[1] = {"_id": "d1", "title": "A b", "text": "A bc"}
    dataset, _ = taken(beir(tmp_path, corpus), tmp_path)
    assert [m.content for m in dataset.memories[:2]] == ["A b\nc", "A b\nA bc"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"_id": 7, "text": "x"}', "_id is 7; ids are always text"),
        ('{"text": "x"}', "_id is None"),
        ('{"_id": "a b", "text": "x"}', "holds no white space"),
        ('{"_id": "d0", "text": "x"}', "id 'd0' already stands before it"),
        ('{"_id": "d9", "text": ["x"]}', "text is ['x']; it must be text"),
        ('{"_id": "d9", "text": "x", "text": "y"}', "key 'text' stands twice"),
        ('{"_id": "d9", "text": "\\ud800"}', "half of a surrogate pair"),
        ('{"_id": "d9", "text": "x", "metadata": []}', "metadata is []"),
        ('{"_id": "d9", "text": "x", "metadata": {"comis_eval": 1}}', "comis_eval is 1"),
        (
            '{"_id": "d9", "text": "x", "metadata": {"comis_eval": {"trustLevel": "root"}}}',
            "trustLevel is 'root'",
        ),
        ('{"_id": "d9", "text": "x', "it looks cut off"),
        ("[]", "must be one JSON object"),
        ("", "blank line"),
    ],
)
def test_a_malformed_document_is_listed_with_its_line_and_counted(tmp_path, line, why):
    dataset, report = taken(beir(tmp_path, [*CORPUS, line]), tmp_path, max_bad=0.2)
    assert report.counts["memories"] == (5, 4)
    assert len(dataset.memories) == 4
    note = report.notes[0]
    assert (note.where, note.done) == ("corpus.jsonl:5", "dropped: malformed")
    assert why in note.what


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("q1\td0", "has 2 columns, must have 3"),
        ("q1\td0\thigh", "grade is 'high'"),
        ("q1\td0\t0.5", "grade is '0.5'"),
        ("q1\td0\t1", "already judged at qrels/test.tsv:2"),
        ("q9\td0\t1", "judges query 'q9', which is not there"),
        ("q1\td9\t1", "judges document 'd9', which is not there"),
        ("q1\td3\t-3", "grade is -3; there is -2, -1, or 0 to 3"),
        ('q1\t"d0\t1', "cannot be read"),
    ],
)
def test_a_malformed_judgment_is_listed_with_its_line_and_counted(tmp_path, line, why):
    source = beir(tmp_path, test=f"{QRELS}{line}\n")
    with pytest.raises(DatasetError, match="1 of 3 records are malformed"):
        taken(source, tmp_path)
    assert not (tmp_path / "set").exists()
    _, report = taken(source, tmp_path, max_bad=0.5)
    assert report.counts["judgments"] == (3, 2)
    assert report.notes[0].where == "qrels/test.tsv:4"
    assert why in report.notes[0].what


def test_malformed_and_repeated_queries(tmp_path):
    queries = [*QUERIES, {"_id": "q1", "text": "again"}, {"_id": "q3"}]
    dataset, report = taken(beir(tmp_path, queries=queries), tmp_path, max_bad=0.5)
    assert [query.text for query in dataset.queries] == ["one?", "two?"]
    assert report.counts["queries"] == (4, 2)
    assert sorted(note.where for note in report.notes if "malformed" in note.done) == [
        "queries.jsonl:3",
        "queries.jsonl:4",
    ]


def test_each_kind_has_its_own_share_of_malformed_records(tmp_path):
    corpus = [{"_id": f"d{n}", "text": "x"} for n in range(300)]
    source = beir(tmp_path, corpus, [*QUERIES, "x"])
    with pytest.raises(DatasetError, match=r"queries\.jsonl: 1 of 3 records are malformed"):
        taken(source, tmp_path)


def test_a_query_whose_relevant_documents_are_gone_is_not_called_unanswerable(tmp_path):
    source = beir(tmp_path, test="q1\td0\t1\nq2\td9\t1\nq2\td1\t0\n")
    dataset, report = taken(source, tmp_path, max_bad=0.5)
    assert [query.id for query in dataset.queries] == ["q1"]
    assert any("none of the documents relevant to query 'q2'" in n.what for n in report.notes)


def test_other_keys_are_left_out_and_counted(tmp_path):
    corpus = [CORPUS[0] | {"url": "x", "metadata": {"year": 7}}, *CORPUS[1:]]
    _, report = taken(beir(tmp_path, corpus), tmp_path)
    told = [str(note) for note in report.notes]
    assert "corpus.jsonl: 1 records have 'url'; left out" in told
    assert "corpus.jsonl: 1 records have 'metadata.year'; left out" in told


def test_redaction_keeps_judgments_joined(tmp_path):
    corpus = [{"_id": "ada@example.org", "text": "mail ada@example.org"}, *CORPUS[1:]]
    source = beir(tmp_path, corpus, test="q1\tada@example.org\t1\nq2\td1\t1\n")
    dataset, report = taken(source, tmp_path, redactor=Redactor(b"k" * 32))
    assert len(graded(dataset)) == 2
    for path in (tmp_path / "set").iterdir():
        assert "example.org" not in path.read_text()
    assert any("2 secrets found by pattern" in note.what for note in report.notes)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda s: (s / "corpus.jsonl").unlink(), r"corpus\.jsonl: no such file"),
        (lambda s: (s / "queries.jsonl").unlink(), r"queries\.jsonl: no such file"),
        (lambda s: (s / "qrels" / "test.tsv").unlink(), r"does not hold train\.tsv, dev\.tsv"),
        (lambda s: (s / "qrels" / "test.tsv").write_text("q1\td0\t1\n"), "1: must be 'query-id"),
        (lambda s: (s / "corpus.jsonl").write_text(""), "holds no document"),
        (lambda s: (s / "queries.jsonl").write_text(""), "malformed"),
        (lambda s: (s / "dataset.yaml").write_text("name: [x]"), r"dataset\.yaml:1: name"),
    ],
)
def test_a_folder_that_is_none_is_one_error_and_no_folder(tmp_path, broken, message):
    source = beir(tmp_path)
    broken(source)
    with pytest.raises(DatasetError, match=message):
        taken(source, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beir"]


def test_what_metadata_claims_is_checked_whole(tmp_path):
    trusted = {"comis_eval": {"trustLevel": "system", "sourceIds": ["d1"]}}
    corpus = [CORPUS[0] | {"metadata": trusted}, *CORPUS[1:]]
    with pytest.raises(DatasetError, match="launders trust"):
        taken(beir(tmp_path, corpus), tmp_path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["comis_eval", "id", "createdAt", "group"]), inner)
    ),
    max_leaves=5,
)
LINES = st.dictionaries(
    st.sampled_from(["_id", "title", "text", "metadata", "x"]), VALUES, max_size=5
).map(json.dumps) | st.text(max_size=8)


@settings(deadline=None, derandomize=True)
@given(
    document=LINES,
    query=LINES,
    words=st.lists(st.sampled_from(["q1", "d0", "1", "-1", "", '"', "\x00", "9" * 30]), max_size=4),
)
def test_whatever_a_line_holds_is_taken_or_told(document, query, words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    source = beir(folder, [*CORPUS, document], [*QUERIES, query], test=QRELS + "\t".join(words))
    try:
        taken(source, folder, max_bad=1)
    except DatasetError:
        assert not (folder / "set").exists()
