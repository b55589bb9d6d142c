"""From column space to list space and back."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.stages import planes

ORDER = np.array([[2, 0, 1], [1, 2, 0]])


def test_along_an_order_and_back() -> None:
    plane = np.array([[10, 11, 12], [20, 21, 22]])
    listed = planes.along(plane, ORDER)
    assert listed.tolist() == [[12, 10, 11], [21, 22, 20]]
    assert planes.back(listed, ORDER).tolist() == plane.tolist()


def test_along_the_head_of_an_order() -> None:
    plane = np.array([[10, 11, 12], [20, 21, 22]])
    assert planes.along(plane, ORDER[:, :2]).tolist() == [[12, 10], [21, 22]]


def test_where_each_column_stands() -> None:
    assert planes.position(ORDER).tolist() == [[1, 2, 0], [2, 0, 1]]


def test_grown_columns_hold_the_value() -> None:
    assert planes.grown(np.array([[1], [2]]), 3, -1).tolist() == [[1, -1, -1], [2, -1, -1]]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    cells=st.lists(st.tuples(st.integers(-1, 127), st.booleans()), min_size=1, max_size=70),
    number=st.integers(-1, 127),
)
def test_marked_are_those_of_the_mask_alone(cells: list[tuple[int, bool]], number: int) -> None:
    plane = np.array([[value for value, _ in cells]], dtype=np.int8)
    planes.mark(plane, np.array([[who for _, who in cells]]), np.int8(number))
    assert plane.dtype == np.int8
    assert plane[0].tolist() == [number if who else value for value, who in cells]
