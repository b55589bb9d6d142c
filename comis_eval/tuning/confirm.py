"""The one look at queries that the search never saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.stats import SelectionFloor, compare, max_t, selection_floor
from comis_eval.tuning.knob import Value
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.replay import Replay, higher_is_better
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.select import TOP, distance, nearest_of_the_best

Floats = NDArray[np.float64]


class Entrant(NamedTuple):
    """One of the trials that competed to be recommended.

    Attributes:
        number: Of the trial.
        gain: Over the current configuration on the queries it competed on.
        p: That the gain is not luck, corrected over all entrants; NaN without a test.
    """

    number: int
    gain: float
    p: float


class Choice(NamedTuple):
    """Who won, and among whom.

    Attributes:
        number: Of the winning trial.
        entrants: The trials that competed, best first on the tuning queries.
        floor: What the best of the study's trials would seem to gain by luck.
        tuned_gain: What the winner seemed to gain on the tuning queries.
    """

    number: int
    entrants: tuple[Entrant, ...]
    floor: SelectionFloor | None
    tuned_gain: float


def distinct_feasible(study: StudyResult) -> list[TrialRecord]:
    """The trials that may win, best first by the first objective; trial 0 among them."""
    objective = study.objectives[0]
    eligible = [
        record
        for record in study.trials
        if record.state == "complete" and record.duplicate_of is None
        and (record.feasible or record.number == 0)
    ]  # fmt: skip
    return sorted(eligible, key=lambda r: (-objective.sign * r.values[0], r.number))


def choose(
    study: StudyResult,
    tune: Replay,
    groups: NDArray[np.str_],
    *,
    select: Replay | None,
    select_groups: NDArray[np.str_] | None = None,
    seed: int,
) -> Choice:
    """Let the best trials compete, on other queries when there are enough, and name a winner.

    Args:
        study: What the search found.
        tune: The queries it searched on.
        groups: Their groups.
        select: Queries to compete on; None: those of the search.
        select_groups: Their groups.
        seed: Of the tests.
    """
    sign = study.objectives[0].sign
    ranked = distinct_feasible(study)
    current = study.per_query(0)
    matrix = sign * (study.matrix([record.number for record in ranked]) - current).T
    floor = selection_floor(matrix, groups, tune.query_weights, seed=seed)

    entrants = ranked[:TOP]
    if all(record.number != 0 for record in entrants):
        entrants.append(study.current)
    if select is None or select_groups is None:
        differences, place = matrix, {r.number: i for i, r in enumerate(ranked)}
        differences = differences[:, [place[record.number] for record in entrants]]
        weights, named = tune.query_weights, groups
    else:
        standing = select(study.config(0)).per_query
        columns = [select(study.config(record.number)).per_query for record in entrants]
        differences = sign * (np.stack(columns, axis=1) - standing[:, None])
        weights, named = select.query_weights, select_groups
    far = np.array([_distance(study, record.params) for record in entrants])
    won = nearest_of_the_best(differences, named, weights, far)
    p = max_t(differences, named, weights, alternative="greater", seed=seed)
    gains = weighted(differences, weights)
    number = entrants[won].number
    return Choice(
        number,
        tuple(
            Entrant(record.number, float(gain), float(chance))
            for record, gain, chance in zip(entrants, gains, p, strict=True)
        ),
        floor,
        float(sign * (study.trial(number).values[0] - study.current.values[0])),
    )


MARGIN = 0.01
"""A gain of the objective that would be worth having: what the number of queries is planned for."""


def by_category(
    winner: Floats, current: Floats, groups: NDArray[np.str_], categories: NDArray[np.str_],
    *, sign: float, seed: int, spread: float = 1.0,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """The first objective of both on the held-out queries, category by category.

    Args:
        winner: Its value of each query, shape (q,).
        current: Likewise.
        groups: Group of each query.
        categories: Category of each query.
        sign: 1.0 when more is better, else -1.0.
        seed: Of the tests.
        spread: As for :func:`widened`.
    """
    told = {}
    for name in dict.fromkeys(categories.tolist()):
        mine = categories == name
        defined = mine & ~np.isnan(winner) & ~np.isnan(current)
        if not defined.any():
            continue
        gains = sign * (winner - current)[defined]
        gains = widened(gains, np.full(len(gains), 1.0 / len(gains)), spread)
        found = compare(gains, groups[defined], seed=seed)[0]
        told[name] = {
            "current": float(current[defined].mean()),
            "winner": float(winner[defined].mean()),
            "low": sign * (found.low if sign > 0 else found.high),
            "high": sign * (found.high if sign > 0 else found.low),
            "n": int(defined.sum()),
        }
    return told


def widened(differences: Floats, weights: Floats, spread: float) -> Floats:
    """Differences of the same weighted mean, their deviations from it stretched.

    Whatever is then computed from them - interval, tests, what they could show - rests on
    an error that is larger by that factor.

    Args:
        differences: Shape (q,), NaN where undefined.
        weights: Of the mean, shape (q,).
        spread: The factor; 1.0 changes nothing.
    """
    middle = weighted(differences[:, None], weights)[0]
    stretched: Floats = middle + spread * (differences - middle)
    return stretched


def weighted(differences: Floats, weights: Floats) -> Floats:
    """Weighted mean of each column over its defined pairs, shape (t,)."""
    shares = np.where(np.isnan(differences), 0.0, weights[:, None])
    total = shares.sum(axis=0)
    means: Floats = (np.nan_to_num(differences) * shares).sum(axis=0)
    return means / np.where(total > 0, total, 1.0)


def direction(name: str) -> float:
    """1.0 when more of an objective is better, else -1.0."""
    return 1.0 if higher_is_better(name) else -1.0


def _distance(study: StudyResult, params: Mapping[str, Value]) -> float:
    space = study.task.space
    return distance(params, space.values_of(study.task.base), space.spans)
