"""How far judges agree with each other, and with themselves on a second look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import NamedTuple

from comis_eval.datasets import Dataset
from comis_eval.judge.journal import Entry, Held, Pair, grades
from comis_eval.judge.pairs import seen
from comis_eval.stats import Agreement, weighted_kappa


class Grader(NamedTuple):
    """One look at pairs: a judge, and 1 or 2 for the first or second sitting."""

    judge: str
    sitting: int

    def __str__(self) -> str:
        return self.judge if self.sitting == 1 else f"{self.judge}, second pass"


class Disagreement(NamedTuple):
    """A pair that two looks graded differently, and both grades."""

    pair: Pair
    first: int
    second: int


class Compared(NamedTuple):
    """Two looks at the same pairs."""

    first: Grader
    second: Grader
    agreement: Agreement
    disagreements: tuple[Disagreement, ...]


class Given(NamedTuple):
    """Every judge's grades.

    Attributes:
        grades: By grader, of pairs that the dataset has, with the texts they were given to.
        stale: Grades given to a text that has changed since; they count nowhere.
        unknown: Grades of pairs whose query or memory the dataset no longer has.
    """

    grades: Mapping[Grader, Mapping[Pair, int]]
    stale: tuple[tuple[Grader, Pair], ...]
    unknown: tuple[tuple[Grader, Pair], ...]


def given(dataset: Dataset, held: Mapping[str, Held]) -> Given:
    """Take the grades that stand out of the judges' files.

    Args:
        dataset: What was judged.
        held: Each judge's file by name.
    """
    taken: dict[Grader, dict[Pair, int]] = {}
    stale: list[tuple[Grader, Pair]] = []
    unknown: list[tuple[Grader, Pair]] = []
    for judge, file in sorted(held.items()):
        for sitting in (1, 2):
            grader = Grader(judge, sitting)
            found = grades(file.entries, sitting=sitting)
            kept: dict[Pair, int] = {}
            for pair, entry in found.items():
                if pair.query_id not in dataset.position_of or pair.memory_id not in dataset.row_of:
                    unknown.append((grader, pair))
                elif entry.seen != seen(dataset, pair):
                    stale.append((grader, pair))
                else:
                    kept[pair] = _grade(entry)
            if found:
                taken[grader] = kept
    return Given(taken, tuple(stale), tuple(unknown))


def compared(
    grades_: Mapping[Grader, Mapping[Pair, int]], *, seed: int = 0
) -> tuple[Compared, ...]:
    """Compare every two looks that have a pair in common, in order of their names."""
    return tuple(
        between(first, grades_[first], second, grades_[second], seed=seed)
        for first, second in combinations(sorted(grades_), 2)
        if grades_[first].keys() & grades_[second].keys()
    )


def between(
    first: Grader,
    ones: Mapping[Pair, int],
    second: Grader,
    twos: Mapping[Pair, int],
    *,
    seed: int = 0,
) -> Compared:
    """Compare two looks on the pairs that both graded, the query being the group."""
    shared = sorted(ones.keys() & twos.keys())
    agreement = weighted_kappa(
        [ones[pair] for pair in shared],
        [twos[pair] for pair in shared],
        [pair.query_id for pair in shared],
        seed=seed,
    )
    apart = [Disagreement(p, ones[p], twos[p]) for p in shared if ones[p] != twos[p]]
    apart.sort(key=lambda d: (-abs(d.first - d.second), d.pair))
    return Compared(first, second, agreement, tuple(apart))


TABLE = ("who", "and who", "kappa", "95% interval", "pairs", "same grade")
"""What :func:`rows` tells of each comparison."""


def rows(found: Sequence[Compared]) -> list[list[str]]:
    """Comparisons as text, one cell a column of TABLE."""
    return [
        [
            str(one.first),
            str(one.second),
            _figure(one.agreement.kappa),
            f"{_figure(one.agreement.low)} to {_figure(one.agreement.high)}",
            str(one.agreement.n),
            str(one.agreement.same),
        ]
        for one in found
    ]


def _figure(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"


def _grade(entry: Entry) -> int:
    if entry.grade is None:
        raise TypeError("a grade without a grade")  # the reader of the file lets none through
    return entry.grade
