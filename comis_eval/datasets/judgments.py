"""Graded relevance judgments as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import DatasetError

MAX_GRADE = 127
"""Highest grade the arrays hold; dataset folders use 0..3."""

UNJUDGED = -1
"""What stands for "nobody judged this pair" where grades are looked up."""


class Judged(NamedTuple):
    """The judged memories of one query: their rows, ascending, and grades, one each."""

    rows: NDArray[np.int32]
    grades: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Judgments:
    """Who judged what how: one element a judged (query, memory) pair.

    Sorted by query, then memory row; no pair stands twice.

    Attributes:
        queries: Position of the query in its dataset, shape (n,), int32.
        rows: Row of the memory in its dataset, shape (n,), int32.
        grades: 0 (judged irrelevant) to 3, shape (n,), int8.
        n_queries: How many queries the dataset has.
    """

    queries: NDArray[np.int32]
    rows: NDArray[np.int32]
    grades: NDArray[np.int8]
    n_queries: int

    @classmethod
    def of(
        cls, triples: Iterable[tuple[int, int, int]] | NDArray[np.integer], *, n_queries: int
    ) -> Self:
        """Sort (query position, memory row, grade) triples, or an (n, 3) array, into columns.

        Raises:
            DatasetError: If a pair is judged twice, a grade lies outside 0..127, or there
                is no such query.
        """
        listed = triples if isinstance(triples, np.ndarray) else list(triples)
        table = np.array(listed, dtype=np.int64).reshape(-1, 3)
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        for what, column, end in (("grade", 2, MAX_GRADE + 1), ("query", 0, n_queries)):
            outside = (table[:, column] < 0) | (table[:, column] >= end)
            if outside.any():
                pair = table[outside][0].tolist()
                raise DatasetError(
                    f"judgment {pair} has {what} {pair[column]}, outside 0..{end - 1}"
                )
        again = (table[1:, :2] == table[:-1, :2]).all(axis=1)
        if again.any():
            query, row, _ = table[1:][again][0].tolist()
            raise DatasetError(f"query {query} judges memory row {row} twice")
        return cls(
            queries=table[:, 0].astype(np.int32),
            rows=table[:, 1].astype(np.int32),
            grades=table[:, 2].astype(np.int8),
            n_queries=n_queries,
        )

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each query's pairs begin, shape (n_queries + 1,); the last entry is n."""
        return np.searchsorted(self.queries, np.arange(self.n_queries + 1))

    def judged(self, query: int) -> Judged:
        """Return the judged memories of the query at a position."""
        part = slice(self.starts[query], self.starts[query + 1])
        return Judged(self.rows[part], self.grades[part])

    def grade(self, queries: NDArray[np.integer], rows: NDArray[np.integer]) -> NDArray[np.int8]:
        """Look up the grades of many pairs at once.

        Args:
            queries: Query positions, any shape that broadcasts with ``rows``.
            rows: Memory rows; -1 (no memory) is never judged.

        Returns:
            One grade a pair, int8, ``UNJUDGED`` where nobody judged.
        """
        asked = np.asarray(queries, dtype=np.int64) << 32 | np.asarray(rows, dtype=np.int64)
        if not len(self):
            return np.full(asked.shape, UNJUDGED, dtype=np.int8)
        at = np.minimum(np.searchsorted(self._pairs, asked), len(self) - 1)
        return np.where(self._pairs[at] == asked, self.grades[at], np.int8(UNJUDGED))

    def subset(self, queries: NDArray[np.integer]) -> Judgments:
        """Keep the judgments of some queries, renumbered in the order given."""
        parts = [(new, self.judged(int(old))) for new, old in enumerate(queries)]
        return Judgments.of(
            (
                (new, int(row), int(grade))
                for new, judged in parts
                for row, grade in zip(judged.rows, judged.grades, strict=True)
            ),
            n_queries=len(parts),
        )

    @cached_property
    def _pairs(self) -> NDArray[np.int64]:
        return self.queries.astype(np.int64) << 32 | self.rows.astype(np.int64)
