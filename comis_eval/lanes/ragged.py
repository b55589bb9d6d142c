"""Rows of unequal length in flat arrays: the joins that every lane is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Joined(NamedTuple):
    """Flattened ranges, range after range.

    Attributes:
        owners: Which range each element is from, shape (n,).
        positions: Where it points, shape (n,).
    """

    owners: NDArray[np.int64]
    positions: NDArray[np.int64]


def join(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Joined:
    """Flatten the ranges ``starts[i] : starts[i] + sizes[i]``."""
    owners = np.repeat(np.arange(len(sizes)), sizes)
    shift = starts - (np.cumsum(sizes) - sizes)
    return Joined(owners, np.arange(len(owners)) + shift[owners])


def blocks(sizes: NDArray[np.int64], limit: int) -> Iterator[slice]:
    """Cut items into consecutive blocks whose sizes add up to the limit at most.

    An item above the limit is a block of its own.
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + limit, side="right")))
        yield slice(start, stop)
        start = stop
