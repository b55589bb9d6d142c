"""The whole list that a call's pages are cut from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Rankings
from comis_eval.lanes.base import LaneHits
from comis_eval.pipelines.recall_tool.table import ToolTable
from comis_eval.stages.recall_tool.gate import Reason
from comis_eval.stages.recall_tool.graph import Node


@dataclass(frozen=True, slots=True)
class Listed:
    """One query's list: pages of one limit are slices of it, one behind the other.

    Attributes:
        rows: Memory rows in order, none twice.
        pinned: Those that lead because they are pinned.
        neighbours: Those that the graph brought to the first page, with their way.
        withheld: Why nothing is listed; empty: nothing is withheld.
    """

    rows: tuple[int, ...]
    pinned: frozenset[int]
    neighbours: dict[int, Node]
    withheld: Reason

    def next_offset(self, offset: int, limit: int) -> int | None:
        """Return where the next page starts; None at the end of the list."""
        return offset + limit if offset + limit < len(self.rows) else None


def hits_of(lists: Sequence[Listed]) -> LaneHits:
    """Return lists as a lane returns its hits: a memory's rank is its place in the list."""
    lengths = [len(listed.rows) for listed in lists]
    rows = np.array([row for listed in lists for row in listed.rows], dtype=np.int32)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return LaneHits(offsets, rows, np.zeros(len(rows)), np.ones(len(lists), dtype=bool))


@dataclass(frozen=True, eq=False)
class Paged:
    """What the tool answers a query set.

    Attributes:
        rankings: The lists and pages as the rest of the package reads them.
        table: What they were made of.
        lists: One a query.
        decay: What age left of each candidate's score, 1 without decay, shape (q, c) of the
            rankings' table.
    """

    rankings: Rankings
    table: ToolTable
    lists: tuple[Listed, ...]
    decay: NDArray[np.float64]
