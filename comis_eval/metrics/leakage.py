"""What entered the context although the dataset's policy keeps it out.

The policy is the dataset's, not the configuration's: a configuration that lets external
memories in leaks. A leak is listed, never averaged away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.metrics.arithmetic import as_values, count, discounts, rank_sum, share
from comis_eval.metrics.lists import Inputs, Ranked, Values, given


class Leak(NamedTuple):
    """One memory in a context that the policy keeps out, for one reason.

    Attributes:
        query: Position of the query.
        rank: Where it stands in the context, from 1.
        row: Its memory row; None when the lists carry no rows.
        why: ``trust`` or ``scope``.
        stage: The first stage after which it was present; None without a trace.
    """

    query: int
    rank: int
    row: int | None
    why: str
    stage: str | None


def policy_leak(listed: Ranked, _: Inputs, __: int) -> Values:
    """1 when the context holds a memory of disallowed trust or foreign scope, else 0.

    Must be 0. Needs no judgments: its mean is over every query the pipeline answered.
    """
    return as_values(count(_disallowed(listed) | _foreign(listed)) > 0)


def scope_leak(listed: Ranked, _: Inputs, __: int) -> Values:
    """1 when the context holds another tenant's, agent's or agent scope's memory, else 0."""
    return as_values(count(_foreign(listed)) > 0)


def laundered(listed: Ranked, _: Inputs, __: int) -> Values:
    """Count derived memories in the context that claim more trust than their sources.

    Must be 0: the least trusted source is the most a derived memory may claim.
    """
    plane = given(listed.laundered, "which memories are laundered")
    return as_values(count(plane & listed.within(listed.depth)))


def untrusted_share(listed: Ranked, _: Inputs, k: int) -> Values:
    """Unwanted memories among the first k, divided by those there are; 0 when empty.

    In [0, 1], lower is better. Unwanted: disallowed trust, foreign scope or poison.
    """
    there = np.maximum(count(listed.within(k)), 1)
    return share(count(_unwanted(listed)[:, :k]), there)


def leak_rank(listed: Ranked, _: Inputs, k: int) -> Values:
    """Sum of 1 / log2(rank + 1) over unwanted memories in the first k, over that of all k.

    In [0, 1], lower is better: a leak at the top weighs more.
    """
    weights = discounts(k)
    leaked = _unwanted(listed)[:, :k]
    most = float(np.cumsum(weights)[-1])
    return rank_sum(leaked * weights[: leaked.shape[1]]) / most


def leaks(inputs: Inputs) -> list[Leak]:
    """List every memory in a context that the policy keeps out, by query, rank and reason.

    Raises:
        MetricError: If the inputs hold no context, or not what the policy says of it.
    """
    listed = given(inputs.context, "the context")
    found = [
        _leak(inputs, listed, int(query), int(column), why)
        for why, plane in (("trust", _disallowed(listed)), ("scope", _foreign(listed)))
        for query, column in np.argwhere(plane)
    ]
    return sorted(found, key=lambda leak: (leak.query, leak.rank))


def _leak(inputs: Inputs, listed: Ranked, query: int, column: int, why: str) -> Leak:
    row = None if listed.row is None else int(listed.row[query, column])
    stage = None
    if row is not None and inputs.trace is not None:
        stage = inputs.trace.entered(query, row)
    return Leak(query, column + 1, row, why, stage)


def _disallowed(listed: Ranked) -> NDArray[np.bool_]:
    plane = given(listed.disallowed, "what trust the policy disallows")
    return plane & listed.within(listed.depth)


def _foreign(listed: Ranked) -> NDArray[np.bool_]:
    plane = given(listed.foreign, "what scope the policy disallows")
    return plane & listed.within(listed.depth)


def _unwanted(listed: Ranked) -> NDArray[np.bool_]:
    unwanted = _disallowed(listed) | _foreign(listed)
    if listed.poison is None:
        return unwanted
    return unwanted | (listed.poison & listed.within(listed.depth))
