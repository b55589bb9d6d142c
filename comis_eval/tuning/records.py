"""What became of each trial, and which of them are the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, isnan, nan
from typing import Any, Literal, NamedTuple

import numpy as np

from comis_eval.tuning.knob import Value
from comis_eval.tuning.measured import Measured, Objective


class TrialRecord(NamedTuple):
    """A finished trial.

    Attributes:
        number: From 0, the current configuration.
        params: The point of the space, numbers rounded; knobs that were not active are absent.
        values: One figure an objective; empty when it failed.
        figures: By metric name; NaN where undefined.
        constraints: How far each bound is overstepped.
        feasible: It is complete and oversteps no bound; no other trial can win.
        duplicate_of: The earlier trial with the same point, whose figures it has.
        state: Failed trials have no usable figure for an objective or a bound.
        ms: Milliseconds that measuring took, 0 for a duplicate.
        reason: Why it failed.
    """

    number: int
    params: Mapping[str, Value]
    values: tuple[float, ...]
    figures: Mapping[str, float]
    constraints: Mapping[str, float]
    feasible: bool
    duplicate_of: int | None
    state: Literal["complete", "failed"]
    ms: float
    reason: str | None = None

    @property
    def violation(self) -> float:
        """By how much all bounds together are overstepped, 0 when feasible."""
        return sum(amount for amount in self.constraints.values() if amount > 0)


class Counts(NamedTuple):
    """How many trials there are of each kind; ``run = distinct + duplicate``."""

    planned: int
    run: int
    distinct: int
    duplicate: int
    infeasible: int
    failed: int


Point = tuple[tuple[str, Value], ...]


def point(params: Mapping[str, Value]) -> Point:
    """What two trials with the same settings have in common."""
    return tuple(params.items())


def concluded(
    number: int,
    params: Mapping[str, Value],
    measured: Measured,
    objectives: Sequence[Objective],
    ms: float,
) -> TrialRecord:
    """The record of a trial that was measured.

    A figure of an objective or a bound that is NaN, infinite or not there fails the trial:
    Optuna would drop NaN without a word and take infinity for the best value there is.
    """
    faults = _unusable(measured, objectives)
    figures = {name: float(figure) for name, figure in measured.figures.items()}
    if faults:
        return TrialRecord(
            number, params, (), figures, {}, False, None, "failed", ms, "; ".join(faults)
        )
    constraints = {name: float(amount) for name, amount in measured.constraints.items()}
    return TrialRecord(
        number,
        params,
        tuple(float(value) for value in measured.values),
        figures,
        constraints,
        all(amount <= 0 for amount in constraints.values()),
        None,
        "complete",
        ms,
    )


def _unusable(measured: Measured, objectives: Sequence[Objective]) -> list[str]:
    values = list(measured.values)
    if len(values) != len(objectives):
        return [f"{len(objectives)} objectives were asked for, {len(values)} values came back"]
    named = [(objective.name, v) for objective, v in zip(objectives, values, strict=True)]
    named += [(f"constraint {name}", amount) for name, amount in measured.constraints.items()]
    return [f"{name} is {value}" for name, value in named if not _is_finite(value)]


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float | np.number) and isfinite(value)


def marked(records: Iterable[TrialRecord]) -> tuple[TrialRecord, ...]:
    """All records by number, each later one of a point as a duplicate of the first."""
    first: dict[Point, int] = {}
    found = []
    for record in sorted(records, key=lambda record: record.number):
        original = first.setdefault(point(record.params), record.number)
        duplicate_of = None if original == record.number else original
        found.append(record._replace(duplicate_of=duplicate_of))
    return tuple(found)


def count(records: Sequence[TrialRecord], planned: int) -> Counts:
    """How many trials there are of each kind."""
    duplicates = sum(record.duplicate_of is not None for record in records)
    complete = [record for record in records if record.state == "complete"]
    return Counts(
        planned,
        len(records),
        len(records) - duplicates,
        duplicates,
        sum(not record.feasible for record in complete),
        len(records) - len(complete),
    )


def best(records: Iterable[TrialRecord], objectives: Sequence[Objective]) -> TrialRecord | None:
    """The feasible trial with the best value; None when none is feasible.

    Of equal ones, the one best on the next objective, then the earliest.
    """
    eligible = [record for record in records if record.feasible]
    return max(eligible, key=lambda r: (*_oriented(r, objectives), -r.number), default=None)


def pareto(
    records: Iterable[TrialRecord], objectives: Sequence[Objective]
) -> tuple[TrialRecord, ...]:
    """The feasible trials, without duplicates, that no other one is better than throughout.

    One is better throughout when it is as good on every objective and better on one.
    """
    eligible = [r for r in records if r.feasible and r.duplicate_of is None]
    points = np.array([_oriented(record, objectives) for record in eligible])
    return tuple(
        record
        for record, own in zip(eligible, points, strict=True)
        if not ((points >= own).all(axis=1) & (points > own).any(axis=1)).any()
    )


def _oriented(record: TrialRecord, objectives: Sequence[Objective]) -> tuple[float, ...]:
    return tuple(o.sign * value for o, value in zip(objectives, record.values, strict=True))


# --- as JSON, which has neither NaN nor infinity ------------------------------------------


def to_json(record: TrialRecord) -> dict[str, Any]:
    """A record without its number; a figure that is not finite is null or text."""
    tree = record._asdict()
    for derived in ("number", "feasible"):
        del tree[derived]
    return tree | {
        "params": dict(record.params),
        "values": list(record.values),
        "figures": {name: _as_json(figure) for name, figure in record.figures.items()},
        "constraints": dict(record.constraints),
    }


def from_json(number: int, tree: Mapping[str, Any]) -> TrialRecord:
    """Read a record.

    Raises:
        ValueError: If it is none; so may KeyError, TypeError and AttributeError say.
    """
    constraints = {str(name): float(amount) for name, amount in tree["constraints"].items()}
    state = tree["state"]
    if state not in ("complete", "failed"):
        raise ValueError(f"unknown state {state!r}")
    return TrialRecord(
        number,
        dict(tree["params"]),
        tuple(float(value) for value in tree["values"]),
        {str(name): _from_json(figure) for name, figure in tree["figures"].items()},
        constraints,
        state == "complete" and all(amount <= 0 for amount in constraints.values()),
        tree["duplicate_of"],
        state,
        float(tree["ms"]),
        tree["reason"],
    )


_NOT_FINITE = {"inf": inf, "-inf": -inf}


def _as_json(figure: float) -> float | str | None:
    if isfinite(figure):
        return figure
    return None if isnan(figure) else str(figure)


def _from_json(figure: float | str | None) -> float:
    if figure is None:
        return nan
    return _NOT_FINITE[figure] if isinstance(figure, str) else float(figure)
