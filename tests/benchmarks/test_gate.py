"""What ``comis-eval gate`` costs as a process, beside importing numpy and scipy.stats."""

import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from comis_eval.evaluation import DEFAULT_METRICS, write_evaluation
from tests.gating.build import NEVER, evaluation

QUERIES, CATEGORIES = 2_000, 8
TIMES = 3
"""Most of the imports' time that the whole gate may take."""

ROUNDS = 5


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two evaluations on disk; the second differs on a third of the queries."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("stored")
    named = [name for name in DEFAULT_METRICS if name not in NEVER and "unwanted" not in name]
    unanswerable = np.arange(QUERIES) % 20 == 0
    before = {name: rng.random(QUERIES) for name in named}
    moved = np.where(rng.random(QUERIES) < 1 / 3, rng.normal(-0.01, 0.2, QUERIES), 0.0)
    after = {name: values + moved for name, values in before.items()}
    paths = []
    for number, values in enumerate((before, after)):
        values["ndcg@10"] = np.where(unanswerable, np.nan, values["ndcg@10"])
        values["abstention"] = np.where(unanswerable, values["abstention"], np.nan)
        values["noise"] = np.where(unanswerable, values["noise"], np.nan)
        values["context_ndcg"] = np.where(unanswerable, np.nan, values["context_ndcg"])
        categories = [f"c{query % CATEGORIES}" for query in range(QUERIES)]
        paths.append(folder / f"{number}.json")
        write_evaluation(evaluation(values, categories=categories), paths[-1])
    return [str(path) for path in paths]


def test_gate(benchmark, stored):
    imports = min(_seconds("-c", "import numpy, scipy.stats")[0] for _ in range(ROUNDS))
    gate = ("-m", "comis_eval", "gate", *stored, "--undecided", "pass")
    told = benchmark.pedantic(_seconds, gate, rounds=ROUNDS, warmup_rounds=1)[1]
    assert "Gated" in told
    assert "exit status" in told
    if benchmark.stats is None:  # the suite runs without timing
        return
    ratio = benchmark.stats.stats.min / imports
    benchmark.extra_info["times_the_imports"] = round(ratio, 2)
    # The fastest of each: what is slower was disturbed by something else.
    assert ratio <= TIMES


def _seconds(*arguments):
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return perf_counter() - started, done.stdout
