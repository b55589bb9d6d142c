"""Figures as files, for MLflow and for whoever pastes them somewhere: no text of memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, read_evaluation
from comis_eval.report.categories import categories
from comis_eval.report.drawing import Figure
from comis_eval.report.factors import factors
from comis_eval.report.flat import flat
from comis_eval.report.funnel import funnel
from comis_eval.report.gains import gains
from comis_eval.report.headline import headline
from comis_eval.report.history import history
from comis_eval.report.importance import importance
from comis_eval.report.lanes import lanes
from comis_eval.report.pareto import pareto
from comis_eval.report.raster import write_png
from comis_eval.report.sections.common import main_metric
from comis_eval.report.study import Study, read_study
from comis_eval.report.svg import svg
from comis_eval.report.trace import Trace, trace_of

Kind = Literal["evaluation", "study"]


def save_figures(
    kind: Kind, source: Path | Evaluation | Study, folder: Path, *, png: bool = True
) -> list[Path]:
    """Write every figure that the source has data for, as ``NAME.svg`` and ``NAME.png``.

    Args:
        kind: What the source is.
        source: An evaluation or its file, a study or its folder. Score factors come from
            the trace beside a file.
        folder: Where to; made if it is not there.
        png: Whether to write PNG as well, which imports matplotlib.

    Returns:
        What was written, by name. The same source gives the same bytes.

    Raises:
        EvaluationError: If the source cannot be read, or is of the other kind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in _figures(kind, source):
        drawing = figure.draw()
        path = folder / f"{name}.svg"
        path.write_text(svg(drawing, ident=name, standalone=True) + "\n", encoding="utf-8")
        written.append(path)
        if png:
            write_png(drawing, path.with_suffix(".png"))
            written.append(path.with_suffix(".png"))
    return sorted(written)


def _figures(kind: Kind, source: Path | Evaluation | Study) -> Iterator[tuple[str, Figure]]:
    if kind == "study":
        study = read_study(source) if isinstance(source, Path) else source
        if not isinstance(study, Study):
            raise EvaluationError("figures of a study need a study or its folder")
        yield from study_figures(study)
        return
    evaluation = read_evaluation(source) if isinstance(source, Path) else source
    if not isinstance(evaluation, Evaluation):
        raise EvaluationError("figures of an evaluation need an evaluation or its file")
    trace = trace_of(evaluation, source) if isinstance(source, Path) else None
    yield from evaluation_figures(evaluation, trace)


def evaluation_figures(evaluation: Evaluation, trace: Trace | None) -> Iterator[tuple[str, Figure]]:
    """Every figure of an evaluation by the name of its file; factors need a trace."""
    named = {evaluation.pipeline: evaluation}
    main = main_metric(named)
    yield "headline", headline(named, main)
    yield "categories", categories(named, main)
    found: dict[str, Figure | None] = {
        "factors": None if trace is None else factors(trace),
        "funnel": funnel(named),
        "lanes": lanes(named),
    }
    yield from _known(found)


def study_figures(study: Study) -> Iterator[tuple[str, Figure]]:
    """Every figure of a study by the name of its file."""
    found: dict[str, Figure | None] = {
        "history": history(study),
        "importance": importance(study),
        "flat": flat(study),
        "gains": gains(study),
    }
    yield from _known(found)
    for place, trade in enumerate(pareto(study), start=1):
        yield f"pareto-{place}", trade


def _known(found: dict[str, Figure | None]) -> Iterator[tuple[str, Figure]]:
    yield from ((name, figure) for name, figure in found.items() if figure is not None)
