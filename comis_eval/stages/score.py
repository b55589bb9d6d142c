"""Boosting by recency, event time, proof, trust and usefulness, and the order that follows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.stages.planes import along

DAY_MS = 86_400_000
HALF_LIFE_DAYS = 30.0
TIE = 1e-9
"""Two final scores no further apart are a tie."""
NEUTRAL = 0.5
"""A signal of this value moves nothing."""

Floats = NDArray[np.float64]


class Signals(NamedTuple):
    """What the boosts look at, each in [0, 1], any common shape; independent of every knob."""

    recency: Floats
    temporal: Floats
    proof: Floats
    trust: Floats
    usefulness: Floats


class Alphas(NamedTuple):
    """How far each signal may move a score, each in [0, 1], in the order of multiplication."""

    recency: float
    temporal: float
    proof: float
    trust: float
    usefulness: float


def age_days(time_ms: Floats, now_ms: Floats) -> Floats:
    """Days from a time to now, 0 for the future, NaN where the time is unknown."""
    return np.maximum((now_ms - time_ms) / DAY_MS, 0.0)


def recency(age: Floats) -> Floats:
    """Freshness of an age in days: 1 when new, 1/2 after a day, 1 / (1 + age)."""
    return 1.0 / (1.0 + age)


def temporal(event_age: Floats) -> Floats:
    """Freshness of the event a memory tells; neutral where its time is unknown (NaN)."""
    return np.where(np.isnan(event_age), NEUTRAL, recency(event_age))


def proof_strength(proof_count: Sequence[int | None]) -> Floats:
    """How well observations support a memory: clamp(0.5 + ln(count) / 10, 0, 1).

    Neutral for an unknown count, 0 for a count of 0. Each logarithm is Python's own, so a
    value never depends on how many are computed together.
    """
    strengths = [
        NEUTRAL if count is None else min(1.0, NEUTRAL + log(count) / 10) if count > 0 else 0.0
        for count in proof_count
    ]
    return np.array(strengths, dtype=np.float64)


def proof(strength: Floats, confidence: Floats, age: Floats) -> Floats:
    """Pull the proof strength towards neutral as confidence is low or the event is old.

    ``0.5 + (strength - 0.5) x confidence x 0.5^(age / 30)``; the whole factor is 1 where
    confidence is unknown (NaN).

    Args:
        strength: As :func:`proof_strength` gives it.
        confidence: In [0, 1], NaN where unknown; same shape.
        age: Days since the event (else since the writing); same shape.
    """
    trusted = np.ones(np.shape(strength))
    known = ~np.isnan(confidence)
    decayed = [
        c * 0.5 ** (a / HALF_LIFE_DAYS)
        for c, a in zip(confidence[known].tolist(), age[known].tolist(), strict=True)
    ]
    trusted[known] = decayed
    return NEUTRAL + (strength - NEUTRAL) * trusted


def usefulness(used: Floats, ignored: Floats) -> Floats:
    """Share of the times a memory was used when shown; neutral where it never was."""
    shown = used + ignored
    return np.where(shown > 0, used / np.where(shown > 0, shown, 1.0), NEUTRAL)


def factors(signals: Signals, alphas: Alphas) -> list[Floats]:
    """One factor a signal, ``1 + alpha x (signal - 0.5)``, in the order of multiplication."""
    return [1.0 + alpha * (signal - NEUTRAL) for signal, alpha in zip(signals, alphas, strict=True)]


def boost(base: Floats, signals: Signals, alphas: Alphas) -> Floats:
    """Multiply the factors into the base scores, left to right.

    A factor whose alpha is 0 is exactly 1 and is left out.
    """
    final = base
    for signal, alpha in zip(signals, alphas, strict=True):
        if alpha != 0.0:
            factor = signal - NEUTRAL
            factor *= alpha
            factor += 1.0
            final = np.multiply(final, factor, out=factor)
    return final


def order_by_score(
    final: Floats, tail: NDArray[np.bool_], alive: NDArray[np.bool_], behind: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order each query's candidates, in whatever order they come in, as far as scores decide.

    Args:
        final: Scores, shape (q, c).
        tail: Candidates that come after all others, shape (q, c).
        alive: Candidates in the list, shape (q, c).
        behind: Keys above every score by which the others come last, shape (q, c), no two of
            a query equal.

    Returns:
        A permutation of the columns, shape (q, c), and the queries where scores within a tie
        leave it open: there :func:`order` must be asked.
    """
    key = behind * ~alive - final  # a score is lost beside such a key
    # Without equals every sort gives the same, and NumPy's quickest is three times as fast as
    # its stable one. Equals are within a tie.
    ranked = np.argsort(key, axis=1)
    if tail.any():
        last = np.where(alive, tail, np.int8(2))
        ranked = along(ranked, np.argsort(along(last, ranked), axis=1, kind="stable"))
    ordered = along(key, ranked)
    tied = ~(ordered[:, 1:] - ordered[:, :-1] > TIE)  # true for NaN too
    if tail.any():
        listed = along(last, ranked)
        tied &= listed[:, 1:] == listed[:, :-1]
    return ranked, np.flatnonzero(tied.any(axis=1))


def order(
    final: Floats, trust: NDArray[np.int8], tail: NDArray[np.bool_], alive: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Order each query's candidates, given in incoming order.

    Pool before tail; then score descending; scores within 1e-9 are a tie and go to the
    higher trust, then to the incoming order. That comparison is not transitive over chains
    of near ties, so the order is the one a TimSort with it produces. Rows whose ties are
    all equal to the bit are sorted by array instead, which gives the same.

    Args:
        final: Scores, shape (q, c).
        trust: Trust ranks, shape (q, c), higher is trusted more.
        tail: Candidates that come after all others, shape (q, c).
        alive: Candidates in the list, shape (q, c); the others come last, in incoming order.

    Returns:
        A permutation of the columns, shape (q, c).
    """
    key = np.where(alive, -final, np.inf)
    if tail.any():
        ranked = np.lexsort((key, tail | ~alive, ~alive), axis=1)
    else:
        ranked = np.argsort(key, axis=1, kind="stable")
    equal, near = _unsettled(key, trust, tail, alive, ranked)
    if len(equal):
        falling = np.where(alive, -trust, np.int8(0))
        last = np.where(alive, tail, np.int8(2))
        ranked[equal] = np.lexsort((falling[equal], key[equal], last[equal]), axis=1)
    for row in near:
        ranked[row] = _compared(final[row], trust[row], tail[row], alive[row])
    return ranked


def _unsettled(
    key: Floats,
    trust: NDArray[np.int8],
    tail: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    ranked: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that the comparator could order otherwise than the plain sort.

    If every pair of neighbours within a tie is equal to the bit and in falling trust, the
    plain sort is what the comparator gives.

    Returns:
        Rows whose ties are all equal to the bit: the comparator is transitive there, and any
        stable sort with it gives the same. Then those with a tie that is not.
    """
    none = np.empty(0, dtype=np.intp)
    if key.shape[1] < 2:
        return none, none
    ordered = along(key, ranked)
    with np.errstate(invalid="ignore"):  # inf - inf among those not alive
        gap = ordered[:, 1:] - ordered[:, :-1]
    rows, columns = np.nonzero(gap <= TIE)
    if len(rows) == 0:
        return none, none
    left, right = ranked[rows, columns], ranked[rows, columns + 1]
    together = alive[rows, right] & (tail[rows, left] == tail[rows, right])
    rising = trust[rows, right] > trust[rows, left]
    near = np.unique(rows[together & (gap[rows, columns] > 0)])
    return np.setdiff1d(rows[together & rising], near), near


def _compared(
    final: Floats, trust: NDArray[np.int8], tail: NDArray[np.bool_], alive: NDArray[np.bool_]
) -> NDArray[np.intp]:
    scores, levels = final.tolist(), trust.tolist()

    def compare(a: int, b: int) -> int:
        difference: float = scores[b] - scores[a]
        if abs(difference) > TIE:
            return 1 if difference > 0 else -1
        return int(levels[b] - levels[a])

    by_score = cmp_to_key(compare)
    columns = np.arange(len(final))
    segments = (alive & ~tail, alive & tail)
    ranked = [column for s in segments for column in sorted(columns[s].tolist(), key=by_score)]
    return np.array([*ranked, *columns[~alive].tolist()], dtype=np.intp)
