"""A drawing as SVG, inside a page or as a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from comis_eval.report.drawing import FONT, Box, Dot, Drawing, Label, Line, Mark, Role, Shape, Trail
from comis_eval.text import html, printable

TITLE = 28.0
"""Pixels above a drawing that a file has for its title; on a page the caption says it."""

COLOURS: Mapping[Role, str] = {
    "ink": "#1f2328",
    "muted": "#5d6570",
    "grid": "#dfe3e8",
    "first": "#2563a6",
    "second": "#a8500f",
    "good": "#1a7048",
    "bad": "#b3261e",
    "band": "#dfe8f3",
}
"""What a role looks like in files; the page has a scheme of its own."""

_CORNERS: Mapping[Shape, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "up": ((0, -1), (1, 0.8), (-1, 0.8)),
    "down": ((0, 1), (1, -0.8), (-1, -0.8)),
}
_REACH: Mapping[Shape, float] = {"square": sqrt(0.7), "diamond": 1.25, "up": 1.15, "down": 1.15}
"""Corners lie so many radii out that every shape looks as large as the circle."""


def svg(drawing: Drawing, *, ident: str, standalone: bool = False) -> str:
    """Trace a drawing.

    Args:
        drawing: What to trace.
        ident: Prefix of the ids in it, unique on its page; a word of ours.
        standalone: Whether it brings its own colours and font; else marks have a role as
            class, and the page styles it.
    """
    above = TITLE if standalone else 0.0
    width, height = _n(drawing.width), _n(drawing.height + above)
    size = f'width="{width}" height="{height}"'
    box = f'viewBox="0 {_n(-above)} {width} {height}"'
    space = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ""
    face = f' font-family="sans-serif" font-size="{_n(FONT)}"' if standalone else ""
    lines = [
        f'<svg{space} {size} {box}{face} role="img" aria-labelledby="{ident}-t {ident}-d">',
        f'<title id="{ident}-t">{html(drawing.title)}</title>',
        f'<desc id="{ident}-d">{html(drawing.description)}</desc>',
    ]
    if standalone:
        lines.append(f'<rect y="{_n(-above)}" width="100%" height="100%" fill="#ffffff"/>')
        lines.append(_traced(title_of(drawing), standalone=True))
    lines += [_traced(mark, standalone=standalone) for mark in drawing.marks]
    return "\n".join([*lines, "</svg>"])


def title_of(drawing: Drawing) -> Label:
    """The title as it stands above a drawing in a file."""
    return Label(4, 16 - TITLE, printable(drawing.title), bold=True)


def _traced(mark: Mark, *, standalone: bool) -> str:
    hollow = isinstance(mark, Box | Dot) and mark.hollow
    stroked = hollow or isinstance(mark, Line | Trail)
    look = _look(mark.role, stroked=stroked, standalone=standalone)
    match mark:
        case Line():
            dash = ' stroke-dasharray="4 3"' if mark.dashed else ""
            ends = f'x1="{_n(mark.x1)}" y1="{_n(mark.y1)}" x2="{_n(mark.x2)}" y2="{_n(mark.y2)}"'
            return f'<line {ends} stroke-width="{_n(mark.width)}"{dash} {look}/>'
        case Trail():
            return f'<polyline points="{_points(mark.points)}" stroke-width="{mark.width}" {look}/>'
        case Box():
            at = f'x="{_n(mark.x)}" y="{_n(mark.y)}"'
            return f'<rect {at} width="{_n(mark.width)}" height="{_n(mark.height)}" {look}/>'
        case Dot():
            return _dot(mark, look)
        case Label():
            bold = ' font-weight="600"' if mark.bold else ""
            at = f'x="{_n(mark.x)}" y="{_n(mark.y)}" text-anchor="{mark.anchor}"'
            return f"<text {at}{bold} {look}>{html(mark.text)}</text>"


def _dot(dot: Dot, look: str) -> str:
    tip = f"<title>{html(dot.tip)}</title>" if dot.tip else ""
    if dot.shape == "circle":
        shape = f'circle cx="{_n(dot.x)}" cy="{_n(dot.y)}" r="{_n(dot.radius)}"'
    else:
        shape = f'polygon points="{_points(corners(dot))}"'
    return f"<{shape} {look}>{tip}</{shape.partition(' ')[0]}>" if tip else f"<{shape} {look}/>"


def corners(dot: Dot) -> tuple[tuple[float, float], ...]:
    """Where the corners of a dot lie that is no circle."""
    reach = dot.radius * _REACH[dot.shape]
    return tuple((dot.x + reach * dx, dot.y + reach * dy) for dx, dy in _CORNERS[dot.shape])


def _look(role: Role, *, stroked: bool, standalone: bool) -> str:
    if not standalone:
        return f'class="{role}-line"' if stroked else f'class="{role}"'
    colour = COLOURS[role]
    return f'fill="none" stroke="{colour}"' if stroked else f'fill="{colour}"'


def _points(points: tuple[tuple[float, float], ...]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _n(value: float) -> str:
    """A length with at most one decimal, which no eye misses."""
    return f"{value:.1f}".removesuffix(".0")
