import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.datasets import UNJUDGED, Judgments
from comis_eval.errors import DatasetError

GRADES = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 2**31 - 1) | st.integers(0, 6)),
    st.integers(0, 3),
    max_size=20,
)


def test_pairs_are_sorted_by_query_then_row():
    judgments = Judgments.of([(1, 0, 2), (0, 7, 1), (0, 3, 0)], n_queries=3)
    assert judgments.queries.tolist() == [0, 0, 1]
    assert judgments.rows.tolist() == [3, 7, 0]
    assert judgments.grades.tolist() == [0, 1, 2]
    assert (judgments.queries.dtype, judgments.rows.dtype, judgments.grades.dtype) == (
        np.int32,
        np.int32,
        np.int8,
    )
    assert judgments.starts.tolist() == [0, 2, 3, 3]


def test_no_judgments_at_all():
    judgments = Judgments.of([], n_queries=2)
    assert len(judgments) == 0
    assert judgments.judged(1).rows.tolist() == []
    assert judgments.grade(np.array([0, 1]), np.array([0, -1])).tolist() == [UNJUDGED, UNJUDGED]


def test_lookup_broadcasts_and_no_memory_is_never_judged():
    judgments = Judgments.of([(0, 1, 3), (1, 0, 0)], n_queries=2)
    grades = judgments.grade(np.arange(2)[:, None], np.array([[0, 1, -1]]))
    assert grades.tolist() == [[-1, 3, -1], [0, -1, -1]]
    assert grades.dtype == np.int8


@given(grades=GRADES)
def test_lookup_agrees_with_a_dictionary(grades):
    judgments = Judgments.of(((q, r, g) for (q, r), g in grades.items()), n_queries=6)
    asked = [(q, r) for q in range(6) for r in {*range(7), *(row for _, row in grades)}]
    queries, rows = np.array(asked).T
    expected = [grades.get(pair, UNJUDGED) for pair in asked]
    assert judgments.grade(queries, rows).tolist() == expected
    for query in range(6):
        rows, found = judgments.judged(query)
        mine = sorted((r, g) for (q, r), g in grades.items() if q == query)
        assert list(zip(rows.tolist(), found.tolist(), strict=True)) == mine


@given(grades=GRADES, chosen=st.lists(st.integers(0, 5), unique=True))
def test_a_subset_keeps_the_judgments_of_its_queries(grades, chosen):
    judgments = Judgments.of(((q, r, g) for (q, r), g in grades.items()), n_queries=6)
    part = judgments.subset(np.array(chosen, dtype=np.int64))
    assert part.n_queries == len(chosen)
    for new, old in enumerate(chosen):
        assert part.judged(new).rows.tolist() == judgments.judged(old).rows.tolist()
        assert part.judged(new).grades.tolist() == judgments.judged(old).grades.tolist()


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([(0, 1, 1), (0, 1, 2)], "query 0 judges memory row 1 twice"),
        ([(0, 1, 128)], r"judgment \[0, 1, 128\] has grade 128, outside 0\.\.127"),
        ([(0, 1, -1)], r"has grade -1, outside 0\.\.127"),
        ([(3, 1, 1)], r"has query 3, outside 0\.\.2"),
    ],
)
def test_judgments_that_cannot_be_are_refused(
    triples: list[tuple[int, int, int]], message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        Judgments.of(triples, n_queries=3)
