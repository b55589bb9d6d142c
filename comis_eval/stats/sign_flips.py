"""Sums of group differences under flips of their signs, in chunks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from comis_eval.errors import MetricError
from comis_eval.stats.groups import Floats

Alternative = Literal["two-sided", "greater", "less"]

EXACT_GROUPS = 20
"""Most groups with a difference whose flips are all enumerated: 2^20 of them."""
_CELLS = 1 << 21
"""Most numbers in a chunk, 16 MB of float64: smaller ones stay in the cache, yet leave the
threads of the matrix product waiting for each other when the machine is busy."""


def flipped_sums(
    sums: Floats, *, flips: int, seed: int, exact_groups: int = EXACT_GROUPS
) -> Iterator[Floats]:
    """Yield each column's sum after flipping the signs of whole groups.

    One flip applies to every column alike, which keeps what ties the columns together.
    With at most ``exact_groups`` groups that differ from 0 somewhere, all their flips are
    enumerated. With more, the flips are drawn, and the data as they are come first. Either
    way the unflipped data are among the flips, so a share of them is a p that cannot be 0.
    Drawn signs depend on the number of groups and the seed alone: a column gets the same
    whatever stands beside it.

    Args:
        sums: One row a group, shape (g, m).
        flips: How many to draw, >= 1; not used when enumerating.
        seed: Of the draw, >= 0.
        exact_groups: Most groups to enumerate.

    Yields:
        Chunks of shape (c, m); together 2^groups rows, or flips + 1.

    Raises:
        MetricError: If flips is below 1.

    Source:
        Phipson and Smyth, "Permutation p-values should never be zero", Statistical
        Applications in Genetics and Molecular Biology 9(1), 2010.
    """
    if not flips >= 1:
        raise MetricError(f"sign flips need flips >= 1, got {flips}")
    changed = sums.any(axis=1)
    if np.count_nonzero(changed) <= exact_groups:
        return _enumerated(sums[changed])
    return _drawn(sums, flips, seed)


def toward(alternative: Alternative, sums: Floats) -> Floats:
    """Turn sums so that larger speaks for the alternative."""
    match alternative:
        case "two-sided":
            return np.abs(sums)
        case "greater":
            return sums
        case "less":
            return -sums
    raise MetricError(f"alternative must be two-sided, greater or less, got {alternative!r}")


def _enumerated(sums: Floats) -> Iterator[Floats]:
    fit = max(_CELLS // max(sums.shape[1], 1), 1)
    inner = min(len(sums), fit.bit_length() - 1)
    block = _all_signs(sums[:inner])
    for rest in _all_signs(sums[inner:]):
        yield block + rest


def _all_signs(sums: Floats) -> Floats:
    """Return the sum under every choice of signs, shape (2^g, m)."""
    reached = np.zeros((1, sums.shape[1]))
    for group in sums:
        reached = np.concatenate([reached + group, reached - group])
    return reached


def _drawn(sums: Floats, flips: int, seed: int) -> Iterator[Floats]:
    bits = np.random.PCG64(seed)
    groups = len(sums)
    total = sums.sum(axis=0)
    yield total[np.newaxis]
    # A flip takes whole 64-bit words, so the size of a chunk does not move the stream.
    words = -(-groups // 64)
    most = max(_CELLS // max(groups, sums.shape[1]), 1)
    doubled = 2.0 * sums
    times = np.empty((most, groups))
    for start in range(0, flips, most):
        count = min(most, flips - start)
        drawn = bits.random_raw(count * words).astype("<u8", copy=False)
        kept = np.unpackbits(drawn.view(np.uint8).reshape(count, -1), axis=1, count=groups)
        times[:count] = kept
        # What is kept counts twice, less everything once: +1 and -1 without a pass for the sign.
        yield times[:count] @ doubled - total
