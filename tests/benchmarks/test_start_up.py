"""What ``comis-eval --help`` costs beside an interpreter that does nothing."""

import subprocess
import sys
from time import perf_counter

TIMES = 5
"""Most of the empty interpreter's time that the help may take."""

ROUNDS = 15


def test_help_costs_at_most_five_times_an_empty_interpreter(benchmark):
    program = "from comis_eval.cli import main; main(['--help'])"
    empty = min(_seconds("pass") for _ in range(ROUNDS))
    printed = benchmark.pedantic(_run, [program], rounds=ROUNDS, warmup_rounds=2)
    assert "evaluate" in printed
    # The fastest of each: what is slower was disturbed by something else.
    assert benchmark.stats.stats.min <= TIMES * empty


def _seconds(program: str) -> float:
    started = perf_counter()
    _run(program)
    return perf_counter() - started


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout
