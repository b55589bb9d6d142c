"""What a configuration makes of a table: orders, scores and the fate of every candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates.table import Candidates
from comis_eval.config import Config
from comis_eval.stages import fuse
from comis_eval.stages.planes import along
from comis_eval.types import Fate

FATES = tuple(Fate)
"""A fate's number in arrays is its position here."""

NUMBER = {fate: np.int8(number) for number, fate in enumerate(FATES)}
NO_FATE = np.int8(-1)
"""What stands in arrays for the living and for padding."""


@dataclass(frozen=True, eq=False)
class Rankings:
    """What a configuration makes of a table.

    Every array is shape (q, c) in column space unless it says otherwise.

    Attributes:
        table: The table, widened by what the spread lanes brought.
        config: The configuration.
        order: Columns of each query: the ranking first, then what the trust filter took,
            then the duplicates, each in scored order, then the rest as they were first seen.
        length: How many of ``order`` are the ranking (all survivors of trust filter and
            dedup), shape (q,).
        fate: A number of FATES, -1 where there is no candidate.
        deduped_by: Column of the memory that stayed in a duplicate's stead, else -1.
        ranks: Each lane's ranks as the fusion saw them, 0 where absent.
        fused: Normalised fused scores.
        ordinal: In which order candidates were first seen.
        searched: Candidates that came through the search lanes and their cuts.
        base: Scores the boosts multiply: the reranker's, or the fused.
        final: Boosted scores.
        reranker: The reranker's scores, NaN where it gave none.
        rerank_pool: Candidates that were put to the reranker.
        rerank_outcome, rerank_reason: Numbers of Outcome and Reason, shape (q,).
        included: Candidates in the context.
        inline: Candidates placed beside the user message instead of in the section.
        context_chars: Characters injected, shape (q,).
        presence: Who is still there after search, fuse, rerank, score, trust, dedup, budget.
        line_chars: Length of each candidate as the context shows it; None: as the lines of a
            section, see :meth:`Facts.line_lengths`.
    """

    table: Candidates
    config: Config
    order: NDArray[np.intp]
    length: NDArray[np.int64]
    fate: NDArray[np.int8]
    deduped_by: NDArray[np.int32]
    ranks: Mapping[str, NDArray[np.int32]]
    fused: NDArray[np.float64]
    ordinal: NDArray[np.int64]
    searched: NDArray[np.bool_]
    base: NDArray[np.float64]
    final: NDArray[np.float64]
    reranker: NDArray[np.float64]
    rerank_pool: NDArray[np.bool_]
    rerank_outcome: NDArray[np.int8]
    rerank_reason: NDArray[np.int8]
    included: NDArray[np.bool_]
    inline: NDArray[np.bool_]
    context_chars: NDArray[np.int64]
    presence: Mapping[str, NDArray[np.bool_]]
    line_chars: NDArray[np.int64] | None = None

    @cached_property
    def fused_order(self) -> NDArray[np.intp]:
        """Columns by fused score, those alive after fusion first; only a trace asks."""
        return fuse.listed(self.fused, self.ordinal, self.presence["fuse"])

    def ranked_rows(self, depth: int | None = None) -> NDArray[np.int32]:
        """Memory rows in final order, -1 behind each ranking's end.

        Args:
            depth: How far down; None: to the end of the longest.
        """
        longest = int(self.length.max(initial=0))
        width = longest if depth is None else min(depth, longest)
        rows = along(self.table.rows, self.order[:, :width])
        return np.where(np.arange(width) < self.length[:, None], rows, -1).astype(np.int32)

    def context_rows(self) -> NDArray[np.int32]:
        """Memory rows of each context in final order, -1 behind its end, shape (q, longest)."""
        columns, there = self._context
        rows = along(self.table.rows, columns)
        return np.where(there, rows, -1).astype(np.int32)

    def context_lines(self) -> NDArray[np.int64] | None:
        """Lengths of what :meth:`context_rows` lists, 0 behind its end; None: see line_chars."""
        if self.line_chars is None:
            return None
        columns, there = self._context
        return np.where(there, along(self.line_chars, columns), 0)

    @cached_property
    def _context(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Columns of each context in final order, and where there is one."""
        order = self.order[:, : int(self.length.max(initial=0))]
        queries, places = np.nonzero(along(self.included, order))
        counts = np.bincount(queries, minlength=len(order))
        # They come query by query and in order, so each only moves to the left.
        within = np.arange(len(queries)) - np.repeat(np.cumsum(counts) - counts, counts)
        there = np.arange(counts.max(initial=0)) < counts[:, None]
        columns = np.zeros(there.shape, dtype=np.intp)
        columns[queries, within] = order[queries, places]
        return columns, there

    def lane_counts(self) -> dict[str, int]:
        """For how many queries each lane that ran returned anything."""
        return {name: int((ranks > 0).any(axis=1).sum()) for name, ranks in self.ranks.items()}
