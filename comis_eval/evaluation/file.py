"""The evaluation file: what gate, compare and report read, and later versions still will."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation import trace
from comis_eval.evaluation.checks import check_consistent, check_parts
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.files import replacing
from comis_eval.metrics import Mean, Values
from comis_eval.text import printable

FORMAT = 1
MAX_BYTES = 1 << 30
_TEXT_COLUMNS = ("query_id", "group", "category")
_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "format": int, "dataset": dict, "pipeline": str, "enforces": list, "config": dict,
    "config_hash": str, "versions": dict, "seed": int, "counts": dict, "lanes": dict,
    "latency_ms": (dict, NoneType), "metrics": dict, "means": dict, "references": dict,
    "bounds": dict, "leaks": list, "notes": list, "rows": dict, "trace": (dict, NoneType),
}  # fmt: skip
"""Every key of the file, and what it holds; a later version adds keys and takes none away."""
_DAMAGE = (
    KeyError, TypeError, AttributeError, ValueError, OverflowError, MetricError,
)  # fmt: skip
"""What reading a value that is not what it should be can raise."""


def write_evaluation(evaluation: Evaluation, path: Path) -> None:
    """Write the file, and beside it ``NAME.trace.parquet`` when the rankings are at hand.

    Both are written whole or not at all. The trace holds ids only, no text.
    """
    held = evaluation.trace
    if evaluation.rankings is not None:
        beside = path.with_name(f"{path.stem}.trace.parquet")
        trace.write(evaluation.rankings, beside)
        held = {"file": beside.name, "sha256": _sha256(beside)}
    told = as_json(evaluation, trace=held)
    text = json.dumps(told, ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def as_json(evaluation: Evaluation, *, trace: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The evaluation as the file holds it; undefined values are null."""
    return {
        "format": FORMAT,
        "dataset": dict(evaluation.dataset),
        "pipeline": evaluation.pipeline,
        "enforces": list(evaluation.enforces),
        "config": dict(evaluation.config),
        "config_hash": evaluation.config_hash,
        "versions": dict(evaluation.versions),
        "seed": evaluation.seed,
        "counts": dict(evaluation.counts),
        "lanes": dict(evaluation.lanes),
        "latency_ms": evaluation.latency_ms,
        "metrics": dict(evaluation.settings),
        "means": {name: _figures(row) for name, row in evaluation.means.items()},
        "references": {name: _figures(row) for name, row in evaluation.references.items()},
        "bounds": dict(evaluation.bounds),
        "leaks": [dict(leak) for leak in evaluation.leaks],
        "notes": list(evaluation.notes),
        "rows": {
            "query_id": list(evaluation.query_ids),
            "group": list(evaluation.groups),
            "category": list(evaluation.categories),
            **{name: _column(values) for name, values in evaluation.values.items()},
        },
        "trace": None if trace is None else dict(trace),
    }


def read_evaluation(path: Path) -> Evaluation:
    """Read a file back; what is damaged or of another format is refused.

    Raises:
        EvaluationError: Saying what is wrong and where.
    """
    return from_json(read_json(path), path)


def read_json(path: Path) -> Any:
    """Read a file of JSON whose numbers are all finite.

    Raises:
        EvaluationError: If it cannot be read or is not whole.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise EvaluationError(f"{path}: larger than {MAX_BYTES >> 20} MiB; not an evaluation")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"{path}: not a whole evaluation file ({printable(str(error), limit=120)}); "
            "evaluate again with --out"
        ) from error


def from_json(given: Any, path: Path) -> Evaluation:
    """The evaluation that a file holds, checked; the inverse of :func:`as_json`.

    Args:
        given: What was read.
        path: Where from, for messages.

    Raises:
        EvaluationError: If it is of another format, damaged or edited by hand.
    """
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        found = given.get("format") if isinstance(given, dict) else type(given).__name__
        raise EvaluationError(f"{path}: format is {found!r}; this version reads {FORMAT}")
    lacking = [key for key in _KEYS if key not in given]
    if lacking:
        raise EvaluationError(f"{path}: lacks {', '.join(lacking)}; evaluate again with --out")
    try:
        for key, kind in _KEYS.items():
            if not isinstance(given[key], kind):
                raise TypeError(f"{key} is {type(given[key]).__name__}")
        check_parts(given)
        rows = given["rows"]
        query_ids, groups, categories = (_texts(name, rows[name]) for name in _TEXT_COLUMNS)
        evaluation = Evaluation(
            dataset=given["dataset"],
            pipeline=given["pipeline"],
            enforces=tuple(given["enforces"]),
            config=given["config"],
            config_hash=given["config_hash"],
            versions=given["versions"],
            seed=given["seed"],
            counts=given["counts"],
            lanes=given["lanes"],
            latency_ms=given["latency_ms"],
            settings=given["metrics"],
            query_ids=query_ids,
            groups=groups,
            categories=categories,
            values={
                name: _values(name, column)
                for name, column in rows.items()
                if name not in _TEXT_COLUMNS
            },
            means={name: _means(row) for name, row in given["means"].items()},
            references={name: _means(row) for name, row in given["references"].items()},
            bounds=given["bounds"],
            leaks=tuple(given["leaks"]),
            notes=tuple(given["notes"]),
            trace=given["trace"],
        )
        check_consistent(evaluation)
    except _DAMAGE as error:
        raise EvaluationError(
            f"{path}: damaged or edited by hand ({type(error).__name__}: "
            f"{printable(str(error), limit=200)}); evaluate again with --out"
        ) from error
    return evaluation


def _figures(row: Mapping[str, Mean]) -> dict[str, dict[str, Any]]:
    return {name: {"value": _or_null(mean.value), "n": mean.n} for name, mean in row.items()}


def _means(row: Mapping[str, Any]) -> dict[str, Mean]:
    return {name: Mean(_number(name, mean["value"]), mean["n"]) for name, mean in row.items()}


def _column(values: Values) -> list[float | None]:
    return [_or_null(value) for value in values.tolist()]


def _texts(name: str, column: Any) -> tuple[str, ...]:
    if not isinstance(column, list) or not all(isinstance(text, str) for text in column):
        raise TypeError(f"rows.{name} must be a list of texts")
    return tuple(column)


def _values(name: str, column: Any) -> Values:
    if not isinstance(column, list):
        raise TypeError(f"rows.{name} must be a list")
    if set(map(type, column)) <= {float, int, NoneType}:
        values = np.array([math.nan if value is None else value for value in column], np.float64)
        if not np.isinf(values).any():
            return values
    numbers = [_number(f"rows.{name}[{place}]", value) for place, value in enumerate(column)]
    return np.array(numbers, dtype=np.float64)


def _number(name: str, value: Any) -> float:
    """A finite number, NaN for null."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{name} must be a finite number or null, got {value!r}")
    return float(value)


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _no_constant(name: str) -> float:
    raise ValueError(f"holds {name}; undefined values are null")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
