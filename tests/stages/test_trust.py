"""The trust filter keeps the levels it is told, and nothing else."""

from itertools import chain, combinations

import numpy as np
import pytest

from comis_eval.stages import trust
from comis_eval.types import TrustLevel

SUBSETS = list(chain.from_iterable(combinations(TrustLevel, n) for n in range(4)))


@pytest.mark.parametrize("levels", SUBSETS, ids=lambda levels: "+".join(levels) or "none")
def test_exactly_the_levels_given_are_kept(levels: tuple[TrustLevel, ...]) -> None:
    every = list(TrustLevel)
    ranks = np.array([[level.rank for level in every]], dtype=np.int8)
    assert trust.allowed(ranks, levels).tolist() == [[level in levels for level in every]]


def test_any_shape_is_kept() -> None:
    assert trust.allowed(np.zeros((2, 0), dtype=np.int8), [TrustLevel.SYSTEM]).shape == (2, 0)
