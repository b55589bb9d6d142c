"""Fitting the ranked list into the context."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Fitted(NamedTuple):
    """What is injected.

    Attributes:
        included: Shape (q, c), in the order given.
        over_budget: Candidates that did not fit, shape (q, c). What is neither included nor
            over budget came after maxResults was reached.
        chars: Length of the whole section with its header, shape (q,); 0 when nothing fits.
    """

    included: NDArray[np.bool_]
    over_budget: NDArray[np.bool_]
    chars: NDArray[np.int64]


def fit(
    lengths: NDArray[np.int64],
    alive: NDArray[np.bool_],
    *,
    header: int,
    max_results: NDArray[np.int64],
    max_chars: int,
    overflow: Literal["skip", "stop"],
) -> Fitted:
    """Append lines while they fit.

    A section exactly ``max_chars`` long fits. A line that does not is left out whole and
    takes no place; with ``skip`` later lines may still enter, with ``stop`` none does.

    Args:
        lengths: Length of each candidate's line with its newline, shape (q, c), in ranked
            order.
        alive: Candidates in the list, shape (q, c).
        header: Length of what stands before the first line.
        max_results: How many lines each query takes at the most, shape (q,).
        max_chars: How long the section may be.
        overflow: What a line that does not fit does to later ones.
    """
    counted = alive & (np.cumsum(alive, axis=1, dtype=np.int32) <= max_results[:, None])
    wanted = np.where(counted, lengths, 0)
    total = header + wanted.sum(axis=1)
    included, over = counted, np.zeros_like(alive)
    tight = np.flatnonzero(total > max_chars)
    if len(tight):
        included = counted.copy()
        included[tight], over[tight] = _one_by_one(
            lengths[tight], alive[tight], header, max_results[tight], max_chars, overflow
        )
    size = np.where(included, lengths, 0).sum(axis=1)
    return Fitted(included, over, np.where(included.any(axis=1), header + size, 0))


def _one_by_one(
    lengths: NDArray[np.int64],
    alive: NDArray[np.bool_],
    header: int,
    limit: NDArray[np.int64],
    max_chars: int,
    overflow: str,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Walk down the ranks of all tight queries at once."""
    queries, columns = alive.shape
    used = np.full(queries, header, dtype=np.int64)
    taken = np.zeros(queries, dtype=np.int64)
    stopped = np.zeros(queries, dtype=bool)
    included = np.zeros_like(alive)
    over = np.zeros_like(alive)
    for column in range(columns):
        tried = alive[:, column] & (taken < limit)
        fits = tried & ~stopped & (used + lengths[:, column] <= max_chars)
        included[:, column] = fits
        over[:, column] = tried & ~fits
        used[fits] += lengths[fits, column]
        taken += fits
        if overflow == "stop":
            stopped |= tried & ~fits
    return included, over
