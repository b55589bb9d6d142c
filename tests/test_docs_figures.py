"""Figures of the documentation, printed again by the commands that stand beside them."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks

pytestmark = pytest.mark.slow

TUTORIAL = (ROOT / "docs/tutorial.md").read_text("utf-8")
EVALUATE = "comis-eval evaluate datasets/starter"
SWEEP = "comis-eval sweep datasets/starter --trials 200 --seed 0"
COMPARE = "comis-eval compare runs/main.json runs/rerank.json"
PRESETS = "comis-eval compare runs/core.json runs/core-production.json"


class World:
    """A folder with the starter set, in which each command is run once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: dict[str, str] = {}
        (folder / "datasets").symlink_to(ROOT / "datasets")
        (folder / "runs").mkdir()

    def run(self, command: str) -> str:
        """What a command prints; its exit status is the reader's to judge."""
        if command not in self.printed:
            program, *words = shlex.split(command)
            assert program == "comis-eval"
            done = subprocess.run(
                [sys.executable, "-m", "comis_eval", *words],
                cwd=self.folder,
                env={**os.environ, "COLUMNS": "110", "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode != 2, done.stderr
            self.printed[command] = done.stdout
        return self.printed[command]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


def lines(text: str) -> list[str]:
    """Lines without blanks and rules, spaces made one; every new setting changes the hash."""
    text = re.sub(r"config [0-9a-f]{12}", "config HASH", text)
    squeezed = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in squeezed if line.strip("─")]


def missing(told: str, printed: str) -> list[str]:
    """The lines of a shortened output that were not printed, or not in that order."""
    left, faults = lines(printed), []
    for line in lines(told):
        if line in left:
            left = left[left.index(line) + 1 :]
        elif line != "...":
            faults.append(line)
    return faults


def test_lines_that_are_not_printed_are_noticed():
    assert missing("a  b\n...\nd", "x\na b\nc\n───\nd\n") == []
    assert missing("d\na b", "a b\nd") == ["a b"]
    assert missing("a c", "a b") == ["a c"]


def test_the_tutorial_prints_what_it_says(world):
    told = 0
    printed = ""
    for language, block in re.findall(r"^```(sh|text)\n(.*?)^```$", TUTORIAL, re.M | re.S):
        if language == "sh":
            printed = "".join(world.run(command) for command in block.splitlines())
        else:
            told += 1
            assert missing(block, printed) == []
    assert told == 11


def test_the_readme_prints_what_it_says(world):
    text = (ROOT / "README.md").read_text("utf-8")
    [block] = [block for block in blocks(text, "") if block.startswith("starter 1.1")]
    assert missing(block, world.run(EVALUATE)) == []


CORE = "comis-eval evaluate datasets/core"
BOOSTS_OFF = "--set rag.scoring.recencyAlpha=0 --set rag.scoring.temporalAlpha=0 " + (
    "--set rag.scoring.proofAlpha=0 --set rag.scoring.trustAlpha=0"
)
PIPELINE = (ROOT / "docs/pipeline.md").read_text("utf-8")


def figure(world: World, command: str, metric: str = "utility") -> str:
    figures = json.loads(world.run(f"{command} --json"))["means"]["all"]
    return f"{figures[metric]['value']:.3f}"


def test_the_presets_on_both_sets(world):
    rows = re.findall(r"^\| (?:starter|core), \w+ \| (.*) \| (.*) \| `(.*)` \|$", PIPELINE, re.M)
    assert len(rows) == 4
    for utility, ndcg, command in rows:
        assert (figure(world, command), figure(world, command, "ndcg@10")) == (utility, ndcg)


def test_what_the_presets_lose_and_show(world):
    documented, production = (
        f"{CORE} --metric ndcg@5",
        f"{CORE} --semantics production --metric ndcg@5",
    )
    order = [figure(world, command, "ndcg@5") for command in (documented, production)]
    shown = [float(figure(world, command, "context_chars")) for command in (production, documented)]
    assert "ndcg@5 is {} documented and {} in production".format(*order) in PIPELINE
    assert "{:.0f} characters instead of {:.0f}".format(*shown) in PIPELINE


def test_the_switches_without_boosts(world):
    rows = re.findall(r"^ +\| (?:nothing else|`(--set .+)`) \| (.*) \|$", PIPELINE, re.M)
    assert len(rows) == 4
    for change, utility in rows:
        assert figure(world, f"{EVALUATE} {BOOSTS_OFF} {change}".strip()) == utility
    core = (figure(world, CORE), figure(world, f"{CORE} {BOOSTS_OFF}"))
    assert "utility {}, and {} by the same command".format(*core) in PIPELINE


def effects(world: World, dataset: str) -> dict[str, str]:
    told = json.loads(world.run(f"comis-eval ablate {dataset} --json"))
    return {
        effect["name"].removeprefix("semantics."): f"{effect['mean']:+.3f}"
        for effect in told["effects"]
    }


def test_the_effects_of_the_switches(world):
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([+-]\d\.\d{3}) \| ([+-]\d\.\d{3}) \|$", PIPELINE, re.M)
    core, starter = effects(world, "datasets/core"), effects(world, "datasets/starter")
    assert len(rows) == 17
    assert [(name, core[name], starter[name]) for name, _, _ in rows] == rows


FIGURES = (
    ("pipeline", "+0.0006 [-0.0257, +0.0267]", PRESETS, "+0.0006 -0.0257 .. +0.0267"),
    ("pipeline", "-0.0562 [-0.0812, -0.0317]", PRESETS, "-0.0562 -0.0812 .. -0.0317"),
    ("limits", "0.577 against 0.594", CORE, "vector 538 0.577"),
    ("metrics", "0 of 94 is at most 0.031", EVALUATE, "policy_leak 0 queries 94 0.031"),
    ("metrics", "judged@5 1.000 and judged@10 0.894", EVALUATE, "0.545 1.000 0.894"),
    ("metrics", "prints 0.0689 as detectable", COMPARE, "utility 0.377 0.0689 78"),
    ("limits", "ndcg@10 0.648 against 0.596", EVALUATE, "ndcg@10 0.648 against 0.596"),
    ("limits", "prints an `abstention` of 0.000", EVALUATE, "figure 0.000"),
    ("limits", "prints 0.074 as the smallest", SWEEP, "queries show: 0.074"),
    ("honest-selection", "+0.0879 utility", SWEEP, "queries of the search: +0.0879"),
    ("honest-selection", "the best of 102 trials", SWEEP, "the best of 102 trials"),
    ("honest-selection", "+0.0379 on average, +0.0795 one", SWEEP, "+0.0379 on average, +0.0795"),
    (
        "honest-selection",
        "+0.0485 [+0.0082, +0.0969], p 0.0662",
        SWEEP,
        "+0.0485 [+0.0082, +0.0969]",
    ),
    ("honest-selection", "| 0.074 |", SWEEP, "queries show: 0.074"),
    ("honest-selection", "not enough queries to tell", SWEEP, "Not enough queries to tell"),
)


@pytest.mark.parametrize(("page", "told", "command", "expected"), FIGURES)
def test_figures_within_sentences(world, page, told, command, expected):
    assert told in (ROOT / f"docs/{page}.md").read_text("utf-8")
    world.run(f"{EVALUATE} --out runs/main.json")
    world.run(f"{EVALUATE} --set rag.rerank.enabled=true --out runs/rerank.json")
    world.run(f"{CORE} --out runs/core.json")
    world.run(f"{CORE} --semantics production --out runs/core-production.json")
    assert expected in "\n".join(lines(world.run(command)))
