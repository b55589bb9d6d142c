"""How far each knob may move before it can be told from where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import CoverageError
from comis_eval.stats import standard_error
from comis_eval.tuning.confirm import weighted
from comis_eval.tuning.knob import Knob, Value
from comis_eval.tuning.replay import Replay
from comis_eval.tuning.result import StudyResult

POINTS = 9
"""How many values of a number are tried, its ends among them."""


def flat_region(
    study: StudyResult, replay: Replay, number: int, groups: NDArray[np.str_]
) -> dict[str, tuple[Any, ...]]:
    """Move each knob of a trial alone over its range and see where it makes no difference.

    A value makes none when it oversteps no bound and its loss on the first objective is at
    most one standard error, by group, of that very difference. Ranges are taken from
    replays, not from where the sampler happened to look.

    Args:
        study: Whose trial and space it is.
        replay: The queries of the search.
        number: The trial.
        groups: Group of each query.

    Returns:
        By knob: (lowest, highest) of the numbers around the trial's value, or the values of
        a choice. Knobs that the trial does not have are left out.
    """
    params = study.trial(number).params
    standing, sign = study.per_query(number), study.objectives[0].sign

    def same(path: str, value: Value) -> bool:
        if value == params[path]:
            return True
        config = study.task.space.apply(study.task.base, {**params, path: value})
        try:
            scored = replay(config)
        except CoverageError:
            return False
        lost = (sign * (standing - scored.per_query))[:, None]
        error = standard_error(lost, groups, replay.query_weights)[0]
        loss = weighted(lost, replay.query_weights)[0]
        within = not loss > (0.0 if np.isnan(error) else error)
        return within and all(amount <= 0 for amount in scored.constraints.values())

    return {
        knob.path: _around(knob, params, same) if not knob.choices else _choices(knob, same)
        for knob in study.task.space.knobs
        if knob.path in params
    }


def _choices(knob: Knob, same: Any) -> tuple[Any, ...]:
    return tuple(choice for choice in knob.choices if same(knob.path, choice))


def _around(knob: Knob, params: Mapping[str, Value], same: Any) -> tuple[Any, ...]:
    """The values next to the trial's, downwards and upwards, until one makes a difference."""
    here = params[knob.path]
    spaced = np.geomspace if knob.log else np.linspace
    grid = {knob.rounded(float(value)) for value in spaced(knob.low, knob.high, POINTS)}
    below = sorted((v for v in grid if v < here), reverse=True)  # type: ignore[operator]
    above = sorted(v for v in grid if v > here)  # type: ignore[operator]
    low = [here, *takewhile(lambda v: same(knob.path, v), below)][-1]
    high = [here, *takewhile(lambda v: same(knob.path, v), above)][-1]
    return (low, high)
