"""The evaluation file: what gate, compare and report read, and later versions still will."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import trace
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.metrics import Mean
from comis_eval.text import printable

FORMAT = 1
MAX_BYTES = 1 << 30
_TEXT_COLUMNS = ("query_id", "group", "category")
_KEYS = (
    "format", "dataset", "pipeline", "enforces", "config", "config_hash", "versions", "seed",
    "counts", "lanes", "latency_ms", "metrics", "means", "references", "bounds", "leaks",
    "notes", "rows", "trace",
)  # fmt: skip


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
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(path)


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
    try:
        if path.stat().st_size > MAX_BYTES:
            raise EvaluationError(f"{path}: larger than {MAX_BYTES >> 20} MiB; not an evaluation")
        given = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise EvaluationError(
            f"{path}: not a whole evaluation file ({printable(str(error), limit=120)}); "
            "evaluate again with --out"
        ) from error
    return _checked(given, path)


def _checked(given: Any, path: Path) -> Evaluation:
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        found = given.get("format") if isinstance(given, dict) else type(given).__name__
        raise EvaluationError(f"{path}: format is {found!r}; this version reads {FORMAT}")
    lacking = [key for key in _KEYS if key not in given]
    if lacking:
        raise EvaluationError(f"{path}: lacks {', '.join(lacking)}; evaluate again with --out")
    try:
        rows = given["rows"]
        query_ids = tuple(rows["query_id"])
        values = {
            name: _values(name, column, len(query_ids), path)
            for name, column in rows.items()
            if name not in _TEXT_COLUMNS
        }
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
            groups=tuple(rows["group"]),
            categories=tuple(rows["category"]),
            values=values,
            means={name: _means(row) for name, row in given["means"].items()},
            references={name: _means(row) for name, row in given["references"].items()},
            bounds=given["bounds"],
            leaks=tuple(given["leaks"]),
            notes=tuple(given["notes"]),
            trace=given["trace"],
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EvaluationError(
            f"{path}: damaged or edited by hand ({type(error).__name__}: "
            f"{printable(str(error), limit=120)}); evaluate again with --out"
        ) from error
    if len(set(query_ids)) != len(query_ids) or not all(isinstance(q, str) for q in query_ids):
        raise EvaluationError(f"{path}: rows.query_id must be strings without repeats")
    for name, column in (("group", evaluation.groups), ("category", evaluation.categories)):
        if len(column) != len(query_ids):
            raise EvaluationError(
                f"{path}: rows.{name} has {len(column)} entries for {len(query_ids)} queries"
            )
    return evaluation


def _figures(row: Mapping[str, Mean]) -> dict[str, dict[str, Any]]:
    return {name: {"value": _or_null(mean.value), "n": mean.n} for name, mean in row.items()}


def _means(row: Mapping[str, Any]) -> dict[str, Mean]:
    return {
        name: Mean(math.nan if mean["value"] is None else float(mean["value"]), int(mean["n"]))
        for name, mean in row.items()
    }


def _column(values: np.ndarray) -> list[float | None]:
    return [_or_null(value) for value in values.tolist()]


def _values(name: str, column: Any, queries: int, path: Path) -> np.ndarray:
    if not isinstance(column, list) or len(column) != queries:
        raise EvaluationError(
            f"{path}: rows.{name} must list one value for each of {queries} queries"
        )
    for place, value in enumerate(column):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise EvaluationError(
                f"{path}: rows.{name}[{place}] must be a number or null, got "
                f"{printable(repr(value), limit=60)}"
            )
    return np.array([math.nan if value is None else value for value in column], dtype=np.float64)


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _no_constant(name: str) -> float:
    raise ValueError(f"holds {name}; undefined values are null")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
