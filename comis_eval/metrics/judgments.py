"""What was judged, as the list that nothing could beat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets.judgments import Judgments
from comis_eval.errors import MetricError


@dataclass(frozen=True, eq=False)
class Ideal:
    """Grades above 0 of every judged memory, query by query: what a perfect list would show.

    Attributes:
        grades: Sorted descending, padded with 0, shape (q, j), int8.
    """

    grades: NDArray[np.int8]

    def __post_init__(self) -> None:
        if self.grades.ndim != 2:
            raise MetricError(f"ideal grades have shape (queries, judged), got {self.grades.shape}")
        if (self.grades < 0).any() or (self.grades[:, 1:] > self.grades[:, :-1]).any():
            raise MetricError("ideal grades must be sorted descending and padded with 0")

    @classmethod
    def of(cls, judgments: Judgments) -> Self:
        """Sort each query's grades above 0."""
        keep = judgments.grades > 0
        queries, grades = judgments.queries[keep], judgments.grades[keep]
        order = np.lexsort((-grades, queries))
        queries, grades = queries[order], grades[order]
        counts = np.bincount(queries, minlength=judgments.n_queries)
        firsts = np.cumsum(counts) - counts
        table = np.zeros((judgments.n_queries, int(counts.max(initial=0))), dtype=np.int8)
        table[queries, np.arange(len(queries)) - firsts[queries]] = grades
        return cls(table)

    def __len__(self) -> int:
        return len(self.grades)

    @cached_property
    def answerable(self) -> NDArray[np.bool_]:
        """Queries with a memory of grade >= 1, shape (q,)."""
        return self.relevant(1) > 0

    def relevant(self, level: int) -> NDArray[np.int64]:
        """Count the memories of each query judged at or above a level >= 1, shape (q,)."""
        counts: NDArray[np.int64] = np.count_nonzero(self.grades >= level, axis=1)
        return counts
