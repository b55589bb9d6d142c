"""Memories that say nearly the same, by their similarity hashes.

Source: specification of the recall tool, section 2.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEAR = 10
"""In how many of 64 bits the hashes of near-duplicates may differ."""


def first_near(value: int, others: NDArray[np.int64], *, most: int = NEAR) -> int | None:
    """Return the place of the first hash that is near a memory's own; None: there is none.

    Args:
        value: The memory's hash; 0, that of a text too short to tell, is near nothing.
        others: Hashes of other memories, shape (n,); 0 likewise.
        most: How many bits may differ.
    """
    if not value:
        return None
    differing = np.bitwise_count((others ^ np.int64(value)).view(np.uint64))
    near = np.flatnonzero((differing <= most) & (others != 0))
    return int(near[0]) if len(near) else None
