"""A sweep as its study folder tells it: ``result.json``, and ``trials.parquet`` beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from comis_eval.errors import EvaluationError
from comis_eval.text import printable

RESULT = "result.json"
TRIALS = "trials.parquet"
FORMAT = 1
_MAX_BYTES = 1 << 30

Value = float | int | bool | str | None
"""What a knob can be set to."""


class _Part(BaseModel):
    """Strict in types, tolerant of what a later version adds or an unfinished study lacks."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, extra="ignore")


class SearchedKnob(_Part):
    """A knob of the space: a range of numbers, or choices."""

    path: str
    kind: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: list[Value] = Field(default_factory=list)


class Chosen(_Part):
    """A trial that stands out."""

    number: int
    values: dict[str, Value] = Field(default_factory=dict)
    figures: dict[str, float | None] = Field(default_factory=dict)
    rag: str | None = None


class Floor(_Part):
    """What the best of as many trials would seem to gain by luck."""

    mean: float | None = None
    percentile_95: float | None = None
    n_trials: int
    n_groups: int | None = None


class Confirmation(_Part):
    """Winner minus current on queries that the search never saw."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_t: float | None = None
    n_queries: int | None = None
    n_groups: int | None = None
    mdd: float | None = None


class Advice(_Part):
    """What to do, and why."""

    outcome: str
    reasons: list[str] = Field(default_factory=list)


class Gain(_Part):
    """A category: both figures, and the 95% interval of winner minus current."""

    current: float | None = None
    winner: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


def _two_ends(ends: list[Value]) -> list[Value]:
    if not ends:
        raise ValueError("holds no value")
    return ends


class Result(_Part):
    """``result.json``; what is None or empty was not measured."""

    format: int
    study: str
    dataset: dict[str, str] = Field(default_factory=dict)
    current: dict[str, Any] | None = None
    space: list[SearchedKnob] = Field(default_factory=list)
    objectives: list[str] = Field(default_factory=list)
    seed: int | None = None
    sampler: str | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    best: Chosen | None = None
    winner: Chosen | None = None
    pareto: list[int] | None = None
    floor: Floor | None = None
    confirmation: Confirmation | None = None
    decision: Advice | None = None
    per_category: dict[str, Gain] = Field(default_factory=dict)
    importances: dict[str, float | None] = Field(default_factory=dict)
    flat: dict[str, Annotated[list[Value], AfterValidator(_two_ends)]] = Field(default_factory=dict)
    references: dict[str, dict[str, float | None]] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trials:
    """The trials by rising number; every array has shape (t,).

    Attributes:
        numbers: From 0, the current configuration.
        usable: Complete, and with a figure for every objective.
        feasible: Usable, and within every bound.
        repeats: The same point as an earlier trial.
        figures: By metric, NaN where undefined.
        knobs: By dotted path; None where a knob was not active.
    """

    numbers: NDArray[np.int64]
    usable: NDArray[np.bool_]
    feasible: NDArray[np.bool_]
    repeats: NDArray[np.bool_]
    figures: Mapping[str, NDArray[np.float64]]
    knobs: Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True, eq=False)
class Study:
    """A sweep: its result, and its trials when they are at hand."""

    result: Result
    trials: Trials | None


def read_study(folder: Path) -> Study:
    """Read a study folder.

    Raises:
        EvaluationError: If a file is damaged, of another format, or holds what it may not;
            every fault of ``result.json`` is named.
    """
    path = folder / RESULT
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise EvaluationError(f"{path}: larger than {_MAX_BYTES >> 20} MiB; not a study")
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EvaluationError(
            f"{folder}: holds no {RESULT}, so no sweep ended here; name the folder that "
            "comis-eval sweep wrote, or finish it with --resume"
        ) from error
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"{path}: not a whole result ({printable(str(error), limit=120)}); sweep again"
        ) from error
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        found = given.get("format") if isinstance(given, dict) else type(given).__name__
        raise EvaluationError(f"{path}: format is {found!r}; this version reads {FORMAT}")
    try:
        result = Result.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(printable(str(key), limit=40) for key in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise EvaluationError(f"{path}: damaged or edited by hand: {faults}") from error
    return Study(result, _trials(folder / TRIALS, result))


def _trials(path: Path, result: Result) -> Trials | None:
    if not path.is_file():
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"larger than {_MAX_BYTES >> 20} MiB")
        table = pq.read_table(path).sort_by("number")
        return _checked(
            {name: table.column(name).to_pylist() for name in table.column_names}, result
        )
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise EvaluationError(
            f"{path}: not the trials of a study ({printable(str(error), limit=120)}); sweep again"
        ) from error


def _checked(columns: Mapping[str, list[Any]], result: Result) -> Trials:
    numbers = columns["number"]
    if not all(type(number) is int for number in numbers) or len(set(numbers)) < len(numbers):
        raise TypeError("number must hold a whole number a trial, none of them twice")
    paths = {knob.path for knob in result.space}
    known = {"number", "state", "duplicate_of", "feasible", "ms", "reason", *paths}
    figures = {
        name: np.array([_figure(value) for value in column], dtype=np.float64)
        for name, column in columns.items()
        if name not in known and not name.startswith("constraint:") and _numeric(column)
    }
    usable = np.array([state == "complete" for state in columns["state"]], dtype=bool)
    for objective in result.objectives:
        if objective not in figures:
            raise ValueError(f"has no figures of the objective {objective!r}")
        usable &= np.isfinite(figures[objective])
    feasible = columns.get("feasible", [True] * len(numbers))
    repeats = columns.get("duplicate_of", [None] * len(numbers))
    return Trials(
        numbers=np.array(numbers, dtype=np.int64),
        usable=usable,
        feasible=usable & np.array([value is not False for value in feasible], dtype=bool),
        repeats=np.array([value is not None for value in repeats], dtype=bool),
        figures=figures,
        knobs={path: tuple(columns[path]) for path in paths if path in columns},
    )


def _numeric(column: list[Any]) -> bool:
    return all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        for value in column
    )


def _figure(value: float | None) -> float:
    return float(value) if value is not None and isfinite(value) else nan
