"""The experiments as they stand in their folders, and the sets that they are re-run on."""

from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from experiments.common.experiment import Experiment, Options
from experiments.common.scene import LOCOMO, Scene

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments"
RUNS = tuple(
    sorted(
        path.parent.name
        for path in FOLDER.glob("*/run.py")
        if "EXPERIMENT = " in path.read_text("utf-8")
    )
)
"""Every folder whose run.py declares an experiment."""

REDUCED = Options(seed=0, limit=140, resamples=200, trials=60, rate=0.06)


LIMITS = {"locomo": 800}
"""Of sets that need more than others: of LoCoMo several conversations."""


@cache
def experiment(name: str) -> Experiment:
    found: Experiment = import_module(f"experiments.{name}.run").EXPERIMENT
    return found


def where(name: str) -> Path:
    """Where a set is; LoCoMo is licensed apart and only ever lies beside the project."""
    if name != "locomo":
        return ROOT / "datasets" / name
    places = [parent / "shared" / "data" / "locomo" / LOCOMO for parent in ROOT.parents]
    return next((place for place in places if place.exists()), places[0])


@cache
def scene(name: str) -> Scene:
    """A set at reduced size, opened once for all tests; skips when it is not there."""
    path = where(name)
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return Scene.opened(path, limit=LIMITS.get(name, REDUCED.limit), seed=REDUCED.seed)
