"""The frame every figure stands in."""

from math import isclose, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.report.drawing import (
    NARROW,
    WIDE,
    Label,
    Scale,
    around,
    fitted,
    legend,
    number,
    plain,
    plane,
    rows,
    signed,
    ticks,
)

FINITE = st.floats(-1e9, 1e9, allow_nan=False)


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 6, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 1, 3, [0, 0.5, 1]),
        (0.9, 1.1, 5, [0.9, 0.95, 1, 1.05, 1.1]),
        (-0.2, 0.2, 5, [-0.2, -0.1, 0, 0.1, 0.2]),
        (0, 299, 7, [0, 50, 100, 150, 200, 250]),
    ],
)
def test_ticks_are_round_numbers(low, high, most, expected):
    assert ticks(low, high, most) == pytest.approx(expected)


@given(low=FINITE, span=st.floats(1e-6, 1e9), most=st.integers(2, 12))
def test_ticks_lie_within_their_range_and_are_not_too_many(low, span, most):
    high = low + span
    found = ticks(low, high, most)
    slack = 1e-6 * span + 1e-6
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert len(found) <= most + 1


@given(values=st.lists(FINITE, min_size=1))
def test_bounds_hold_every_value(values):
    low, high = around(values)
    assert low < high
    slack = 1e-9 * max(abs(low), abs(high), 1)
    assert all(low - slack <= value <= high + slack for value in values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.12, 0.87], (0.0, 1.0)),
        ([0.3, nan], (0.26, 0.34)),
        ([], (0.0, 1.0)),
        ([0.0], (-1e-6, 1e-6)),
    ],
)
def test_bounds_are_round(values, expected):
    assert around(values) == pytest.approx(expected)


def test_a_scale_maps_ends_to_ends_and_keeps_outliers_inside():
    scale = Scale(0.0, 2.0, 100.0, 50.0)
    assert [scale(v) for v in (0, 1, 2, 3, -1)] == [100, 75, 50, 50, 100]


def test_undefined_is_a_dash_and_not_zero():
    assert [number(nan), signed(nan), plain(nan)] == ["-", "-", "-"]
    assert [number(0.5), signed(0.5), signed(-0.25), plain(1234567.0)] == [
        "0.500", "+0.500", "-0.250", "1.23457e+06",
    ]  # fmt: skip


def test_short_labels_stand_beside_their_rows_and_long_ones_above():
    beside = rows(["fts", "vector"], (0, 1), width=WIDE, right=10)
    above = rows(["a.rather.long.name.of.a.knob"], (0, 1), width=NARROW, right=10)
    assert beside.x.start > 40
    assert above.x.start < 10
    label = next(mark for mark in above.marks if isinstance(mark, Label) and "knob" in mark.text)
    assert label.y < above.ys[0] - 8


def test_names_of_anybody_are_made_printable_and_cut():
    shown = fitted("a\x1b[31m" + "b" * 200, 70)
    assert shown.startswith("a␛[31m")
    assert shown.endswith("…")
    frame = rows(["x\u202ey"], (0, 1), width=WIDE, right=10)
    assert any("\\u{202e}" in mark.text for mark in frame.marks if isinstance(mark, Label))
    flat = plane((0, 1), (0, 1), width=300, height=300, x_title="\x07", y_title="\x00")
    told = [mark.text for mark in flat.marks if isinstance(mark, Label)]
    assert {"␇", "␀"} <= set(told)
    assert any(mark.text == "␛" for mark in legend([("\x1b", "ink", "circle")], x=0, y=0)[1:])


def test_rows_end_where_they_say():
    frame = rows(["a", "b", "c"], (0, 1), width=WIDE, right=10, row=20, top=10)
    assert frame.ys == [20, 40, 60]
    assert frame.bottom == 70
    assert isclose(frame.height, 94)
