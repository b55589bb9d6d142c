"""The two kinds of figure the experiments have: differences with intervals, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from comis_eval.report.drawing import (
    WIDE,
    Dot,
    Drawing,
    Entry,
    Label,
    Line,
    Mark,
    Role,
    Shape,
    Trail,
    around,
    legend,
    plane,
    rows,
    signed,
    whisker,
)

LOOKS: tuple[tuple[Role, Shape], ...] = (
    ("first", "circle"), ("second", "diamond"), ("good", "up"), ("bad", "square"),
    ("muted", "down"),
)  # fmt: skip
"""How the first, second ... series looks; shapes tell them apart without colour."""


class Bar(NamedTuple):
    """One difference: its label, mean and ends."""

    label: str
    mean: float
    low: float
    high: float


def differences(
    title: str, description: str, bars: Sequence[Bar], *, less_is_better: bool = False
) -> Drawing:
    """A row a difference, with its interval; what lies across the line of 0 is none."""
    above: Role = "bad" if less_is_better else "good"
    below: Role = "good" if less_is_better else "bad"
    span = around([0.0, *(value for bar in bars for value in bar[1:])])
    frame = rows([bar.label for bar in bars], span, width=WIDE, right=64)
    marks: list[Mark] = list(frame.marks)
    zero = frame.x(0.0)
    marks.append(Line(zero, 4, zero, frame.bottom, "ink"))
    for bar, y in zip(bars, frame.ys, strict=True):
        role: Role = above if bar.low > 0 else below if bar.high < 0 else "muted"
        marks += whisker(frame.x(bar.low), frame.x(bar.high), y, role)
        marks.append(Dot(frame.x(bar.mean), y, 4, role))
        marks.append(Label(WIDE - 4, y + 4, signed(bar.mean), anchor="end"))
    return Drawing(WIDE, frame.height, title, description, tuple(marks))


def curves(
    title: str,
    description: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_title: str,
    y_title: str,
) -> Drawing:
    """A line through the points of each series."""
    points = [point for line in series.values() for point in line]
    frame = plane(
        around([x for x, _ in points]), around([y for _, y in points]),
        width=WIDE, height=360, x_title=x_title, y_title=y_title, top=48,
    )  # fmt: skip
    marks: list[Mark] = list(frame.marks)
    entries: list[Entry] = []
    for number, (name, line) in enumerate(series.items()):
        role, shape = LOOKS[number % len(LOOKS)]
        entries.append((name, role, shape))
        if len(line) > 1:
            marks.append(Trail(tuple((frame.x(x), frame.y(y)) for x, y in line), role))
        marks += [Dot(frame.x(x), frame.y(y), 3.5, role, shape) for x, y in line]
    marks += legend(entries, x=4, y=32)
    return Drawing(WIDE, frame.height, title, description, tuple(marks))
