import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.lanes.base import gather, head
from comis_eval.lanes.ragged import blocks, join

SIZES = st.lists(st.integers(0, 5), max_size=8)


@settings(derandomize=True, deadline=None)
@given(SIZES, st.data())
def test_join_is_the_ranges_one_after_the_other(sizes, data):
    starts = [data.draw(st.integers(0, 9)) for _ in sizes]
    owners, positions = join(np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64))
    flat = [
        (i, s + k) for i, (s, n) in enumerate(zip(starts, sizes, strict=True)) for k in range(n)
    ]
    assert list(zip(owners.tolist(), positions.tolist(), strict=True)) == flat


@settings(derandomize=True, deadline=None)
@given(SIZES, st.integers(1, 8))
def test_blocks_cover_all_in_order_within_the_limit(sizes, limit):
    cut = list(blocks(np.array(sizes, dtype=np.int64), limit))
    assert [i for part in cut for i in range(part.start, part.stop)] == list(range(len(sizes)))
    assert all(sum(sizes[part]) <= limit or part.stop - part.start == 1 for part in cut)


@pytest.mark.parametrize(("depth", "kept"), [(1, "100100"), (2, "110110"), (9, "111111")])
def test_head_keeps_the_first_of_each_query(depth, kept):
    assert head(np.array([0, 0, 0, 4, 4, 4]), depth).tolist() == [c == "1" for c in kept]


def test_gather_keeps_each_querys_order():
    hits = gather(
        np.array([2, 2, 0]),
        np.array([7, 5, 9]),
        np.array([3.0, 1.0, 2.0]),
        exhausted=np.array([True, True, False]),
    )
    assert [hits.of(q).tolist() for q in range(3)] == [[9], [], [7, 5]]
    assert hits.scores.tolist() == [2, 3, 1]
    assert hits.ranks.tolist() == [1, 1, 2]
