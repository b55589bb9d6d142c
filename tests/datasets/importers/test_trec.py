from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comis_eval.datasets.importers.trec import (
    Hit,
    Run,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from comis_eval.errors import DatasetError

TREC_EVAL = Path(__file__).parents[3].parent / "shared" / "data" / "trec_eval-tests"
IDS = st.text(st.sampled_from("ab019-é"), min_size=1, max_size=4)
IN_ONE_FILE = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "file.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_run_keeps_its_rank_order_whatever_scores_and_lines_say(tmp_path):
    text = "q2 Q0 x 1 0.5 me\nq1 Q0 b 2 9.0 me\nq1\tQ0\ta\t1\t3.0\tme\nq1 Q0 007 10 1e5 me\n"
    run = read_run(written(tmp_path, text))
    assert run == Run(
        "me", {"q2": (Hit("x", 0.5),), "q1": (Hit("a", 3.0), Hit("b", 9.0), Hit("007", 1e5))}
    )
    assert run.inversions == 2
    assert run.tied == 0


def test_ties_are_counted_by_hit_and_within_a_query(tmp_path):
    text = "".join(
        f"{query} Q0 d{rank} {rank} {score} me\n"
        for query, scores in {"q1": (3, 2, 2, 2, 1, 1), "q2": (3, 2)}.items()
        for rank, score in enumerate(scores)
    )
    assert read_run(written(tmp_path, text)).tied == 5


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 Q0 a 2 1.0 me", r"file\.txt:2: query 'q1': document 'a' already stands on line 1"),
        ("q1 Q0 b 1 1.0 me", r":2: query 'q1': rank 1 already stands on line 1"),
        ("q1 Q0 b 2 nan me", r":2: query 'q1': score is 'nan'; it must be a finite number"),
        ("q1 Q0 b 2 -inf me", r":2: .* score is '-inf'"),
        ("q1 Q0 b 2 1_0 me", r":2: .* score is '1_0'"),
        ("q1 Q0 b 2 high me", r":2: .* score is 'high'"),
        ("q1 Q0 b first 1.0 me", r":2: .* rank is 'first'; it must be a whole number"),
        ("q1 Q0 b 2 1.0", r":2: has 5 columns, must have 6: query Q0 document rank score tag"),
        ("q1 Q0 b 2 1.0 you", r"holds several runs: 'me' \(line 1\), 'you' \(line 2\)"),
        ("", r":2: blank line"),
    ],
)
def test_a_bad_run_line_is_an_error_naming_it(tmp_path, line, expected):
    with pytest.raises(DatasetError, match=expected):
        read_run(written(tmp_path, f"q1 Q0 a 1 1.0 me\n{line}\n"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 0 a 1", r":2: query 'q1', document 'a': already judged on line 1"),
        ("q1 0 b 0.5", r":2: query 'q1', document 'b': grade is '0\.5'; it must be a whole number"),
        ("q1 0 b", r":2: has 3 columns, must have 4"),
    ],
)
def test_a_bad_judgment_is_an_error_naming_it(tmp_path, line, expected):
    with pytest.raises(DatasetError, match=expected):
        read_qrels(written(tmp_path, f"q1 0 a 1\n{line}\n"))


@pytest.mark.parametrize("read", [read_qrels, read_run])
def test_an_empty_or_missing_file_is_an_error(tmp_path, read):
    with pytest.raises(DatasetError, match="is empty"):
        read(written(tmp_path, ""))
    with pytest.raises(DatasetError, match="no such file"):
        read(tmp_path / "missing")


def test_ids_stay_text_and_grades_may_be_negative(tmp_path):
    qrels = read_qrels(written(tmp_path, "007 Q0 1e5 -2\n007 1 NA 3\n"))
    assert qrels == {"007": {"1e5": -2, "NA": 3}}


@IN_ONE_FILE
@given(
    qrels=st.dictionaries(
        IDS, st.dictionaries(IDS, st.integers(-9, 9), min_size=1), min_size=1, max_size=4
    )
)
def test_qrels_written_read_back_the_same(tmp_path, qrels):
    write_qrels(qrels, tmp_path / "out")
    assert read_qrels(tmp_path / "out") == qrels


@IN_ONE_FILE
@given(
    rankings=st.dictionaries(
        IDS,
        st.lists(
            st.builds(Hit, IDS, st.floats(allow_nan=False, allow_infinity=False)),
            min_size=1,
            unique_by=lambda hit: hit.doc_id,
        ).map(tuple),
        min_size=1,
        max_size=4,
    )
)
def test_a_run_written_reads_back_to_the_last_bit(tmp_path, rankings):
    write_run(Run("me", rankings), tmp_path / "out")
    assert read_run(tmp_path / "out") == Run("me", rankings)


def test_an_id_with_a_space_is_not_written(tmp_path):
    with pytest.raises(DatasetError, match="an id is 'a b'; an id holds no white space"):
        write_qrels({"q": {"a b": 1}}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not TREC_EVAL.is_dir(), reason="trec_eval's test files are not here")
def test_trec_evals_own_files():
    qrels = read_qrels(TREC_EVAL / "qrels.test")
    assert {query: len(grades) for query, grades in qrels.items()} == {
        "301": 1708,
        "302": 1061,
        "303": 912,
    }
    assert sum(grade > 0 for grades in qrels.values() for grade in grades.values()) == 561
    run = read_run(TREC_EVAL / "results.test")
    assert {query: len(hits) for query, hits in run.rankings.items()} == {
        "301": 500,
        "302": 500,
        "303": 500,
    }
    # Its lines are sorted by document; rank order is score order, ties by document descending.
    assert (run.tied, run.inversions) == (19, 0)
    for hits in run.rankings.values():
        assert list(hits) == sorted(hits, key=lambda hit: (hit.score, hit.doc_id), reverse=True)
