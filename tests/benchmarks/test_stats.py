"""100,000 sign flips on 2,000 queries x 20 columns, against scipy's permutation test.

scipy is timed on 1,000 resamples and scaled to as many as ours: all of them would take most
of a minute, and its cost is one pass over the data a resample.
"""

import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from comis_eval.stats import permutation_test

QUERIES, COLUMNS, FLIPS, TIMED = 2_000, 20, 100_000, 1_000
SPEEDUP = 50
"""Least number of times that ours is faster."""
PEAK_MB = 500
"""Most memory that the whole process may reach, numpy included."""

ALONE = f"""
import resource
import numpy as np
from comis_eval.stats import max_t, permutation_test
differences = np.random.default_rng(0).normal(size=({QUERIES}, {COLUMNS}))
permutation_test(differences, range({QUERIES}), flips={FLIPS})
max_t(differences, range({QUERIES}), flips={FLIPS})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.fixture(scope="module")
def differences():
    return np.random.default_rng(0).normal(0.03, 1.0, size=(QUERIES, COLUMNS))


def scipys(differences):
    from scipy import stats

    return stats.permutation_test(
        (differences,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=TIMED,
        batch=100,
        rng=0,
    ).pvalue


def test_sign_flips(benchmark, differences):
    started = perf_counter()
    theirs = scipys(differences)
    their_time = (perf_counter() - started) * FLIPS / TIMED

    ours = benchmark.pedantic(
        permutation_test,
        (differences, range(QUERIES)),
        {"flips": FLIPS},
        rounds=3,
        warmup_rounds=1,
    )

    # scipy doubles the smaller tail, so its p is off by up to 1 / sqrt(resamples) at one sigma.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=4 / np.sqrt(TIMED))
    if benchmark.stats is None:  # the suite runs without timing
        return
    speedup = their_time / benchmark.stats.stats.min
    benchmark.extra_info["times_faster_than_scipy"] = round(speedup)
    assert speedup >= SPEEDUP


def test_memory_of_sign_flips(benchmark):
    alone = benchmark.pedantic(
        subprocess.run,
        ([sys.executable, "-c", ALONE],),
        {
            "cwd": Path(__file__).parents[2],
            "check": True,
            "capture_output": True,
            "text": True,
        },
        rounds=1,
    )

    peak = float(alone.stdout)
    benchmark.extra_info["peak_mb"] = round(peak)
    assert peak < PEAK_MB
