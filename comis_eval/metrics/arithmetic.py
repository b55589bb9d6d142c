"""Sums and shares over ranks that do not depend on how far a list was padded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.metrics.lists import Values


def rank_sum(terms: NDArray[Any]) -> Values:
    """Sum over ranks, first to last, shape (q, r) to (q,).

    One term after another, as on paper: numpy's own sum groups terms by the array's
    width, so a list would score differently alone than among longer ones.
    """
    if terms.shape[1] == 0:
        return np.zeros(len(terms))
    total: Values = np.cumsum(terms, axis=1, dtype=np.float64)[:, -1]
    return total


def share(part: NDArray[Any], whole: NDArray[Any]) -> Values:
    """Divide, NaN where the whole is 0: undefined is not zero."""
    result = np.full(len(part), np.nan)
    np.divide(part, whole, out=result, where=np.asarray(whole) != 0)
    return result


def count(marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count what is marked in each list, shape (q, r) to (q,)."""
    counts: NDArray[np.int64] = np.count_nonzero(marks, axis=1)
    return counts


def as_values(numbers: NDArray[Any]) -> Values:
    """Return counts or answers as float64; true is 1."""
    values: Values = numbers.astype(np.float64)
    return values


def discounts(k: int) -> Values:
    """Weigh ranks 1..k by 1 / log2(rank + 1), shape (k,)."""
    weights: Values = 1.0 / np.log2(np.arange(2, k + 2))
    return weights
