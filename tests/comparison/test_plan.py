"""How many queries would decide: hand-worked, and never from the effect."""

import numpy as np
import pytest

from comis_eval.comparison import plan
from comis_eval.errors import EvaluationError, MetricError
from comis_eval.stats import needed_n

GROUPS = [f"g{number}" for number in range(100)]
ALIKE = np.ones(100)


def column(spread: float, effect: float = 0.0) -> np.ndarray:
    """Half a spread up, half down: the standard deviation is spread x sqrt(100 / 99)."""
    return effect + spread * np.where(np.arange(100) % 2, 1.0, -1.0)


def test_by_hand() -> None:
    found = plan(["small", "large"], np.column_stack([column(0.1), column(0.3)]), GROUPS, ALIKE,
                 margin=0.02)  # fmt: skip
    large, small = found.needs
    assert (large.change, small.change) == ("large", "small"), "the widest spread first"
    assert large.spread == pytest.approx(0.3 * np.sqrt(100 / 99))
    assert large.groups == needed_n(large.spread, 0.02) == 1786
    assert (found.typical, found.most, found.decided) == (994, 1786, 0)
    assert (found.n_queries, found.n_groups) == (100, 100)
    assert small.detectable == pytest.approx(2.8016 * 0.1005 / np.sqrt(98.08), abs=1e-5)


def test_the_effect_plays_no_part() -> None:
    for effect in (0.0, 0.5, -0.5):
        found = plan(["one"], column(0.1, effect)[:, None], GROUPS, ALIKE, margin=0.02)
        assert found.most == plan(["one"], column(0.1)[:, None], GROUPS, ALIKE, margin=0.02).most


def test_queries_of_one_group_are_counted_as_they_come() -> None:
    twice = np.repeat(column(0.1), 2)[:, None]
    found = plan(["one"], twice, np.repeat(GROUPS, 2).tolist(), np.ones(200), margin=0.02)
    assert found.needs[0].queries == 2 * found.needs[0].groups


def test_what_moved_nothing_has_no_spread_to_plan_with() -> None:
    still = np.zeros((100, 1))
    found = plan(["still", "one"], np.hstack([still, column(0.1)[:, None]]), GROUPS, ALIKE,
                 margin=0.1)  # fmt: skip
    assert [need.change for need in found.needs] == ["one"]
    assert found.decided == 1
    with pytest.raises(EvaluationError, match="no change moved the metric"):
        plan(["still"], still, GROUPS, ALIKE, margin=0.02)
    with pytest.raises(MetricError, match="margin must be finite and > 0"):
        plan(["one"], column(0.1)[:, None], GROUPS, ALIKE, margin=0.0)
