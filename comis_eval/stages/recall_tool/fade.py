"""What status and age leave of a score.

Source: specification of the recall tool, sections 0 (Decay), 1 (freshness_score) and 3.6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FRESHNESS = {"active": 1.0, "stale": 0.25, "superseded": 0.1, "archived": 0.0}
_OTHER = 0.5


def freshness(status: str | None) -> float:
    """Return what a status leaves of a score, in [0, 1]; a memory without one is active."""
    return 1.0 if status is None else _FRESHNESS.get(status, _OTHER)


def decay(age_days: NDArray[np.float64], base: float) -> NDArray[np.float64]:
    """Return ``base`` to the power of the age, in [0, 1]; what is not written yet is new.

    Args:
        age_days: Days, fractions included, since each memory was written. Any shape.
        base: What one day leaves, in [0, 1].
    """
    left: NDArray[np.float64] = np.power(base, np.maximum(age_days, 0.0))
    return left
