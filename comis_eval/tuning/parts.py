"""The queries a sweep may look at: for searching, for choosing, and for the one last look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.evaluation.inputs import Judge
from comis_eval.tuning.answers import Table
from comis_eval.tuning.replay import Replay


@dataclass(frozen=True, eq=False)
class Bench:
    """A dataset with one table that answers for a whole space.

    Attributes:
        dataset: All its queries.
        table: Candidates of all its queries.
        current: The configuration in use.
        objectives: What is searched for.
    """

    dataset: Dataset
    table: Table
    current: Config
    objectives: tuple[str, ...]

    @property
    def groups(self) -> NDArray[np.str_]:
        """Group of each query, shape (q,)."""
        return np.array([query.group or query.id for query in self.dataset.queries])

    @property
    def categories(self) -> NDArray[np.str_]:
        """Category of each query, shape (q,)."""
        return np.array([query.category for query in self.dataset.queries])

    def replay(self, positions: NDArray[np.integer] | None = None) -> Replay:
        """Scores configurations on some of the queries; None: on all."""
        if positions is None:
            return Replay(Judge(self.dataset), self.table, self.current, self.objectives)
        part = self.dataset.subset(positions)
        return Replay(Judge(part), self.table.subset(positions), self.current, self.objectives)
