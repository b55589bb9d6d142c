"""Drawing with known chances: what is rare is drawn more often, and the weights say by how much."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def inclusion(strata: Codes, n: int) -> Floats:
    """The chance of each unit to be drawn, so that a stratum's share goes by its size's root.

    Example: strata of 900 and 100 units and n = 20 -> 15 and 5 are expected, where a draw in
    proportion would take 18 and 2.

    Args:
        strata: Stratum of each unit, shape (u,).
        n: How many are drawn, >= 1.

    Returns:
        Chances in (0, 1], shape (u,), which add up to n, or to u where that is less.
    """
    _, codes, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    wanted = 1 / np.sqrt(sizes[codes].astype(np.float64))
    chance = np.ones(len(strata))
    open_ = np.ones(len(strata), dtype=bool)
    while n < len(strata):
        # Who is certain to be drawn takes a place; the others share what is left.
        left = n - np.count_nonzero(~open_)
        chance[open_] = wanted[open_] * (left / wanted[open_].sum())
        certain = open_ & (chance >= 1)
        if not certain.any():
            break
        chance[certain] = 1.0
        open_ &= ~certain
    return chance


def systematic(chance: Floats, strata: Codes, rng: np.random.Generator) -> Codes:
    """Draw units with exactly the chances given.

    Units are lined up stratum by stratum, shuffled within; a comb of step 1 with a random
    start is laid along their chances. So every stratum gets its expected number, rounded up or
    down, and none is left out for being small.

    Args:
        chance: Of each unit, in (0, 1], shape (u,), adding up to a whole number.
        strata: Stratum of each unit, shape (u,).
        rng: Draws.

    Returns:
        Positions of what is drawn, ascending.

    Source:
        Madow, "On the theory of systematic sampling, II", Annals of Mathematical Statistics
        20(3), 1949.
    """
    order = np.lexsort((rng.permutation(len(chance)), strata))
    ends = np.cumsum(chance[order])
    n = round(float(ends[-1]))
    ends[-1] = n
    comb = rng.random() + np.arange(n)
    drawn: Codes = np.unique(order[np.searchsorted(ends, comb, side="right")])
    return drawn
