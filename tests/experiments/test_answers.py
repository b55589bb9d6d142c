"""Every answer re-run at reduced size: its direction holds, and exchanged arms contradict it."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from experiments.common.claims import Claim, exchanged
from experiments.common.pairs import Pair
from tests.experiments.world import REDUCED, RUNS, experiment, scene

SETS = ("starter", "core", "locomo")


def cases(*, directed: bool) -> Iterator[Any]:
    for name in RUNS:
        for claim in experiment(name).claims:
            if directed and claim.expected == "same":
                continue
            for one in claim.sets:
                marks = [pytest.mark.slow] if "locomo" in sets_for(claim, one) else []
                yield pytest.param(name, claim, one, id=f"{name}-{one}-{claim.says}", marks=marks)


def sets_for(claim: Claim, one: str) -> tuple[str, ...]:
    """The set of the claim, and those on which its arms are tuned."""
    arms = " ".join(claim.pair)
    return tuple(other for other in SETS if other == one or f" {other}" in arms)


@cache
def measured(name: str, sets: tuple[str, ...], exchange: Pair | None) -> dict[str, Any]:
    """A run at reduced size; with two arms exchanged, if so told."""
    found, scenes = experiment(name), [scene(one) for one in sets]
    arms = arms_of(name, sets)
    return found.run(scenes, REDUCED, arms if exchange is None else exchanged(arms, exchange))


@cache
def arms_of(name: str, sets: tuple[str, ...]) -> dict[str, Any]:
    return dict(experiment(name).arms([scene(one) for one in sets], REDUCED))


@pytest.mark.parametrize(("name", "claim", "one"), [*cases(directed=False)])
def test_direction_of_the_answer_holds_at_reduced_size(name: str, claim: Claim, one: str) -> None:
    results = measured(name, sets_for(claim, one), None)

    assert claim.holds(results, one, reduced=True), claim.found(results, one)


@pytest.mark.parametrize(("name", "claim", "one"), [*cases(directed=True)])
def test_exchanged_arms_contradict_the_answer(name: str, claim: Claim, one: str) -> None:
    results = measured(name, sets_for(claim, one), claim.pair)

    assert claim.found(results, one) is not None
    assert not claim.holds(results, one, reduced=True), claim.found(results, one)


@pytest.mark.parametrize("name", RUNS)
def test_every_experiment_has_an_answer_that_exchanged_arms_would_turn(name: str) -> None:
    directed = [claim for claim in experiment(name).claims if claim.expected != "same"]

    assert {one for claim in directed for one in claim.sets} - {"locomo"}


@pytest.mark.parametrize("name", RUNS)
def test_two_runs_give_the_same_results(name: str) -> None:
    sets = ("starter",)
    again = experiment(name).run([scene("starter")], REDUCED)

    assert json.dumps(again) == json.dumps(measured(name, sets, None))
