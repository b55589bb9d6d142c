"""Agreement, the one rule of merging, and what an export writes."""

from dataclasses import replace

import pytest

from comis_eval.datasets import load_dataset, validate, write_dataset
from comis_eval.errors import JudgeError
from comis_eval.judge.agreement import TABLE, Disagreement, Grader, compared, given, rows
from comis_eval.judge.export import merged, plan, write
from comis_eval.judge.journal import Act, Journal, Pair, read_all
from comis_eval.judge.pairs import seen
from tests.datasets.folders import tiny
from tests.judge.small import MEMORIES, QUERIES, dataset

ADA, BOB, AGAIN = Grader("ada", 1), Grader("bob", 1), Grader("ada", 2)
ONE, TWO, THREE, FOUR = (Pair("q1", f"m{n}") for n in range(4))


def judge(folder, of, name, graded, sitting=1):
    with Journal(folder, name) as journal:
        for pair, grade in graded.items():
            journal.append(Act.GRADE, pair, sitting=sitting, grade=grade, seen=seen(of, pair))


def test_judges_are_compared_on_what_both_graded():
    found = compared(
        {
            ADA: {ONE: 0, TWO: 1, THREE: 2, FOUR: 3, Pair("q2", "m0"): 3},
            BOB: {ONE: 0, TWO: 1, THREE: 2, FOUR: 2},
            Grader("eve", 1): {Pair("q2", "m1"): 1},
        }
    )
    assert [(one.first, one.second) for one in found] == [(ADA, BOB)]
    assert found[0].agreement.kappa == pytest.approx(0.875)
    assert (found[0].agreement.n, found[0].agreement.same) == (4, 3)
    assert found[0].disagreements == (Disagreement(FOUR, 3, 2),)
    assert len(TABLE) == len(rows(found)[0])
    assert rows(found) == [["ada", "bob", "0.88", "- to -", "4", "3"]]


def test_disagreements_come_furthest_apart_first():
    (found,) = compared({ADA: {ONE: 0, TWO: 3, THREE: 1}, BOB: {ONE: 1, TWO: 0, THREE: 1}})
    assert [one.pair for one in found.disagreements] == [TWO, ONE]


def test_a_second_look_is_compared_with_the_first(tmp_path):
    of = dataset()
    judge(tmp_path, of, "ada", {ONE: 1, TWO: 2})
    judge(tmp_path, of, "ada", {ONE: 3}, sitting=2)
    taken = given(of, read_all(tmp_path))
    assert taken.grades == {ADA: {ONE: 1, TWO: 2}, AGAIN: {ONE: 3}}
    assert rows(compared(taken.grades))[0][:2] == ["ada", "ada, second pass"]


def test_what_was_graded_of_another_text_or_of_nothing_does_not_count(tmp_path):
    judge(tmp_path, dataset(), "ada", {ONE: 1, TWO: 2, THREE: 3})
    now = dataset(memories=[MEMORIES[0], replace(MEMORIES[1], content="new")])
    taken = given(now, read_all(tmp_path))
    assert taken.grades == {ADA: {ONE: 1}}
    assert taken.stale == ((ADA, TWO),)
    assert taken.unknown == ((ADA, THREE),)


def test_a_grade_stands_when_all_who_graded_gave_it():
    settled, unsettled = merged({ADA: {ONE: 1, TWO: 2, THREE: 3}, BOB: {TWO: 2, THREE: 2}})
    assert settled == {ONE: 1, TWO: 2}
    assert [(one.pair, one.grades) for one in unsettled] == [(THREE, {ADA: 3, BOB: 2})]


def test_there_is_no_majority():
    graders = {Grader(name, 1): {ONE: 3} for name in "abc"} | {BOB: {ONE: 0}}
    assert merged(graders)[0] == {}


def test_ones_own_second_look_must_agree_too():
    assert merged({ADA: {ONE: 1}, AGAIN: {ONE: 2}})[0] == {}
    assert merged({ADA: {ONE: 1}, AGAIN: {ONE: 1}})[0] == {ONE: 1}


def test_the_resolver_decides_and_his_last_look_is_his_word():
    grades = {ADA: {ONE: 1, TWO: 2}, BOB: {ONE: 3}, AGAIN: {ONE: 2}}
    assert merged(grades, resolver="ada") == ({ONE: 2, TWO: 2}, ())
    assert merged(grades, resolver="bob")[0] == {ONE: 3, TWO: 2}
    with pytest.raises(
        JudgeError, match="--resolver eve has judged nothing here; judges: ada, bob"
    ):
        merged(grades, resolver="eve")


@pytest.fixture
def folder(tmp_path):
    """A set with q1 m0 3 and q2 m1 2 in its qrels."""
    return write_dataset(dataset(triples=[(0, 0, 3), (1, 1, 2)]), tmp_path / "small")


def test_an_export_adds_and_keeps_what_is_there(folder):
    of = load_dataset(folder)
    planned = plan(of, {Pair("q2", "m0"): 1, ONE: 3, Pair("q2", "m1"): 0, TWO: 0}, ())
    assert planned.added == {TWO: 0, Pair("q2", "m0"): 1}
    assert planned.same == 1
    assert planned.differing == ((Pair("q2", "m1"), 2, 0),)
    assert write(of, planned) == folder / "qrels.tsv"
    assert (folder / "qrels.tsv").read_text() == (
        "q1\t0\tm0\t3\nq2\t0\tm1\t2\nq1\t0\tm1\t0\nq2\t0\tm0\t1\n"
    )
    assert validate(folder).faults == ()


def test_lines_that_stay_are_left_as_they_stand(folder):
    odd = b"q1 0\tm0  3\r\nq2\r0\tm1\t2"
    (folder / "qrels.tsv").write_bytes(odd)
    of = load_dataset(folder)
    write(of, plan(of, {TWO: 1}, ()))
    assert (folder / "qrels.tsv").read_bytes() == odd + b"\nq1\t0\tm1\t1\n"
    assert len(load_dataset(folder).judgments) == 3


def test_a_differing_grade_is_replaced_only_when_asked(folder):
    of = load_dataset(folder)
    planned = plan(of, {ONE: 1}, (), replace=True)
    write(of, planned, replace=True)
    assert (folder / "qrels.tsv").read_text() == "q1\t0\tm0\t1\nq2\t0\tm1\t2\n"
    again = load_dataset(folder)
    assert plan(again, {ONE: 1}, ()).same == 1


def test_a_set_without_qrels_gets_some(folder):
    (folder / "qrels.tsv").unlink()
    of = load_dataset(folder, labelled=False)
    planned = plan(of, {ONE: 2}, ())
    write(of, planned)
    assert (folder / "qrels.tsv").read_text() == "q1\t0\tm0\t2\n"
    assert planned.unanswered == ("q2",)


def test_it_says_which_queries_validate_will_refuse():
    of = dataset(queries=[QUERIES[0], replace(QUERIES[1], answerable=False)], triples=[(0, 0, 1)])
    planned = plan(of, {ONE: 0, Pair("q2", "m1"): 2}, (), replace=True)
    assert planned.unanswered == ("q1",)
    assert planned.answered == ("q2",)
    assert plan(of, {ONE: 0}, ()).unanswered == ()  # the grade that is there stays


def test_a_file_that_changed_meanwhile_is_not_overwritten(folder):
    of = load_dataset(folder)
    (folder / "qrels.tsv").write_text("q1\t0\tm0\t1\n")
    with pytest.raises(JudgeError, match="changed while"):
        write(of, plan(of, {TWO: 1}, ()))
    assert (folder / "qrels.tsv").read_text() == "q1\t0\tm0\t1\n"


def test_a_failed_write_leaves_the_old_file(folder, monkeypatch):
    of = load_dataset(folder)
    before = (folder / "qrels.tsv").read_text()
    monkeypatch.setattr("pathlib.Path.write_text", _full)
    with pytest.raises(OSError, match="full"):
        write(of, plan(of, {TWO: 1}, ()))
    assert (folder / "qrels.tsv").read_text() == before
    assert not list(folder.glob(".*partial"))


def _full(*_, **__):
    raise OSError(28, "full")


def test_the_first_judgments_end_what_says_that_there_are_none(tmp_path):
    folder = tiny(
        tmp_path / "d",
        dataset_yaml="name: tiny\nlabelled: false  # not yet\npolicy: {trustLevels: [system]}\n",
        qrels_tsv=None,
        queries_jsonl='{"id": "q1", "text": "what does Ada drink?", "now": 1700000000000}\n',
    )
    dataset = load_dataset(folder, labelled=False)
    planned = plan(dataset, {Pair("q1", "m1"): 3}, ())
    write(dataset, planned)
    judged = load_dataset(folder)
    assert judged.labelled
    assert judged.judgments.grade(0, 0) == 3
    assert (folder / "dataset.yaml").read_text() == "name: tiny\npolicy: {trustLevels: [system]}\n"
