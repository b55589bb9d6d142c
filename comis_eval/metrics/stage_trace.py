"""Every candidate's way through the stages, for the metrics that judge the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.types import Fate

STAGES = ("search", "fuse", "rerank", "score", "trust", "dedup", "budget")
"""The stages after which presence is counted, in the order they run."""

BLOCKING = (Fate.BELOW_MIN_SCORE, Fate.TRUST_FILTERED, Fate.SCOPE_FILTERED, Fate.EXPIRED)
"""Fates of a memory that a filter or a floor dropped; the others lost to better ones."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StageTrace:
    """Every candidate's way through the stages; arrays have shape (q, c).

    Padding is False in every plane.

    Attributes:
        row: Memory row of each candidate, -1 as padding.
        present: Per stage that the pipeline has, by its name in STAGES: which candidates
            it left in.
        blocked: Candidates that met one of the BLOCKING fates.
        relevant_allowed: Candidates relevant to the query and allowed by the policy.
        unwanted: Candidates of disallowed trust or scope, or labelled as poison.
    """

    row: NDArray[np.int32]
    present: Mapping[str, NDArray[np.bool_]]
    blocked: NDArray[np.bool_]
    relevant_allowed: NDArray[np.bool_]
    unwanted: NDArray[np.bool_]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.present) - set(STAGES))
        if unknown:
            raise MetricError(f"unknown stages {unknown} in a trace; the stages are {STAGES}")
        planes = {**self.present, "blocked": self.blocked, "unwanted": self.unwanted}
        for name, plane in (planes | {"relevant_allowed": self.relevant_allowed}).items():
            if plane.shape != self.row.shape:
                raise MetricError(f"{name} has shape {plane.shape}, row {self.row.shape}")

    def __len__(self) -> int:
        return len(self.row)

    def after(self, stage: str) -> NDArray[np.bool_]:
        """Return which candidates a stage left in, shape (q, c).

        Raises:
            MetricError: If the pipeline has no such stage.
        """
        if stage not in self.present:
            raise MetricError(f"the trace holds {sorted(self.present)}, not {stage!r}")
        return self.present[stage]

    def entered(self, query: int, row: int) -> str | None:
        """Return the first stage after which a memory was present, None when it never was."""
        columns = self.row[query] == row
        return next((s for s in self._in_order() if self.present[s][query, columns].any()), None)

    def returned(self) -> NDArray[np.bool_]:
        """Tell which candidates were dropped by one stage and present after a later one."""
        seen = np.zeros(self.row.shape, dtype=bool)
        dropped = np.zeros(self.row.shape, dtype=bool)
        back = np.zeros(self.row.shape, dtype=bool)
        for stage in self._in_order():
            here = self.present[stage]
            back |= dropped & here
            dropped |= seen & ~here
            seen |= here
        return back

    def _in_order(self) -> tuple[str, ...]:
        return tuple(stage for stage in STAGES if stage in self.present)
