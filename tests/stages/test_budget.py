"""Fitting lines into the context, against a loop anybody can read."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.stages import budget

Overflow = Literal["skip", "stop"]


def fitted(
    lengths: list[int],
    *,
    max_chars: int,
    max_results: int = 99,
    overflow: Overflow = "skip",
    alive: list[bool] | None = None,
    header: int = 10,
) -> tuple[str, int]:
    """One letter a line: i(ncluded), o(ver budget) or . for neither; and the section's length."""
    done = budget.fit(
        np.array([lengths], dtype=np.int64).reshape(1, len(lengths)),
        np.array([alive or [True] * len(lengths)], dtype=bool).reshape(1, len(lengths)),
        header=header,
        max_results=np.array([max_results]),
        max_chars=max_chars,
        overflow=overflow,
    )
    pairs = zip(done.included[0], done.over_budget[0], strict=True)
    return "".join("i" if i else "o" if o else "." for i, o in pairs), int(done.chars[0])


@pytest.mark.parametrize(
    ("max_chars", "overflow", "told"),
    [
        (60, "skip", ("iii", 60)),  # 10 + 20 + 20 + 10: exactly full
        (59, "skip", ("iio", 50)),
        (49, "skip", ("ioi", 40)),  # the second does not fit, the third does
        (49, "stop", ("ioo", 30)),  # and must not
        (30, "skip", ("ioo", 30)),
        (29, "skip", ("ooi", 20)),
        (29, "stop", ("ooo", 0)),
        (19, "skip", ("ooo", 0)),  # no line: no header either
        (9, "skip", ("ooo", 0)),  # not even the header would fit
    ],
)
def test_what_fits(max_chars: int, overflow: Overflow, told: tuple[str, int]) -> None:
    assert fitted([20, 20, 10], max_chars=max_chars, overflow=overflow) == told


def test_a_line_left_out_takes_no_place() -> None:
    # 10 + 5 + 5 + 5: the second is too long, two more enter, and max_results is reached.
    told = fitted([5, 90, 5, 5, 5], max_chars=30, max_results=3)
    assert told == ("ioii.", 25)


def test_max_results_is_reached_before_the_budget() -> None:
    assert fitted([5, 5, 5], max_chars=1000, max_results=2) == ("ii.", 20)
    assert fitted([5, 5], max_chars=1000, max_results=0) == ("..", 0)


def test_the_dead_take_neither_place_nor_room() -> None:
    told = fitted([90, 5, 5], max_chars=20, max_results=2, alive=[False, True, True])
    assert told == (".ii", 20)


def test_an_empty_list_has_an_empty_section() -> None:
    assert fitted([], max_chars=100) == ("", 0)


def test_each_query_has_its_own_limit_and_room() -> None:
    done = budget.fit(
        np.array([[5, 5], [50, 5]]),
        np.ones((2, 2), dtype=bool),
        header=10,
        max_results=np.array([1, 2]),
        max_chars=30,
        overflow="skip",
    )
    assert done.included.tolist() == [[True, False], [False, True]]
    assert done.over_budget.tolist() == [[False, False], [True, False]]
    assert done.chars.tolist() == [15, 15]


def naive(
    cells: list[tuple[int, bool]], limit: int, max_chars: int, overflow: Overflow
) -> tuple[str, int]:
    told, used, taken, stopped = "", 10, 0, False
    for length, alive in cells:
        if not alive or taken == limit:
            told += "."
        elif not stopped and used + length <= max_chars:
            told, used, taken = told + "i", used + length, taken + 1
        else:
            told, stopped = told + "o", overflow == "stop"
    return told, used if taken else 0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    cells=st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=14),
    limit=st.integers(0, 6),
    max_chars=st.integers(1, 160),
    overflow=st.sampled_from(["skip", "stop"]),
)
def test_fitting_is_what_a_plain_loop_does(
    cells: list[tuple[int, bool]], limit: int, max_chars: int, overflow: Overflow
) -> None:
    lengths, alive = [length for length, _ in cells], [there for _, there in cells]
    told = fitted(lengths, alive=alive, max_results=limit, max_chars=max_chars, overflow=overflow)
    assert told == naive(cells, limit, max_chars, overflow)
    assert told[1] <= max_chars
