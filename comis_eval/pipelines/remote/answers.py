"""What a live system answered, read into ids: nothing it says is taken on trust.

An answer is whatever JSON the system gives. It is looked through for one list of objects,
each of which says which memory it is; anything else is a fault with a name, not an empty
list, since a system that cannot be read has not answered that it knows nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from comis_eval.text import printable

MAX_RESULTS = 10_000
"""Results of one answer; more than this is not an answer to a question."""

_SHOWN = 60


class Answer(NamedTuple):
    """One query's answer.

    Attributes:
        ids: What each result says which memory it is, best first.
        chars: Length of each result as JSON, which is what the caller's context holds.
        latency_ms: From sending to having read, of the attempt that succeeded.
        attempts: Of which this was the last.
    """

    ids: tuple[str, ...]
    chars: tuple[int, ...]
    latency_ms: float
    attempts: int


class Failure(NamedTuple):
    """Why a query has no answer, after how many attempts."""

    reason: str
    attempts: int


@dataclass(frozen=True, eq=False)
class Answers:
    """What a query set was answered, one element a query, in its order."""

    of: tuple[Answer | Failure, ...]

    @property
    def failures(self) -> dict[str, list[int]]:
        """Positions of the queries that failed, by reason."""
        found: dict[str, list[int]] = {}
        for position, one in enumerate(self.of):
            if isinstance(one, Failure):
                found.setdefault(one.reason, []).append(position)
        return found

    def latency(self) -> dict[str, float] | None:
        """p50, p95 and p99 of the answered queries, ms; None when none was answered."""
        taken = [one.latency_ms for one in self.of if isinstance(one, Answer)]
        if not taken:
            return None
        return {f"p{q}": float(np.percentile(taken, q)) for q in (50, 95, 99)}


class MalformedError(Exception):
    """An answer that cannot be read; the text says what was found and what would do."""


class Listed(NamedTuple):
    """The results of one answer: what each says it is, and its length as JSON."""

    ids: tuple[str, ...]
    chars: tuple[int, ...]


def read(payload: Any, *, results_field: str | None, id_field: str) -> Listed:
    """Find the results in an answer and what each of them is.

    Args:
        payload: The decoded answer.
        results_field: Dotted path of the list; None: the answer itself, or the only list
            of objects, or else the only list, among its fields.
        id_field: Dotted path of a result's identity.

    Raises:
        MalformedError: If there is no such list, or a result does not say what it is, or
            one says it twice.
    """
    results = _results(payload, results_field)
    if len(results) > MAX_RESULTS:
        raise MalformedError(f"the answer has {len(results)} results, more than {MAX_RESULTS}")
    ids: list[str] = []
    first: dict[str, int] = {}
    for place, result in enumerate(results, start=1):
        found = _at(result, id_field)
        if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
            raise MalformedError(
                f"result {place} has no id at '{printable(id_field, limit=_SHOWN)}' "
                f"({_fields(result)}); set harness.remote.idField"
            )
        one = str(found)
        if first.setdefault(one, place) != place:
            raise MalformedError(
                f"'{printable(one, limit=_SHOWN)}' is result {first[one]} and again {place}"
            )
        ids.append(one)
    try:
        chars = tuple(len(json.dumps(result, ensure_ascii=False)) for result in results)
    except RecursionError as error:  # writing takes a level or two more than reading did
        raise MalformedError("a result is nested too deep") from error
    return Listed(tuple(ids), chars)


def _results(payload: Any, field: str | None) -> Sequence[Any]:
    if field is not None:
        found = _at(payload, field)
        if isinstance(found, list):
            return found
        raise MalformedError(
            f"the answer has no list at '{printable(field, limit=_SHOWN)}' ({_fields(payload)}); "
            "set harness.remote.resultsField"
        )
    if isinstance(payload, list):
        return payload
    lists = _lists(payload)
    of_objects = {name: one for name, one in lists.items() if one and isinstance(one[0], Mapping)}
    for found in (of_objects, lists):
        if len(found) == 1:
            return next(iter(found.values()))
    raise MalformedError(
        f"the answer holds {'several lists' if lists else 'no list'} ({_fields(payload)}); "
        "set harness.remote.resultsField"
    )


def _lists(payload: Any) -> dict[str, list[Any]]:
    if not isinstance(payload, Mapping):
        return {}
    return {name: value for name, value in payload.items() if isinstance(value, list)}


def _at(value: Any, path: str) -> Any:
    """Follow a dotted path through objects; None where it leads nowhere."""
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _fields(value: Any) -> str:
    if isinstance(value, Mapping):
        names = ", ".join(printable(str(name), limit=20) for name in list(value)[:8])
        return f"its fields: {names or 'none'}"
    return f"it is {'null' if value is None else type(value).__name__}"
