"""From the files on disk to the report: read, check that they belong together, lay out, write."""

from __future__ import annotations

from pathlib import Path

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import read_evaluation
from comis_eval.report.browser import Side
from comis_eval.report.differences import check_comparable
from comis_eval.report.evaluation_page import evaluation_page
from comis_eval.report.page import write_page
from comis_eval.report.study import read_study
from comis_eval.report.study_page import study_page
from comis_eval.report.texts import texts_of
from comis_eval.report.trace import trace_of
from comis_eval.text import printable

_NAME = 40


def write_report(
    source: Path, other: Path | None = None, *, dataset: Path | None = None, out: Path
) -> None:
    """Write a report of an evaluation, of two, or of a study, as one HTML file.

    Args:
        source: An evaluation file, or the folder of a study.
        other: A second evaluation of the same queries; changes are read from the first to it.
        dataset: Of the evaluation; adds texts, trust and grades to the query browser. Without
            it the file holds no text of memories or queries.
        out: The file to write; an old one is replaced.

    Raises:
        EvaluationError: If a file is damaged, a trace is not the evaluation's, the two are of
            other queries, or the dataset is another one.
        DatasetError: If the dataset cannot be loaded.
    """
    if source.is_dir():
        if other is not None or dataset is not None:
            raise EvaluationError(
                f"{source} is a study, which is reported alone: leave OTHER and --dataset away"
            )
        write_page(study_page(read_study(source)), out)
        return
    paths = [source] if other is None else [source, other]
    evaluations = [read_evaluation(path) for path in paths]
    if other is not None:
        check_comparable(*evaluations)
    sides = [
        Side(name, evaluation, trace_of(evaluation, path))
        for name, evaluation, path in zip(_names(paths), evaluations, paths, strict=True)
    ]
    texts = None if dataset is None else texts_of(dataset, evaluations[0])
    write_page(evaluation_page(sides, texts), out)


def _names(paths: list[Path]) -> list[str]:
    """What the evaluations are called: their files, told apart."""
    names = [printable(path.stem, limit=_NAME) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names, start=1)]
    return names
