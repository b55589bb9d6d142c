"""A space and a measure without a dataset; also what worker processes import and build."""

import time
from math import nan
from typing import NamedTuple

import numpy as np

from comis_eval.config import Config
from comis_eval.errors import CoverageError
from comis_eval.tuning.knob import read_knob
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.space import Space
from comis_eval.tuning.task import Task

UTILITY = (Objective("utility"),)
TWO = (Objective("utility"), Objective("context_chars", "minimize"))


class Scores(NamedTuple):
    figures: dict
    values: tuple
    constraints: dict
    per_query: np.ndarray


def space_of(**ranges):
    """Knobs by path, dots spelled as double underscores."""
    return Space.of(read_knob(path.replace("__", "."), given) for path, given in ranges.items())


SPACE = space_of(
    rag__scoring__recencyAlpha={"low": 0, "high": 1},
    rag__minScore={"low": 0, "high": 1},
    rag__maxResults={"low": 1, "high": 20},
    rag__rerank__enabled=None,
    rag__rerank__maxCandidates={"low": 5, "high": 100, "log": True},
    rag__rerank__minResults={"low": 0, "high": 10},
    semantics__fusion={"choices": ["flat", "nested"]},
)
COARSE = space_of(
    rag__maxResults={"low": 1, "high": 4}, rag__minScore={"low": 0, "high": 0.3, "step": 0.1}
)


class Measure:
    """Best at recencyAlpha 0.7, maxResults 8, with 40 reranked; counts its calls."""

    def __init__(self, objectives=UTILITY, *, constraint=None, broken=None, sleep=0.0):
        self.objectives = objectives
        self.calls = []
        self._constraint = constraint
        self._broken = broken
        self._sleep = sleep

    def __call__(self, config: Config) -> Scores:
        self.calls.append(config)
        time.sleep(self._sleep)
        rag = config.rag
        utility = 1.0 - (rag.scoring.recency_alpha - 0.7) ** 2 - ((rag.max_results - 8) / 20) ** 2
        utility -= 0.3 * abs(rag.min_score - 0.25)
        if rag.rerank.enabled:
            utility += 0.2 - abs(rag.rerank.max_candidates - 40) / 200
        figures = {
            "utility": utility,
            "context_chars": 100.0 * rag.max_results,
            "recall@5": nan,
            "odd": float("inf"),
        }
        if self._broken is not None:
            figures["utility"] = self._broken(config, utility)
        constraints = {"policy_leak": -1.0, "silence": 0.0}
        if self._constraint is not None:
            constraints["policy_leak"] = self._constraint(config)
        return Scores(
            figures,
            tuple(figures[objective.name] for objective in self.objectives),
            constraints,
            np.array([utility, utility / 2, nan]),
        )


def build(*, sleep=0.0, fail=None, coarse=False):
    """What workers build from plain JSON."""
    measure = Measure(sleep=sleep)
    if fail == "expected":
        measure = _uncovered
    elif fail == "bug":
        measure = _bug
    return Task(measure, COARSE if coarse else SPACE, Config(), UTILITY)


def build_nothing():
    return "nothing"


def _uncovered(config):
    raise CoverageError("laneDepth 200 is not in the table postgresql://me:hunter2@db/x")


def _bug(config):
    return 1 / 0
