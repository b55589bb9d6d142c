"""TREC files: relevance judgments (qrels) and ranked results (run files).

In a run file the rank column is the order. It is never re-sorted by score, unlike
trec_eval, which ignores the rank, sorts by score rounded to single precision and breaks
ties by document id, descending. Lines may stand in any order (trec_eval's own test file is
sorted by document); a rank that repeats leaves the order open and is an error.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.faults import Complaints, listed, shown
from comis_eval.datasets.fields import UnusableError, identifier
from comis_eval.datasets.lines import read_columns
from comis_eval.errors import DatasetError

Qrels = Mapping[str, Mapping[str, int]]
"""Grade by query id, then document id."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_RUN_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")
QRELS_COLUMNS = ("query", "iteration", "document", "grade")


class Hit(NamedTuple):
    """One document of a ranking, and the score it came with."""

    doc_id: str
    score: float


@dataclass(frozen=True)
class Run:
    """The ranked results of one system.

    Attributes:
        tag: The system's name in the file.
        rankings: Hits of each query, best first, in rank order.
    """

    tag: str
    rankings: Mapping[str, tuple[Hit, ...]]

    @property
    def tied(self) -> int:
        """How many hits share their score with another hit of the same query."""
        repeats = (Counter(hit.score for hit in hits) for hits in self.rankings.values())
        return sum(n for counts in repeats for n in counts.values() if n > 1)

    @property
    def inversions(self) -> int:
        """How many hits score higher than the hit ranked just before them."""
        return sum(
            later.score > earlier.score
            for hits in self.rankings.values()
            for earlier, later in pairwise(hits)
        )


def read_qrels(path: Path | str) -> dict[str, dict[str, int]]:
    """Read TREC judgments: ``query iteration document grade``, the iteration ignored.

    Returns:
        Grade by query id, then document id, both in file order.

    Raises:
        DatasetError: If a line is malformed, a grade is no whole number, a pair is judged
            twice, or there is no line at all; every fault by line.
    """
    complaints = Complaints()
    qrels: dict[str, dict[str, int]] = {}
    first_line: dict[tuple[str, str], int] = {}
    path = Path(path)
    for line, words in read_columns(path, QRELS_COLUMNS, complaints):
        query_id, _, doc_id, grade = words
        first = first_line.setdefault((query_id, doc_id), line)
        pair = f"query {shown(query_id)}, document {shown(doc_id)}"
        if first != line:
            complaints.fault(path.name, line, f"{pair}: already judged on line {first}")
        elif not _INTEGER.fullmatch(grade):
            complaints.fault(
                path.name, line, f"{pair}: grade is {shown(grade)}; it must be a whole number"
            )
        else:
            qrels.setdefault(query_id, {})[doc_id] = int(grade)
    _raise_faults(path, complaints, empty=not qrels)
    return qrels


def read_run(path: Path | str) -> Run:
    """Read TREC results: ``query Q0 document rank score tag``.

    Returns:
        The run, each query's hits in the order of the rank column, from any first rank.

    Raises:
        DatasetError: If a line is malformed, a score is not finite, a document or a rank
            repeats within a query, tags differ, or there is no line at all; every fault by
            line.
    """
    complaints = Complaints()
    ranked: dict[str, dict[int, Hit]] = defaultdict(dict)
    line_of: dict[tuple[str, str | int], int] = {}
    tags: dict[str, int] = {}
    path = Path(path)
    for line, words in read_columns(path, _RUN_COLUMNS, complaints):
        query_id, _, doc_id, rank_text, score_text, tag = words
        tags.setdefault(tag, line)
        rank, score = _rank(rank_text), _score(score_text)
        wrong: list[str] = []
        if rank is None:
            wrong.append(f"rank is {shown(rank_text)}; it must be a whole number")
        elif (first := line_of.setdefault((query_id, rank), line)) != line:
            wrong.append(f"rank {rank} already stands on line {first}")
        if score is None:
            wrong.append(f"score is {shown(score_text)}; it must be a finite number")
        if (first := line_of.setdefault((query_id, doc_id), line)) != line:
            wrong.append(f"document {shown(doc_id)} already stands on line {first}")
        for message in wrong:
            complaints.fault(path.name, line, f"query {shown(query_id)}: {message}")
        if rank is not None and score is not None and not wrong:
            ranked[query_id][rank] = Hit(doc_id, score)
    if len(tags) > 1:
        told = ", ".join(f"{shown(tag)} (line {line})" for tag, line in tags.items())
        complaints.fault(path.name, None, f"holds several runs: {told}; one file a run")
    _raise_faults(path, complaints, empty=not ranked)
    rankings = {
        query_id: tuple(hits[rank] for rank in sorted(hits)) for query_id, hits in ranked.items()
    }
    return Run(next(iter(tags)), rankings)


def write_qrels(qrels: Qrels, path: Path) -> None:
    """Write judgments as TREC qrels, in the order given.

    Raises:
        DatasetError: If an id cannot stand in a white-space separated file.
    """
    _write(
        path,
        (
            (query_id, "0", doc_id, str(grade))
            for query_id, grades in qrels.items()
            for doc_id, grade in grades.items()
        ),
    )


def write_run(run: Run, path: Path) -> None:
    """Write a run, ranks from 1, scores to the last bit.

    Raises:
        DatasetError: If an id or the tag cannot stand in a white-space separated file.
    """
    _write(
        path,
        (
            (query_id, "Q0", hit.doc_id, str(rank), repr(float(hit.score)), run.tag)
            for query_id, hits in run.rankings.items()
            for rank, hit in enumerate(hits, start=1)
        ),
    )


def _write(path: Path, rows: Iterable[Sequence[str]]) -> None:
    lines: list[str] = []
    for row in rows:
        for word in row:
            try:
                identifier(word)
            except UnusableError as error:
                raise DatasetError(f"{path} not written: an id{error.args[0]}") from error
        lines.append(" ".join(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def _rank(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _score(text: str) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    return score if isfinite(score) and "_" not in text else None


def _raise_faults(path: Path, complaints: Complaints, *, empty: bool) -> None:
    if empty and not complaints.faults:
        complaints.fault(path.name, None, "is empty")
    if complaints.faults:
        raise DatasetError(
            f"{path} has {len(complaints.faults)} faults:\n{listed(complaints.faults)}"
        )
