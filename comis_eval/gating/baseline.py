"""Baselines: evaluations blessed by name, small enough to commit and to review in a diff.

One query is one line, so a review shows which queries a new baseline gives up. Values are
exact. Counts that must be 0 are left out, since they are checked on the candidate alone,
and so are reference rows. A digest over everything tells an edit by hand or a bad merge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from comis_eval.errors import EvaluationError, MetricError
from comis_eval.evaluation import Evaluation
from comis_eval.evaluation import file as evaluation_file
from comis_eval.files import replacing
from comis_eval.metrics import ALL, parse
from comis_eval.text import printable, sha256_text

BASELINES = Path("experiments/baselines")
"""Where baselines live, in the repository."""

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
FORMAT = 1
_LABELS = ("group", "category")
_LEFT_OUT = ("rows", "references", "bounds", "notes")
_EMPTY: Mapping[str, Any] = {"references": {}, "bounds": {}, "notes": []}


def write_baseline(
    evaluation: Evaluation,
    name: str,
    *,
    folder: Path = BASELINES,
    accept_faults: bool = False,
    trace: bytes | None = None,
) -> Path:
    """Bless an evaluation under a name; one of that name is replaced.

    Args:
        evaluation: What is in use from now on.
        name: Letters, digits, ``.``, ``_`` and ``-``, at most 64.
        folder: Where to; made if it is not there.
        accept_faults: Whether to bless one with leaks, failed queries or dead lanes.
        trace: The evaluation's trace, to be kept beside under the baseline's name; without
            it a gate cannot name the stages where rankings part.

    Returns:
        The file.

    Raises:
        EvaluationError: If the name is not one, or the evaluation has faults.
    """
    path = folder / f"{checked_name(name)}.json"
    found = faults(evaluation)
    if found and not accept_faults:
        raise EvaluationError(
            f"this evaluation has {'; '.join(found)}: what is blessed is what later ones are held "
            "against; mend it, or say --accept-faults"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if trace is not None:
        beside = path.with_suffix(".trace.parquet")
        with replacing(beside) as partial:
            partial.write_bytes(trace)
        evaluation = replace(evaluation, trace={**(evaluation.trace or {}), "file": beside.name})
    with replacing(path) as partial:
        partial.write_text(_text(_document(evaluation, name)), encoding="ascii")
    return path


def read_baseline(path: Path) -> Evaluation:
    """Read a baseline as an evaluation without reference rows.

    Raises:
        EvaluationError: If it is damaged, was edited by hand, or is of another format.
    """
    return _read(evaluation_file.read_json(path), path)


def load(name_or_path: str, *, folder: Path = BASELINES) -> tuple[Evaluation, Path]:
    """Find a baseline by name, or read a baseline's or an evaluation's file.

    Returns:
        The evaluation and its file.

    Raises:
        EvaluationError: If there is none, or it cannot be read.
    """
    path = find(name_or_path, folder=folder)
    given = evaluation_file.read_json(path)
    if isinstance(given, dict) and "baseline" in given:
        return _read(given, path), path
    return evaluation_file.from_json(given, path), path


def find(name_or_path: str, *, folder: Path = BASELINES) -> Path:
    """Return the file that a name or a path means.

    Raises:
        EvaluationError: If there is none; lists the names there are.
    """
    path = place_of(name_or_path, folder=folder)
    if path.is_file():
        return path
    raise EvaluationError(
        f"'{printable(name_or_path, limit=120)}' is neither a file nor a baseline of {folder}; "
        f"there are {', '.join(names(folder)) or 'none'}; make one with `comis-eval baseline set "
        "EVALUATION --as NAME`"
    )


def place_of(name_or_path: str, *, folder: Path = BASELINES) -> Path:
    """Return the file that a name or a path would mean, whether it is there or not.

    What is a file as it stands is meant as it stands.
    """
    path = Path(name_or_path)
    named = NAME.fullmatch(name_or_path) and not path.is_file()
    return folder / f"{name_or_path}.json" if named else path


def names(folder: Path = BASELINES) -> tuple[str, ...]:
    """The baselines of a folder, sorted."""
    return tuple(sorted(path.stem for path in folder.glob("*.json") if NAME.fullmatch(path.stem)))


def checked_name(name: str) -> str:
    """Return a name that can be one of a baseline.

    Raises:
        EvaluationError: If it cannot.
    """
    if not NAME.fullmatch(name) or name.startswith("."):
        raise EvaluationError(
            f"'{printable(name, limit=80)}' is no name of a baseline: letters, digits, '.', '_' "
            "and '-', at most 64, none of them a '.' in front"
        )
    return name


def faults(evaluation: Evaluation) -> list[str]:
    """What an evaluation should not have if others are to be held against it."""
    promised = [leak for leak in evaluation.leaks if leak["why"] in evaluation.enforces]
    totals = {
        name: float(sum(value for value in evaluation.values[name] if value > 0))
        for name in ("laundered", "resurrected")
        if name in evaluation.values
    }
    counted = {
        "leaks that the pipeline promises to prevent": len(promised),
        **{f"memories {name}": int(total) for name, total in totals.items()},
        "failed queries": evaluation.counts["failed"],
        "dead lanes": len(evaluation.dead_lanes),
    }
    return [f"{count} {what}" for what, count in counted.items() if count]


def _document(evaluation: Evaluation, name: str) -> dict[str, Any]:
    whole = evaluation_file.as_json(evaluation, trace=evaluation.trace)
    kept = [metric for metric in evaluation.values if _is_kept(metric)]
    head = {key: value for key, value in whole.items() if key not in _LEFT_OUT}
    head["means"] = {ALL: {m: f for m, f in whole["means"][ALL].items() if m in kept}}
    document = {
        "baseline": {"format": FORMAT, "name": name, "scored": kept},
        **head,
        "queries": dict(sorted(_lines(whole["rows"], kept))),
    }
    return {**document, "sha256": _digest(document)}


def _is_kept(metric: str) -> bool:
    try:
        return parse(metric).definition.reduce != "total"
    except MetricError:
        return True  # a metric of a later version


def _lines(rows: Mapping[str, Any], metrics: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, query_id in enumerate(rows["query_id"]):
        values = {metric: rows[metric][place] for metric in metrics}
        labels = {label: rows[label][place] for label in _LABELS}
        # What is undefined is left out: a line then tells the metrics that the query has.
        yield query_id, {**labels, **{m: v for m, v in values.items() if v is not None}}


def _text(document: Mapping[str, Any]) -> str:
    """JSON with one figure and one query a line, in ASCII: nothing in it can hide in a review."""
    parts = [f" {json.dumps(key)}: {_part(key, value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _part(key: str, value: Any) -> str:
    if key == "queries":
        return _listed(value, " ")
    if key == "means":
        return (
            "{"
            + ", ".join(f"{json.dumps(k)}: {_listed(row, ' ')}" for k, row in value.items())
            + "}"
        )
    return json.dumps(value, allow_nan=False, indent=1).replace("\n", "\n ")


def _listed(mapping: Mapping[str, Any], indent: str) -> str:
    lines = (
        f"{indent} {json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in mapping.items()
    )
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _read(given: Any, path: Path) -> Evaluation:
    try:
        told = given["baseline"]
        if told["format"] != FORMAT:
            raise EvaluationError(
                f"{path}: baseline format is {told['format']!r}; this version reads {FORMAT}"
            )
        digest, document = given["sha256"], {k: v for k, v in given.items() if k != "sha256"}
        if digest != _digest(document):
            raise EvaluationError(
                f"{path}: was edited by hand, or merged: its sha256 is another; set it again with "
                "`comis-eval baseline set`"
            )
        rows = _rows(given["queries"], told["scored"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EvaluationError(
            f"{path}: not a whole baseline ({type(error).__name__}: "
            f"{printable(str(error), limit=120)}); set it again with `comis-eval baseline set`"
        ) from error
    whole = {k: v for k, v in document.items() if k not in ("baseline", "queries")}
    return evaluation_file.from_json({**whole, **_EMPTY, "rows": rows}, path)


def _rows(queries: Mapping[str, Mapping[str, Any]], metrics: list[str]) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"query_id": list(queries)}
    for label in _LABELS:
        rows[label] = [line[label] for line in queries.values()]
    for metric in metrics:
        rows[metric] = [line.get(metric) for line in queries.values()]
    return rows


def _digest(document: Mapping[str, Any]) -> str:
    return sha256_text(json.dumps(document, sort_keys=True, separators=(",", ":")))
