"""Whether an outdated answer wins over the current one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comis_eval.metrics.lists import Inputs, Ranked, Values, given


def stale(listed: Ranked, inputs: Inputs, k: int) -> Values:
    """1 when, within k, the superseded answer stands above the current one, or alone; else 0.

    Lower is better; undefined when neither is there, and for queries without a superseded
    and a current answer. The current answer is the first relevant memory other than the
    superseded one.
    """
    superseded = given(inputs.superseded, "the superseded memory of each query")
    rows = given(listed.row, "the memory row of each rank")[:, :k]
    old = (rows == superseded[:, None]) & listed.within(k)
    current = listed.relevant(k, level=inputs.relevance_level) & ~old
    old_at, current_at = _first(old), _first(current)
    wins = (old_at < current_at).astype(np.float64)
    return np.where(np.minimum(old_at, current_at) < rows.shape[1], wins, np.nan)


def _first(marked: NDArray[np.bool_]) -> NDArray[np.intp]:
    """First marked column, or the number of columns when there is none, shape (q,)."""
    end = np.ones((len(marked), 1), dtype=bool)
    first: NDArray[np.intp] = np.concatenate([marked, end], axis=1).argmax(axis=1)
    return first
