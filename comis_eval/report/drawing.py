"""What a figure is made of: a few marks on a plane, the same for a page, a file and a notebook.

A figure is laid out once, by its own file, into a :class:`Drawing`. :mod:`.svg` and
:mod:`.raster` only trace it: neither knows what it shows. Lengths are CSS pixels, y grows
downwards, and a mark has a role instead of a colour, so that a page can follow the reader's
light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Literal, NamedTuple, Protocol, TypeAlias

from comis_eval.text import printable

Role = Literal["ink", "muted", "grid", "first", "second", "good", "bad", "band"]
Shape = Literal["circle", "square", "diamond", "up", "down"]
Anchor = Literal["start", "middle", "end"]

WIDE = 720.0
"""Width of a figure on a desk, on paper and in a file."""

NARROW = 328.0
"""Width of a figure on a phone of 360 pixels."""

FONT = 12.0
_CHARACTER = 7.1
"""Width that a character is given; of most fonts of 12 pixels it is the upper end."""

_LABELS = 0.36
"""Most of the width that labels beside the rows may take; longer ones stand above them."""


LOOKS: tuple[tuple[Role, Shape], ...] = (("first", "circle"), ("second", "diamond"))
"""How the first and the second evaluation look in every figure."""


class Line(NamedTuple):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    role: Role = "grid"
    width: float = 1.0
    dashed: bool = False


class Trail(NamedTuple):
    """A line through several points."""

    points: tuple[tuple[float, float], ...]
    role: Role
    width: float = 1.5


class Box(NamedTuple):
    """A rectangle; hollow: its outline alone."""

    x: float
    y: float
    width: float
    height: float
    role: Role
    hollow: bool = False


class Dot(NamedTuple):
    """A point; its shape says what its colour says. The tip is shown to who points at it."""

    x: float
    y: float
    radius: float
    role: Role
    shape: Shape = "circle"
    hollow: bool = False
    tip: str = ""


class Label(NamedTuple):
    """One line of text; y is its baseline."""

    x: float
    y: float
    text: str
    role: Role = "ink"
    anchor: Anchor = "start"
    bold: bool = False


Mark: TypeAlias = Line | Trail | Box | Dot | Label
Entry: TypeAlias = tuple[str, Role, Shape]
"""A name in a legend, and how what it names looks."""


@dataclass(frozen=True)
class Drawing:
    """A figure laid out.

    Attributes:
        width, height: In pixels.
        title: What it shows, in a few words.
        description: What is to be seen in it, for who cannot see it.
        marks: Later ones lie above earlier ones.
    """

    width: float
    height: float
    title: str
    description: str
    marks: tuple[Mark, ...]

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from comis_eval.report.svg import svg

        return svg(self, ident="figure", standalone=True)


class Figure(Protocol):
    """The data of a figure, and how it is laid out."""

    def draw(self, width: float = WIDE) -> Drawing:
        """Lay the figure out on so many pixels."""


class Scale(NamedTuple):
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value lies; outside the range it lies on the nearer end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


class Rows(NamedTuple):
    """A frame of one row a label, with one axis below.

    Attributes:
        marks: Labels, grid and axis.
        x: The axis.
        ys: The middle of each row.
        bottom: Where the rows end.
        height: Of the whole.
    """

    marks: list[Mark]
    x: Scale
    ys: list[float]
    bottom: float
    height: float


class Plane(NamedTuple):
    """A frame of two axes."""

    marks: list[Mark]
    x: Scale
    y: Scale
    height: float


def number(value: float) -> str:
    """A figure with three decimals, a dash where it is undefined: that is not 0."""
    return "-" if not isfinite(value) else f"{value:.3f}"


def signed(value: float) -> str:
    """A difference with its sign and three decimals."""
    return "-" if not isfinite(value) else f"{value:+.3f}"


def plain(value: float) -> str:
    """A number as short as six significant digits make it."""
    return "-" if not isfinite(value) else f"{value:.6g}"


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within a range, evenly spaced, at most so many (at least 2)."""
    step = _step((high - low) / max(most - 1, 1))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def around(values: Iterable[float], *, least: float = 1e-6) -> tuple[float, float]:
    """Round bounds that hold every finite value, with some air where they are all the same."""
    finite = [value for value in values if isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high - low < least:
        air = max(abs(high) * 0.1, least)
        low, high = low - air, high + air
    step = _step((high - low) / 5)
    return floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step


def _step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below."""
    power = float(10 ** floor(log10(least)))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least * (1 - 1e-9))


def fitted(text: str, pixels: float) -> str:
    """Text on one line that nothing in it can disturb, cut to a width."""
    return printable(text, limit=max(int(pixels / _CHARACTER), 4))


def rows(
    labels: Sequence[str],
    span: tuple[float, float],
    *,
    width: float,
    right: float,
    row: float = 24.0,
    top: float = 4.0,
    axis: bool = True,
) -> Rows:
    """Lay out a frame of rows; labels that are too long to stand beside them stand above.

    Args:
        labels: One a row; of anybody.
        span: Of the axis.
        width: Of the figure.
        right: Pixels kept free behind the axis, for figures.
        row: Height of a row.
        top: Pixels kept free above, for a legend.
        axis: Whether the axis has ticks and numbers.
    """
    wanted = max((len(printable(label)) for label in labels), default=0) * _CHARACTER + 14
    above = wanted > width * _LABELS
    left = 4.0 if above else wanted
    pitch = row + (16 if above else 0)
    x = Scale(*span, left, width - right)
    bottom = top + pitch * len(labels)
    ends = [top + pitch * (place + 1) for place in range(len(labels))]
    marks: list[Mark] = []
    if axis:
        for tick in _x_ticks(x):
            marks += [
                Line(x(tick), top, x(tick), bottom),
                Label(x(tick), bottom + 16, plain(tick), "muted", "middle"),
            ]
    for label, end in zip(labels, ends, strict=True):
        if above:
            marks.append(Label(left, end - row - 2, fitted(label, width)))
        else:
            marks.append(Label(left - 10, end - row / 2 + 4, printable(label), anchor="end"))
    ys = [end - row / 2 for end in ends]
    return Rows(marks, x, ys, bottom, bottom + (24 if axis else 6))


def _x_ticks(x: Scale) -> list[float]:
    return ticks(x.low, x.high, max(int((x.end - x.start) / 64) + 1, 2))


def plane(
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    *,
    width: float,
    height: float,
    x_title: str,
    y_title: str,
    top: float = 24.0,
) -> Plane:
    """Lay out a frame of two axes; titles may be of anybody."""
    left, bottom = 56.0, height - 40
    x = Scale(*x_range, left, width - 24)
    y = Scale(*y_range, bottom, top)
    marks: list[Mark] = []
    for tick in _x_ticks(x):
        marks += [
            Line(x(tick), top, x(tick), bottom),
            Label(x(tick), bottom + 16, plain(tick), "muted", "middle"),
        ]
    for tick in ticks(*y_range, max(int((bottom - top) / 40) + 1, 2)):
        marks += [
            Line(left, y(tick), x.end, y(tick)),
            Label(left - 6, y(tick) + 4, plain(tick), "muted", "end"),
        ]
    marks += [
        Label((left + x.end) / 2, height - 6, fitted(x_title, x.end - left), anchor="middle"),
        Label(4, 12, fitted(y_title, width / 2)),
    ]
    return Plane(marks, x, y, height)


def legend(entries: Sequence[Entry], *, x: float, y: float) -> list[Mark]:
    """Lay out a line of names, each behind its mark, from the left."""
    marks: list[Mark] = []
    for name, role, shape in entries:
        text = fitted(name, 140)
        marks += [Dot(x + 5, y - 4, 4, role, shape), Label(x + 14, y, text)]
        x += 14 + len(text) * _CHARACTER + 14
    return marks


def whisker(low: float, high: float, y: float, role: Role) -> list[Mark]:
    """Lay out an interval: a line with an end at both of its ends."""
    return [
        Line(low, y, high, y, role, 1.5),
        Line(low, y - 4, low, y + 4, role, 1.5),
        Line(high, y - 4, high, y + 4, role, 1.5),
    ]
