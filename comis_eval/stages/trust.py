"""The trust filter: who may speak at all."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from comis_eval.types import TrustLevel


def allowed(trust: NDArray[np.int8], levels: Iterable[TrustLevel]) -> NDArray[np.bool_]:
    """Tell which candidates have one of the levels.

    Args:
        trust: Trust ranks (2 system, 1 learned, 0 external), any shape.
        levels: The levels to keep; none keeps nothing.
    """
    keep = np.zeros(trust.shape, dtype=bool)
    for level in set(levels):
        keep |= trust == level.rank
    return keep
