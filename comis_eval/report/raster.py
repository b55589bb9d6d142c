"""A drawing as a PNG file, through matplotlib, which is imported when one is written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from comis_eval.report.drawing import FONT, Box, Dot, Drawing, Label, Line, Mark, Trail
from comis_eval.report.svg import COLOURS, TITLE, corners, title_of
from comis_eval.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

DOTS_PER_INCH = 192
_PIXEL = 72 / 96
"""A CSS pixel in points, which matplotlib measures in."""


def write_png(drawing: Drawing, path: Path) -> None:
    """Write the drawing at twice its size in pixels; the same drawing gives the same bytes.

    Text is drawn as it is given: neither mathematics nor markup in it is obeyed.
    """
    from matplotlib import rc_context, rcdefaults
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box, and nobody needs to hear of it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        rcdefaults()
        height = drawing.height + TITLE
        figure = Figure(figsize=(drawing.width / 96, height / 96), dpi=DOTS_PER_INCH)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, drawing.width)
        axes.set_ylim(drawing.height, -TITLE)
        for layer, mark in enumerate((*drawing.marks, title_of(drawing))):
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
            at = mark.x, mark.y
            _add(Rectangle(at, mark.width, mark.height), mark, axes, layer)
        case Dot(shape="circle"):
            _add(Circle((mark.x, mark.y), mark.radius), mark, axes, layer)
        case Dot():
            _add(Polygon(corners(mark)), mark, axes, layer)
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
                parse_math=False,
                usetex=False,
            )


def _add(patch: Patch, mark: Box | Dot, axes: Axes, layer: int) -> None:
    patch.set_facecolor("none" if mark.hollow else COLOURS[mark.role])
    patch.set_edgecolor(COLOURS[mark.role])
    patch.set_linewidth(_PIXEL if mark.hollow else 0)
    patch.set_zorder(layer)
    axes.add_patch(patch)
