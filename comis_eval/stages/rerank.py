"""Which candidates a second model scores, and what its answer does to the list."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Outcome(IntEnum):
    """How the rerank of one recall ended; the trace spells it in lower case."""

    SKIPPED = 0
    RAN = 1
    TIMED_OUT = 2
    FELL_BACK = 3


class Reason(IntEnum):
    """Why a rerank did not run."""

    NONE = 0
    DISABLED = 1
    ABSENT = 2
    UNAVAILABLE = 3
    TOO_FEW = 4
    ERROR = 5
    TIMEOUT = 6


_OUTCOME_OF = np.full(len(Reason), Outcome.SKIPPED, dtype=np.int8)
_OUTCOME_OF[[Reason.NONE, Reason.ERROR, Reason.TIMEOUT]] = [
    Outcome.RAN,
    Outcome.FELL_BACK,
    Outcome.TIMED_OUT,
]


class Reranked(NamedTuple):
    """The base scores after rerank.

    Attributes:
        base: What the boosts multiply, shape (q, c).
        tail: True for candidates that no pool member may fall behind, shape (q, c).
        outcome: An Outcome a query, shape (q,).
        reason: A Reason a query, shape (q,).
        pool: True for candidates handed to the model, shape (q, c); empty when not attempted.
    """

    base: NDArray[np.float64]
    tail: NDArray[np.bool_]
    outcome: NDArray[np.int8]
    reason: NDArray[np.int8]
    pool: NDArray[np.bool_]


def pool(
    position: NDArray[np.intp],
    alive: NDArray[np.bool_],
    *,
    max_candidates: int,
    min_results: int,
) -> NDArray[np.bool_]:
    """Mark the candidates that a reranker is asked about.

    Args:
        position: Place of each candidate among the living of its query, from 0, shape (q, c).
        alive: Candidates still in the list, shape (q, c).
        max_candidates: How many of the head are asked about, > 0.
        min_results: Queries with fewer living candidates (or none) are not asked about.

    Returns:
        Membership, shape (q, c).
    """
    enough: NDArray[np.bool_] = alive.sum(axis=1) >= max(min_results, 1)
    return alive & (position < max_candidates) & enough[:, None]


def apply(
    fused: NDArray[np.float64],
    asked: NDArray[np.bool_],
    scores: NDArray[np.float64],
    elapsed_ms: NDArray[np.float64],
    fault: NDArray[np.int8],
    *,
    timeout_ms: int,
) -> Reranked:
    """Let the model's scores replace the fused ones in the pool, where it answered in time.

    Args:
        fused: Fused scores, shape (q, c).
        asked: The pool, as :func:`pool` marks it.
        scores: The model's scores in [0, 1], shape (q, c); NaN where it gave none, which
            counts as 0.
        elapsed_ms: How long each query's rerank took or is taken to take, shape (q,).
        fault: NONE, UNAVAILABLE or ERROR a query, shape (q,): all but NONE keep the fused order.
        timeout_ms: A rerank that takes longer is given up.
    """
    attempted = asked.any(axis=1)
    late = elapsed_ms > timeout_ms
    reason = np.select(
        [fault == Reason.UNAVAILABLE, ~attempted, fault == Reason.ERROR, late],
        [Reason.UNAVAILABLE, Reason.TOO_FEW, Reason.ERROR, Reason.TIMEOUT],
        default=Reason.NONE,
    ).astype(np.int8)
    outcome = _OUTCOME_OF[reason]
    ran = outcome == Outcome.RAN

    replaced = asked & ran[:, None]
    base = np.where(replaced, np.nan_to_num(scores, nan=0.0), fused)
    return Reranked(base, ran[:, None] & ~asked, outcome, reason, asked)
