"""What was tuned on LoCoMo, on the sets that ship: the README's table against its commands."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.experiments.world import FOLDER, ROOT

HERE = FOLDER / "locomo-tuning"
README = (HERE / "README.md").read_text("utf-8")
COMMANDS = re.findall(r"^comis-eval (.*datasets/core.*|compare .*)$", README, re.M)
ROW = re.compile(
    r"^\| (starter|core) \| (utility|ndcg@10) \| (\S+) \| (\S+) \| (\S+) \[(\S+), (\S+)\] "
    r"\| (\S+) \| (\d+) \|$",
    re.M,
)


def test_the_fragment_is_that_of_the_results() -> None:
    results = json.loads((HERE / "results.json").read_text("utf-8"))
    assert (HERE / "rag.yaml").read_text("utf-8") == results["rag"]


def test_the_answer_is_shown_on_a_second_set_and_says_that_it_does_not_hold_there() -> None:
    rows = ROW.findall(README)
    assert {(name, metric) for name, metric, *_ in rows} == {
        (name, metric) for name in ("starter", "core") for metric in ("utility", "ndcg@10")
    }
    assert all(float(after) < float(before) for _, _, before, after, *_ in rows)
    assert len(COMMANDS) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["starter", "core"])
def test_the_table_is_what_its_commands_print(name, tmp_path) -> None:
    (tmp_path / "runs").mkdir()
    for folder in ("datasets", "experiments"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    printed = ""
    for command in COMMANDS:
        words = shlex.split(command.replace("core", name))
        printed = subprocess.run(
            [sys.executable, "-m", "comis_eval", *words],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "110", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    told = [row for row in ROW.findall(README) if row[0] == name]
    assert len(told) == 2
    lines = [line.split() for line in printed.partition("What these")[0].splitlines()]
    for _, metric, before, after, mean, low, high, p, n in told:
        assert [metric, before, after, mean, low, "..", high, p, n] in lines
