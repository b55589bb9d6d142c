"""From the files on disk to the report: read, check that they belong together, lay out, write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comis_eval.comparison import check_comparable
from comis_eval.comparison.paired import aligned
from comis_eval.errors import EvaluationError
from comis_eval.gating import load
from comis_eval.report.browser import Side
from comis_eval.report.evaluation_page import evaluation_page
from comis_eval.report.movers import partings
from comis_eval.report.page import write_page
from comis_eval.report.study import read_study
from comis_eval.report.study_page import study_page
from comis_eval.report.texts import texts_of
from comis_eval.report.trace import trace_of
from comis_eval.text import printable

Progress = Callable[[str, int, int], None]

_NAME = 40
_STEPS = 4


def write_report(
    source: str | Path,
    other: str | Path | None = None,
    *,
    dataset: str | Path | None = None,
    out: Path,
    progress: Progress | None = None,
) -> None:
    """Write a report of an evaluation, of two, or of a study, as one HTML file.

    Args:
        source: The file of an evaluation or a baseline, a baseline's name, or the folder of
            a study.
        other: A second evaluation of the same queries; changes are read from the first to it.
        dataset: Of the evaluation, its folder or name; adds texts, trust and grades to the
            query browser. Without it the file holds no text of memories or queries.
        out: The file to write; an old one is replaced.
        progress: Told how far it is: (what, done, of how many).

    Raises:
        EvaluationError: If a file is damaged, a trace is not the evaluation's, the two are of
            other queries, or the dataset is another one.
        DatasetError: If the dataset cannot be loaded.
    """
    if Path(source).is_dir():
        if other is not None or dataset is not None:
            raise EvaluationError(
                f"{source} is a study, which is reported alone: leave OTHER and --dataset away"
            )
        write_page(study_page(read_study(Path(source))), out)
        return
    tell = progress or _silent
    read = [load(str(given)) for given in (source, other) if given is not None]
    first, paths = read[0][0], [path for _, path in read]
    evaluations = [first]
    if other is not None:
        check_comparable(first, read[1][0])
        evaluations.append(aligned(read[1][0], first))
    tell("report", 1, _STEPS)
    sides = [
        Side(name, evaluation, trace_of(evaluation, path))
        for name, evaluation, path in zip(_names(paths), evaluations, paths, strict=True)
    ]
    texts = None if dataset is None else texts_of(dataset, first)
    tell("report", 2, _STEPS)
    parted = None
    if len(sides) == 2 and all(side.trace is not None for side in sides):
        parted = partings(first, evaluations[1], (paths[0], paths[1]))
    tell("report", 3, _STEPS)
    write_page(evaluation_page(sides, texts, parted), out)
    tell("report", _STEPS, _STEPS)


def _silent(_what: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def _names(paths: list[Path]) -> list[str]:
    """What the evaluations are called: their files, told apart."""
    names = [printable(path.stem, limit=_NAME) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names, start=1)]
    return names
