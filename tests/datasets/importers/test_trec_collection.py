"""TREC collections: classic SGML, files that ir_datasets wrote, and Cranfield's trap."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.datasets import load_dataset
from comis_eval.datasets.importers import Redactor, TrecOptions, import_trec
from comis_eval.errors import DatasetError

GOLDEN = Path(__file__).parents[2] / "golden" / "formats" / "ir_datasets-0.6.3"
CRANFIELD = Path(__file__).parents[3].parent / "shared" / "data" / "cranfield"
DOCS = """\
<DOC>
<DOCNO> FT911-1 </DOCNO>
<DATE>910514</DATE>
<HEADLINE>
Kiln &amp; glaze
</HEADLINE>
<TEXT>
<P>
The kiln is hot.
</P>
</TEXT>
</DOC>
<doc><docno>FT911-2</docno><text>R&D at 1 < 2</text></doc>
<DOC>
<DOCNO>FT911-3</DOCNO>
<TEXT>
</TEXT>
</DOC>
"""
TOPICS = """\
<top>

<num> Number: 301
<title> Topic: Hot kilns

<desc> Description:
How hot are kilns?

<narr> Narrative:
Degrees matter.

</top>

<top>
<num> Number: 305
<title>
second
</title>
<desc> Description:
Which is second?
</top>
"""
QRELS = "301 0 FT911-1 2\n305 0 FT911-2 1\n"


def trec(tmp_path, docs=DOCS, topics=TOPICS, qrels=QRELS):
    source = tmp_path / "trec"
    source.mkdir()
    (source / "docs.trec").write_text(docs)
    (source / "topics.txt").write_text(topics)
    (source / "qrels.txt").write_text(qrels)
    return source


def taken(source, tmp_path, **options):
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    report = import_trec(source, tmp_path / "set", TrecOptions(**options))
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    return load_dataset(tmp_path / "set"), report


def graded(dataset):
    judged = dataset.judgments
    return {
        (dataset.queries[q].id, dataset.memories[m].id): int(g)
        for q, m, g in zip(judged.queries, judged.rows, judged.grades, strict=True)
    }


def test_classic_documents_and_topics(tmp_path):
    dataset, report = taken(trec(tmp_path), tmp_path)
    assert {m.id: m.content for m in dataset.memories} == {
        "FT911-1": "Kiln & glaze\nThe kiln is hot.",
        "FT911-2": "R&D at 1 < 2",
    }
    assert {q.id: q.text for q in dataset.queries} == {"301": "Hot kilns", "305": "second"}
    assert graded(dataset) == {("301", "FT911-1"): 2, ("305", "FT911-2"): 1}
    assert report.counts == {"memories": (3, 2), "queries": (2, 2), "judgments": (2, 2)}
    told = [str(note) for note in report.notes]
    assert "docs.trec: 1 documents have an element <date>; left out" in told
    assert "docs.trec: 1 documents have markup inside their text; left out" in told
    assert any("1 documents have no text ('FT911-3')" in note for note in told)


def test_files_that_ir_datasets_wrote(tmp_path):
    dataset, report = taken(GOLDEN, tmp_path)
    assert {m.id: m.content for m in dataset.memories} == {
        "d1": "The kiln reached 1,240 °C.\nIt cooled.",
        "d2": "Maya moved the class to Thursday.",
        "d3": "東京 <b>& \t tabs</b> 😀",
    }
    assert {q.id: (q.text, q.answerable) for q in dataset.queries} == {
        "301": ("How hot was the kiln?", True),
        "302": ("When is class?", True),
        "303": ("Who?", False),
    }
    assert graded(dataset) == {
        ("301", "d1"): 2,
        ("301", "d2"): 0,
        ("302", "d2"): 1,
        ("303", "d1"): 0,
    }
    done = {note.done for note in report.notes}
    assert "grade -2 (junk) read as 0" in done
    assert "dropped: grade -1 says that nobody judged them" in done
    assert report.counts["judgments"] == (5, 4)


def test_negative_grades_may_be_mapped_otherwise(tmp_path):
    dataset, _ = taken(GOLDEN, tmp_path, grades={-1: 0, -2: 1})
    assert graded(dataset)["302", "d3"] == 0
    assert graded(dataset)["301", "d2"] == 1


def test_another_field_of_the_topic_may_be_asked(tmp_path):
    dataset, _ = taken(trec(tmp_path), tmp_path, topic_field="desc")
    assert [q.text for q in dataset.queries] == ["How hot are kilns?", "Which is second?"]


def test_a_topic_without_the_field_is_malformed(tmp_path):
    with pytest.raises(DatasetError, match=r"topics\.txt:14: has no narr .see --topic-field"):
        taken(trec(tmp_path), tmp_path, topic_field="narr")


def test_documents_may_be_a_folder_of_files_and_files_may_be_named(tmp_path):
    source = trec(tmp_path)
    (source / "ft" / "deep").mkdir(parents=True)
    first, rest = DOCS.split("<doc>")
    (source / "ft" / "b").write_text("<doc>" + rest)
    (source / "ft" / "deep" / "a").write_text(first)
    (source / "docs.trec").unlink()
    (source / "judged").write_text(QRELS)
    names = {"documents": Path("ft"), "qrels": Path("judged"), "topics": Path("topics.txt")}
    dataset, _ = taken(source, tmp_path, **names)
    assert [m.id for m in dataset.memories] == ["FT911-2", "FT911-1"]


def test_qrels_that_count_topics_in_file_order(tmp_path):
    source = trec(tmp_path, qrels="1 0 FT911-1 1\n2 0 FT911-2 1\n")
    with pytest.raises(DatasetError, match=r"judges query '1'.*--topics-by-position"):
        taken(source, tmp_path)
    dataset, _ = taken(source, tmp_path, by_position=True)
    assert {q.id: q.text for q in dataset.queries} == {"1": "Hot kilns", "2": "second"}


def test_counted_by_place_no_topic_may_be_malformed(tmp_path):
    topics = TOPICS.replace("<num> Number: 301", "")
    with pytest.raises(DatasetError, match=r"topics\.txt:1: has no num.*must be sound"):
        taken(trec(tmp_path, topics=topics), tmp_path, by_position=True, max_bad=1)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("<DOC><TEXT>x</TEXT></DOC>", "has no DOCNO"),
        ("<DOC><DOCNO>a</DOCNO><DOCNO>b</DOCNO><TEXT>x</TEXT></DOC>", "has two DOCNO"),
        ("<DOC><DOCNO>a b</DOCNO><TEXT>x</TEXT></DOC>", "holds no white space"),
        ("<DOC><DOCNO>FT911-1</DOCNO><TEXT>x</TEXT></DOC>", "already stands before it"),
        ("<DOC><DOCNO>a</DOCNO><TEXT>x", "no </DOC> closes what is last"),
        ("stray \x1b[2J", "stands outside of any <DOC>"),
    ],
)
def test_a_malformed_document_is_listed_with_its_line_and_counted(tmp_path, more, why):
    dataset, report = taken(trec(tmp_path, docs=DOCS + more), tmp_path, max_bad=0.3)
    assert report.counts["memories"] == (4, 2)
    assert len(dataset.memories) == 2
    note = report.notes[0]
    assert note.where.startswith("docs.trec:1")
    assert note.done == "dropped: malformed"
    assert why in note.what
    assert "\x1b" not in str(note)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("301 0 FT911-1", "has 3 columns, must have 4"),
        ("301 0 FT911-1 1", "already judged at qrels.txt:1"),
        ("999 0 FT911-1 1", "judges query '999', which is not there"),
        ("301 0 FT9 1", "judges document 'FT9', which is not there"),
        ("301 0 FT911-2 yes", "grade is 'yes'; it must be a whole number"),
    ],
)
def test_a_malformed_judgment_is_listed_with_its_line_and_counted(tmp_path, line, why):
    source = trec(tmp_path, qrels=f"{QRELS}{line}\n")
    with pytest.raises(DatasetError, match="1 of 3 records are malformed"):
        taken(source, tmp_path)
    _, report = taken(source, tmp_path, max_bad=0.5)
    assert report.notes[0].where == "qrels.txt:3"
    assert why in report.notes[0].what


def test_a_judgment_of_a_document_without_text_goes_with_it(tmp_path):
    source = trec(tmp_path, qrels=QRELS + "301 0 FT911-3 1\n")
    dataset, report = taken(source, tmp_path)
    assert len(graded(dataset)) == 2
    told = [str(note) for note in report.notes]
    assert any("qrels.txt:3: judges document 'FT911-3', which has no text" in n for n in told)


def test_tsv_topics_and_their_faults(tmp_path):
    topics = "301\tHot kilns\n305\tsecond\n306\n"
    dataset, report = taken(trec(tmp_path, topics=topics), tmp_path, max_bad=0.5)
    assert [q.text for q in dataset.queries] == ["Hot kilns", "second"]
    assert str(report.notes[0]).startswith("topics.txt:3: has 1 columns, must have 2")


def test_json_documents_and_their_faults(tmp_path):
    source = trec(tmp_path)
    (source / "docs.trec").unlink()
    lines = [
        '{"id": "FT911-1", "title": "Kiln", "contents": "hot", "url": "x"}',
        '{"docno": "FT911-2", "text": "cold"}',
        '{"docno": 7, "text": "x"}',
        '{"text": "x"}',
        "{",
    ]
    (source / "docs.jsonl").write_text("\n".join(lines) + "\n")
    dataset, report = taken(source, tmp_path, max_bad=0.6)
    assert [m.content for m in dataset.memories] == ["Kiln\nhot", "cold"]
    assert sorted(n.where for n in report.notes if "malformed" in n.done) == [
        "docs.jsonl:3",
        "docs.jsonl:4",
        "docs.jsonl:5",
    ]
    assert any("a key 'url'" in note.what for note in report.notes)


def test_what_is_missing_is_named(tmp_path):
    source = trec(tmp_path)
    (source / "qrels.txt").unlink()
    with pytest.raises(DatasetError, match=r"holds none of qrels\.txt, .* with --qrels"):
        taken(source, tmp_path)
    with pytest.raises(DatasetError, match="no folder"):
        taken(source / "docs.trec", tmp_path)
    assert not (tmp_path / "set").exists()


def test_redaction(tmp_path):
    docs = DOCS.replace("R&D at", "mail ada@example.org")
    taken(trec(tmp_path, docs=docs), tmp_path, redactor=Redactor(b"k" * 32))
    assert "example.org" not in (tmp_path / "set" / "memories.jsonl").read_text()


PIECES = st.lists(
    st.sampled_from(
        [b"<DOC>", b"</DOC>", b"<DOCNO>", b"</DOCNO>", b"<TEXT>", b"</TEXT>", b"<top>", b"</top>"]
    )
    | st.sampled_from([b"<num>", b"<title>", b"&#0;", b"a", b" ", b"\n", b"\xff", b"<", b"</"])
    | st.binary(max_size=3),
    max_size=12,
).map(b"".join)


@settings(deadline=None, derandomize=True)
@given(docs=PIECES, topics=PIECES, qrels=PIECES)
def test_whatever_bytes_stand_there_are_taken_or_told(docs, topics, qrels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    source = trec(folder)
    for name, more in (("docs.trec", docs), ("topics.txt", topics), ("qrels.txt", qrels)):
        with (source / name).open("ab") as file:
            file.write(more)
    try:
        dataset, _ = taken(source, folder, max_bad=1)
    except DatasetError:
        assert not (folder / "set").exists()
    else:
        assert "FT911-1" in dataset.row_of


@pytest.mark.skipif(not CRANFIELD.exists(), reason="the Cranfield files are not on this machine")
def test_cranfield(tmp_path):
    names = {
        "documents": Path("cran.all.1400.xml"),
        "topics": Path("cran.qry.xml"),
        "qrels": Path("cranqrel.trec.txt"),
    }
    with pytest.raises(DatasetError, match="--topics-by-position"):
        taken(CRANFIELD, tmp_path, **names)
    dataset, report = taken(CRANFIELD, tmp_path, **names, by_position=True, grades={3: 1})
    assert report.counts == {
        "memories": (1400, 1398),
        "queries": (225, 225),
        "judgments": (1837, 1836),
    }
    assert sum(grade > 0 for grade in graded(dataset).values()) == 1611
