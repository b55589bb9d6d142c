"""The queries a sweep may look at: for searching, for choosing, and for the one last look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.evaluation.inputs import Judge
from comis_eval.pipelines.coverage import Coverage
from comis_eval.tuning.replay import Replay
from comis_eval.tuning.space import Space


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
    table: Candidates
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


def coverage_of(space: Space, current: Config) -> Coverage:
    """What a table must hold so that every point of a space can be replayed on it."""
    paths = {knob.path: knob for knob in space.knobs}

    def most(path: str, now: int) -> int:
        if path not in paths:
            return now
        knob = paths[path]
        numbers = [value for value in knob.choices if isinstance(value, int)]
        return max(int(knob.high), now, *numbers)

    rag = current.rag
    rerank = rag.rerank.enabled or "rag.rerank.enabled" in paths
    limit = most("rag.maxResults", rag.max_results)
    if rerank:
        limit = max(limit, most("rag.rerank.maxCandidates", rag.rerank.max_candidates))
    depth = current.semantics.lane_depth
    temporal = rag.lanes.temporal
    runs = temporal.enabled or "rag.lanes.temporal.enabled" in paths
    return Coverage(
        depth=2 * limit if depth == "limit" else depth,
        rerank=rerank,
        entity=rag.entity_lane.enabled or "rag.entityLane.enabled" in paths,
        window_days=most("rag.lanes.temporal.windowDays", temporal.window_days) if runs else 0,
        causal=rag.lanes.causal.enabled or "rag.lanes.causal.enabled" in paths,
    )
