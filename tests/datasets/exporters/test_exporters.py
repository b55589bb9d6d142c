"""Exports: read back by our importers to the character, and by others as their formats are."""

import csv
import json
from dataclasses import replace

import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comis_eval.datasets import Attack, Dataset, Judgments, Link
from comis_eval.datasets.exporters import EXPORTERS, export_beir, export_trec
from comis_eval.datasets.importers import BeirOptions, TrecOptions, import_beir, import_trec
from comis_eval.datasets.importers.trec import read_qrels
from comis_eval.datasets.load import load_dataset
from comis_eval.errors import DatasetError
from tests.builders import memory, query
from tests.datasets.strategies import MARKED, datasets

SLOW_DATA = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def made(*contents, queries=("what?",), grades=None, **fields):
    memories = tuple(memory(f"m{n}", content) for n, content in enumerate(contents))
    asked = tuple(query(text, f"q{n}", group=f"q{n}") for n, text in enumerate(queries))
    graded = {(n, 0): 1 for n in range(len(asked))} if grades is None else grades
    return Dataset(
        name="made",
        memories=memories,
        queries=asked,
        judgments=Judgments.of(
            [(q, m, grade) for (q, m), grade in graded.items()], n_queries=len(asked)
        ),
        **fields,
    )


def judged(dataset):
    columns = dataset.judgments
    return {
        (dataset.queries[q].id, dataset.memories[m].id): int(g)
        for q, m, g in zip(columns.queries, columns.rows, columns.grades, strict=True)
    }


def from_beir(folder, out):
    import_beir(folder, out, BeirOptions(None, {}, None, 0))
    return load_dataset(out)


def bare(dataset, marked):
    """Without what BEIR leaves out, and with texts that bite."""
    return replace(
        dataset,
        memories=tuple(
            replace(m, content=text + "." if not text.strip() else text)
            for m, text in zip(dataset.memories, marked, strict=False)
        )
        + dataset.memories[len(marked) :],
        attacks=(),
        links=(),
        edges=(),
        usefulness={},
        embeddings={},
    )


@SLOW_DATA
@given(dataset=datasets(), marked=st.lists(MARKED, min_size=2, max_size=2))
def test_to_beir_and_back_nothing_changes(dataset, marked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("beir")
    given_ = bare(dataset, marked)
    export_beir(given_, folder / "out")
    back = from_beir(folder / "out", folder / "back")
    assert back.fingerprint == given_.fingerprint
    assert [m.id for m in back.memories] == [m.id for m in given_.memories]
    assert (back.name, back.version, back.description) == (
        given_.name,
        given_.version,
        given_.description,
    )


@SLOW_DATA
@given(
    contents=st.lists(MARKED.filter(str.strip), min_size=2, max_size=4),
    texts=st.lists(MARKED, min_size=1, max_size=3),
    data=st.data(),
)
def test_to_trec_and_back_ids_texts_and_grades_are_the_same(
    contents, texts, data, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("trec")
    grades = {
        (n, data.draw(st.integers(0, len(contents) - 1))): data.draw(st.integers(1, 3))
        for n in range(len(texts))
    }
    dataset = made(*contents, queries=texts, grades=grades)
    export_trec(dataset, folder / "out")
    import_trec(folder / "out", folder / "back", TrecOptions(max_bad=0))
    back = load_dataset(folder / "back")
    assert [(m.id, m.content) for m in back.memories] == [
        (m.id, m.content) for m in dataset.memories
    ]
    assert [(q.id, q.text) for q in back.queries] == [(q.id, q.text) for q in dataset.queries]
    assert judged(back) == judged(dataset)


def test_beir_files_are_as_beirs_own_loader_reads_them(tmp_path):
    export_beir(made("a\tb\n<c>", 'd "e"', queries=("x?", "y?")), tmp_path / "out")
    corpus = list(map(json.loads, (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()))
    assert [(row["_id"], row["title"], row["text"]) for row in corpus] == [
        ("m0", "", "a\tb\n<c>"),
        ("m1", "", 'd "e"'),
    ]
    with (tmp_path / "out" / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL))
    assert rows == [["query-id", "corpus-id", "score"], ["q0", "m0", "1"], ["q1", "m0", "1"]]


def test_trec_qrels_are_as_trec_eval_reads_them(tmp_path):
    dataset = made("a", "b", queries=("x", "y"), grades={(0, 0): 2, (0, 1): 0, (1, 1): 3})
    export_trec(dataset, tmp_path / "out")
    with (tmp_path / "out" / "qrels.txt").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    assert qrels == {"q0": {"m0": 2, "m1": 0}, "q1": {"m1": 3}}
    assert read_qrels(tmp_path / "out" / "qrels.txt") == qrels
    run = {"q0": {"m0": 1.0}, "q1": {"m0": 2.0, "m1": 1.0}}
    found = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    assert [found[key]["recip_rank"] for key in ("q0", "q1")] == [1.0, 0.5]


def test_trec_text_is_pinned(tmp_path):
    export_trec(made("a </DOC>\r\n& b ", queries=("Topic: <x>",)), tmp_path / "out")
    assert (tmp_path / "out" / "docs.trec").read_bytes() == (
        b"<DOC>\n<DOCNO>m0</DOCNO>\n<TEXT>\na &lt;/DOC&gt;&#13;\n&amp; b&#32;\n</TEXT>\n</DOC>\n"
    )
    assert (tmp_path / "out" / "topics.trec").read_text() == (
        "<top>\n\n<num> Number: q0\n<title> &#84;opic: &lt;x&gt;\n\n"
        "<desc> Description:\n\n<narr> Narrative:\n\n</top>\n\n"
    )


def test_fixed_splits_are_beirs_files_and_come_back(tmp_path):
    dataset = made(
        "a", queries=("x", "y", "z"), splits={"tune": ("q0",), "select": ("q1",), "test": ("q2",)}
    )
    export_beir(dataset, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out" / "qrels").iterdir()) == [
        "dev.tsv",
        "test.tsv",
        "train.tsv",
    ]
    assert from_beir(tmp_path / "out", tmp_path / "back").fingerprint == dataset.fingerprint
    import_beir(tmp_path / "out", tmp_path / "one", BeirOptions("dev", {}, None, 0))
    one = load_dataset(tmp_path / "one")
    assert ([q.id for q in one.queries], one.splits) == (["q1"], {})
    (tmp_path / "out" / "dataset.yaml").unlink()
    back = from_beir(tmp_path / "out", tmp_path / "other")
    assert back.splits == dataset.splits


def test_what_a_format_cannot_hold_is_listed_and_counted(tmp_path):
    dataset = made(
        "a",
        "b",
        attacks=(Attack("q0", ("m1",), "stuffing"),),
        links=(Link("m0", "m1", 0.5),),
        categories={"uncategorised": False},
    )
    told = {loss.what: loss for loss in export_trec(dataset, tmp_path / "trec").losses}
    assert told["memories: createdAt"][1:] == (2, "left out")
    assert told["memories: trustLevel"][1:] == (2, "left out")
    assert told["queries: now"][1:] == (1, "left out")
    assert told["dataset: attacks"][1:] == (1, "left out")
    assert told["dataset: causal links"][1:] == (1, "left out")
    assert told["dataset: categories outside the headline"][1:] == (1, "left out")
    assert told["poison"][1:] == (1, "exported as documents like any other")
    told = {loss.what: loss for loss in export_beir(dataset, tmp_path / "beir").losses}
    assert "metadata.comis_eval" in told["memories: createdAt"].done
    assert told["dataset: categories outside the headline"].done == "in dataset.yaml"
    card = (tmp_path / "beir" / "README.md").read_text()
    assert dataset.fingerprint in card
    assert "attacks" in card


@pytest.mark.parametrize("form", EXPORTERS)
def test_a_text_that_is_no_text_is_refused_by_name_and_nothing_is_there(form, tmp_path):
    with pytest.raises(DatasetError, match="memory 'm1': holds half of a surrogate pair"):
        EXPORTERS[form](made("fine", "half \ud800"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_trec_cannot_hold_is_refused_by_name(tmp_path):
    dataset = made("a")
    odd = replace(dataset, memories=(replace(dataset.memories[0], id="<m>"),))
    with pytest.raises(DatasetError, match="memory '<m>': the id holds one of < > &"):
        export_trec(odd, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    export_beir(odd, tmp_path / "beir")


def test_a_text_longer_than_a_reader_takes_is_refused_by_name(tmp_path):
    dataset = made("fine", "&" * 2_000_000)
    with pytest.raises(DatasetError, match="memory 'm1': its text is 10000000 characters"):
        export_trec(dataset, tmp_path / "out")


@pytest.mark.parametrize("form", EXPORTERS)
def test_what_nobody_judged_and_a_folder_in_use_are_refused(form, tmp_path):
    with pytest.raises(DatasetError, match="nobody judged it"):
        EXPORTERS[form](made("a", labelled=False), tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(DatasetError, match="not empty"):
        EXPORTERS[form](made("a"), tmp_path / "mine")


def test_queries_that_nothing_answers_come_back_from_beir(tmp_path):
    dataset = made("a", queries=("x", "nothing?"), grades={(0, 0): 1})
    dataset = replace(
        dataset, queries=(dataset.queries[0], replace(dataset.queries[1], answerable=False))
    )
    export_beir(dataset, tmp_path / "out")
    assert from_beir(tmp_path / "out", tmp_path / "back").fingerprint == dataset.fingerprint
    losses = export_trec(dataset, tmp_path / "trec").losses
    assert any(loss.what == "queries without a judgment" and loss.number == 1 for loss in losses)
