"""Small query sets written as rows of grades; U stands for an unjudged memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from comis_eval.metrics import Ideal, Inputs, Objective, Ranked, StageTrace

U = -1

DTYPES = {
    "row": np.int32,
    "trust": np.int8,
    "twin": np.int32,
    "simhash": np.uint64,
    "chars": np.int64,
}


def table(lists: Sequence[Sequence[Any]], dtype: type, pad: Any) -> np.ndarray:
    width = max((len(one) for one in lists), default=0)
    laid_out = np.full((len(lists), width), pad, dtype=dtype)
    for at, one in enumerate(lists):
        laid_out[at, : len(one)] = one
    return laid_out


def ranked(grades: Sequence[Sequence[int]], **planes: Sequence[Sequence[Any]]) -> Ranked:
    """Lists of grades with their planes, padded; padding is hostile where it may be."""
    hostile = {"row": -1, "trust": 2, "twin": 0, "simhash": 0, "chars": 10_000}
    return Ranked(
        grade=table(grades, np.int8, U),
        length=np.array([len(one) for one in grades], dtype=np.int64),
        **{
            name: table(lists, DTYPES.get(name, bool), hostile.get(name, True))
            for name, lists in planes.items()
        },
    )


def ideal(grades: Sequence[Sequence[int]]) -> Ideal:
    return Ideal(table([sorted(one, reverse=True) for one in grades], np.int8, 0))


def inputs(judged: Sequence[Sequence[int]], *, failed: Sequence[int] = (), **parts: Any) -> Inputs:
    """Inputs of a few queries: ``judged`` holds the positive grades of each."""
    marks = np.zeros(len(judged), dtype=bool)
    marks[list(failed)] = True
    for name, dtype in (
        ("context_chars", np.int64),
        ("superseded", np.int32),
        ("poison_total", np.int64),
    ):
        if name in parts:
            parts[name] = np.array(parts[name], dtype=dtype)
    return Inputs(ideal=ideal(judged), failed=marks, **parts)


def objective(**changes: Any) -> Objective:
    return Objective(k0=2, c0=100, cost=0.5, unanswerable_weight=0.1)._replace(**changes)


def trace(**planes: Any) -> StageTrace:
    """One query's trace; ``present`` maps a stage to marks, other planes default to False."""
    shape = np.array(planes["row"], dtype=np.int32)[None].shape
    return StageTrace(
        row=np.array(planes["row"], dtype=np.int32)[None],
        present={
            stage: np.array(marks, dtype=bool)[None]
            for stage, marks in planes.get("present", {}).items()
        },
        **{
            name: np.array(planes[name], dtype=bool)[None]
            if name in planes
            else np.zeros(shape, dtype=bool)
            for name in ("blocked", "relevant_allowed", "unwanted")
        },
    )
