"""From the judges' files to qrels.tsv: one rule where they differ, nothing replaced unasked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets import UNJUDGED, Dataset
from comis_eval.datasets.contents import QRELS
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.errors import JudgeError
from comis_eval.files import replacing
from comis_eval.judge.agreement import Grader
from comis_eval.judge.journal import Pair

_UNLABELLED = re.compile(r"labelled:\s*false\s*(#.*)?$")


class Unsettled(NamedTuple):
    """A pair on which grades differ and which no resolver graded: it is not exported."""

    pair: Pair
    grades: Mapping[Grader, int]


class Differing(NamedTuple):
    """A pair that qrels.tsv already has with another grade."""

    pair: Pair
    there: int
    judged: int


class Export(NamedTuple):
    """What an export writes, and what it leaves.

    Attributes:
        added: New pairs and their grades, in file order of queries and memories.
        same: How many pairs qrels.tsv already has with the same grade.
        differing: Pairs it has with another grade, which stay unless they are to be replaced.
        unsettled: Pairs on which the judges differ; they wait for a resolver.
        unanswered: Queries said to be answerable that end up without a memory of grade 1 or
            more: `validate` will refuse them.
        answered: Queries said not to be answerable that end up with one.
    """

    added: Mapping[Pair, int]
    same: int
    differing: tuple[Differing, ...]
    unsettled: tuple[Unsettled, ...]
    unanswered: tuple[str, ...]
    answered: tuple[str, ...]


def merged(
    grades: Mapping[Grader, Mapping[Pair, int]], *, resolver: str | None = None
) -> tuple[dict[Pair, int], tuple[Unsettled, ...]]:
    """Merge all grades, by one rule.

    The resolver's grade stands, of the second sitting if there are two. Else the grade stands
    that everybody gave who graded the pair, second looks included. Where they differ there is
    none: no majority, no mean.

    Raises:
        JudgeError: If the resolver has judged nothing.
    """
    if resolver is not None and not any(grader.judge == resolver for grader in grades):
        known = ", ".join(sorted({grader.judge for grader in grades})) or "none"
        raise JudgeError(f"--resolver {resolver} has judged nothing here; judges: {known}")
    of_pair: dict[Pair, dict[Grader, int]] = {}
    for grader in sorted(grades):
        for pair, grade in grades[grader].items():
            of_pair.setdefault(pair, {})[grader] = grade
    settled: dict[Pair, int] = {}
    unsettled: list[Unsettled] = []
    for pair, given in of_pair.items():
        last_word = [grade for grader, grade in given.items() if grader.judge == resolver]
        if last_word:
            settled[pair] = last_word[-1]
        elif len(set(given.values())) == 1:
            settled[pair] = next(iter(given.values()))
        else:
            unsettled.append(Unsettled(pair, given))
    return settled, tuple(sorted(unsettled, key=lambda u: u.pair))


def plan(
    dataset: Dataset,
    settled: Mapping[Pair, int],
    unsettled: Sequence[Unsettled],
    *,
    replace: bool = False,
) -> Export:
    """Hold merged grades against the dataset's judgments.

    Args:
        dataset: What was judged, with the judgments it has.
        settled: A grade each.
        unsettled: Told on, not exported.
        replace: Whether differing grades will be replaced.
    """
    before = _judged(dataset)
    after = dict(before)
    added: dict[Pair, int] = {}
    differing: list[Differing] = []
    same = 0

    def place(pair: Pair) -> tuple[int, int]:
        return dataset.position_of[pair.query_id], dataset.row_of[pair.memory_id]

    for pair in sorted(settled, key=place):
        grade, there = settled[pair], before.get(pair, UNJUDGED)
        if there == UNJUDGED:
            added[pair] = after[pair] = grade
        elif there == grade:
            same += 1
        else:
            differing.append(Differing(pair, there, grade))
            if replace:
                after[pair] = grade
    relevant = {pair.query_id for pair, grade in after.items() if grade > 0}
    return Export(
        added=added,
        same=same,
        differing=tuple(differing),
        unsettled=tuple(unsettled),
        unanswered=tuple(q.id for q in dataset.queries if q.answerable and q.id not in relevant),
        answered=tuple(q.id for q in dataset.queries if not q.answerable and q.id in relevant),
    )


def write(dataset: Dataset, export: Export, *, replace: bool = False) -> Path:
    """Write the dataset's qrels.tsv, whole or not at all.

    Lines that stay are left as they stand, in their order; new ones follow.

    Args:
        dataset: One that was read from a folder.
        export: What :func:`plan` found.
        replace: Whether grades that differ are replaced.

    Returns:
        The file.

    Raises:
        JudgeError: If the dataset has no folder, or the file changed since it was read.
        OSError: If it cannot be written.
    """
    if dataset.folder is None:
        raise JudgeError(f"{dataset.name} was made in memory; write it to a folder first")
    path = dataset.folder / QRELS
    lines = _lines(path) if path.exists() else []
    stood = _stand(lines)
    if stood != _judged(dataset):
        raise JudgeError(f"{path} changed while it was being exported to; do it again")
    new = {d.pair: d.judged for d in export.differing} if replace else {}
    kept = [_line(pair, new[pair]) if (pair := _pair(line)) in new else line for line in lines]
    kept += [_line(pair, grade) for pair, grade in export.added.items()]
    with replacing(path) as partial:
        partial.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8", newline="\n")
    if kept and not dataset.labelled:
        _say_labelled(dataset.folder / HEADER)
    return path


def _say_labelled(header: Path) -> None:
    """Take ``labelled: false`` out of dataset.yaml, which the judgments have made untrue."""
    lines = header.read_text("utf-8").splitlines(keepends=True)
    with replacing(header) as partial:
        text = "".join(line for line in lines if not _UNLABELLED.match(line))
        partial.write_text(text, encoding="utf-8", newline="")


def _judged(dataset: Dataset) -> dict[Pair, int]:
    judgments = dataset.judgments
    columns = (judgments.queries.tolist(), judgments.rows.tolist(), judgments.grades.tolist())
    return {
        Pair(dataset.queries[query].id, dataset.memories[row].id): grade
        for query, row, grade in zip(*columns, strict=True)
    }


def _stand(lines: Sequence[str]) -> dict[Pair, int]:
    return {_pair(line): int(line.split()[3]) for line in lines}


def _pair(line: str) -> Pair:
    query_id, _, memory_id, _ = line.split()
    return Pair(query_id, memory_id)


def _line(pair: Pair, grade: int) -> str:
    return f"{pair.query_id}\t0\t{pair.memory_id}\t{grade}"


def _lines(path: Path) -> list[str]:
    """Lines as the dataset's reader parts them: at line feeds alone."""
    content = path.read_bytes().decode("utf-8")  # a carriage return stays where it is
    return content.removesuffix("\n").split("\n") if content else []
