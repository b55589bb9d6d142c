"""What one trial costs, against the sort that it cannot do without."""

from collections.abc import Callable
from time import process_time

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.evaluation.inputs import Judge
from comis_eval.tuning.replay import Replay
from tests.benchmarks import wide

QUERIES, WIDTH = 10_000, 80
SHARE = 5.0
ROUNDS = 15
BYTES = 150 * 2**20


@pytest.fixture(scope="module")
def replay() -> Replay:
    data, config = wide.dataset(QUERIES, 20_000), Config()
    return Replay(Judge(data), wide.table(data, config, width=WIDTH), config)


def test_the_table_is_small(replay: Replay) -> None:
    table = replay.table
    arrays = [table.rows, *table.signals]
    arrays += [array for lane in table.lanes.values() for array in lane]
    assert table.rows.shape[1] == pytest.approx(WIDTH, abs=6)
    assert sum(array.nbytes for array in arrays) < BYTES


def test_a_trial_with_its_metrics(benchmark, replay: Replay) -> None:
    matrix = np.random.default_rng(0).random((QUERIES, WIDTH))
    trials = iter(range(1, 1000))

    def sort() -> None:
        np.argsort(matrix, axis=1, kind="stable")

    def trial() -> float:
        # Another configuration each time, so that nothing a trial computes is at hand already.
        number = next(trials)
        scored = replay(
            replay.current.evolve(
                **{"rag.scoring.recency_alpha": number / 1000, "rag.min_score": 0.3}
            )
        )
        return scored.figures["utility"]

    for _ in range(3):
        trial()
    # They take turns and count this process's time alone, so that a busy machine weighs on both.
    share = float(np.median([seconds(trial) / seconds(sort) for _ in range(ROUNDS)]))
    utility = benchmark.pedantic(trial, rounds=3, iterations=1)
    benchmark.extra_info["times_one_argsort"] = round(share, 2)
    assert -1 < utility < 1
    assert share <= SHARE


def seconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    started = process_time()
    call()
    return process_time() - started
