"""A drawing as a PNG file, through matplotlib, which is imported when one is written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from comis_eval.report.drawing import FONT, Box, Dot, Drawing, Label, Line, Mark, Trail
from comis_eval.report.svg import COLOURS, corners
from comis_eval.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS_PER_INCH = 192
_PIXEL = 72 / 96
"""A CSS pixel in points, which matplotlib measures in."""


def write_png(drawing: Drawing, path: Path) -> None:
    """Write the drawing at twice its size in pixels; the same drawing gives the same bytes.

    Text is drawn as it is given: neither mathematics nor markup in it is obeyed.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = {"text.usetex": False, "text.parse_math": False, "font.family": "DejaVu Sans"}
    with rc_context(settings), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box, and nobody needs to hear of it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(drawing.width / 96, drawing.height / 96), dpi=DOTS_PER_INCH)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, drawing.width)
        axes.set_ylim(drawing.height, 0)
        for layer, mark in enumerate(drawing.marks):
            _trace(mark, axes, layer)
        figure.savefig(path, format="png", metadata={"Software": None})


def _trace(mark: Mark, axes: Axes, layer: int) -> None:
    from matplotlib.patches import Circle, Polygon, Rectangle

    colour = COLOURS[mark.role]
    match mark:
        case Line():
            style = (0, (4, 3)) if mark.dashed else "solid"
            width = mark.width * _PIXEL
            xs, ys = (mark.x1, mark.x2), (mark.y1, mark.y2)
            axes.plot(xs, ys, color=colour, linewidth=width, linestyle=style, zorder=layer)
        case Trail():
            xs, ys = zip(*mark.points, strict=True)
            axes.plot(xs, ys, color=colour, linewidth=mark.width * _PIXEL, zorder=layer)
        case Box():
            filled = (
                {"facecolor": "none", "edgecolor": colour} if mark.hollow else {"color": colour}
            )
            box = Rectangle((mark.x, mark.y), mark.width, mark.height, zorder=layer, lw=0, **filled)
            box.set_linewidth(_PIXEL if mark.hollow else 0)
            axes.add_patch(box)
        case Dot():
            looks = {"facecolor": "none" if mark.hollow else colour, "edgecolor": colour}
            line = _PIXEL if mark.hollow else 0
            if mark.shape == "circle":
                shape = Circle((mark.x, mark.y), mark.radius, zorder=layer, lw=line, **looks)
                axes.add_patch(shape)
            else:
                axes.add_patch(Polygon(corners(mark), zorder=layer, lw=line, **looks))
        case Label():
            axes.text(
                mark.x,
                mark.y,
                printable(mark.text),
                color=colour,
                fontsize=FONT * _PIXEL * 0.92,  # DejaVu is wider than what browsers use
                fontweight="bold" if mark.bold else "normal",
                ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
                va="baseline",
                zorder=layer,
            )
