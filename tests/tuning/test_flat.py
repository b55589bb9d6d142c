"""Moving one knob alone: where it makes no difference, and where it does."""

from types import SimpleNamespace

import numpy as np

from comis_eval.config import Config
from comis_eval.tuning.flat import flat_region
from comis_eval.tuning.knob import read_knob
from comis_eval.tuning.space import Space

GROUPS = np.array([f"g{n}" for n in range(40)])
NOISE = np.where(np.arange(40) % 2, 0.1, -0.1)


def per_query(config: Config) -> np.ndarray:
    """Worth nothing above maxResults 8, a constant 0.5 below; minScore only adds noise."""
    worth = 0.5 if config.rag.max_results <= 8 else 0.0
    return worth + NOISE * config.rag.min_score


def region(**over: float) -> dict[str, tuple]:
    space = Space.of([
        read_knob("rag.maxResults", {"low": 1, "high": 17}),
        read_knob("rag.minScore", {"low": 0, "high": 1}),
        read_knob("rag.entityLane.enabled"),
    ])  # fmt: skip
    base = Config()
    params = space.values_of(base)

    def replay(config: Config) -> SimpleNamespace:
        bounds = {"silence": over.get("silence", -1.0) if config.rag.min_score > 0.7 else -1.0}
        return SimpleNamespace(per_query=per_query(config), constraints=bounds)

    replay.query_weights = np.full(40, 1 / 40)
    study = SimpleNamespace(
        trial=lambda _: SimpleNamespace(params=params),
        per_query=lambda _: per_query(base),
        objectives=[SimpleNamespace(sign=1.0)],
        task=SimpleNamespace(space=space, base=base),
    )
    return flat_region(study, replay, 0, GROUPS)  # type: ignore[arg-type]


def test_a_number_stops_where_the_loss_is_more_than_its_error() -> None:
    # The grid is 1, 3, ..., 17; the trial has 5; 9 loses 0.5 of every query.
    assert region()["rag.maxResults"] == (1, 7)


def test_what_only_adds_noise_is_flat_over_its_whole_range() -> None:
    assert region()["rag.minScore"] == (0.0, 1.0)


def test_a_value_that_oversteps_a_bound_is_outside() -> None:
    # The grid is 0, 0.125, ...: 0.75 is the first above 0.7.
    assert region(silence=0.1)["rag.minScore"] == (0.0, 0.625)


def test_a_choice_lists_what_makes_no_difference() -> None:
    assert set(region()["rag.entityLane.enabled"]) == {False, True}
