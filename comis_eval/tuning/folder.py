"""What a sweep leaves behind: one folder a study.

``study.jsonl`` is the journal that resuming reads, ``fold-N.jsonl`` those of the repeated
searches, ``result.json`` what was found and advised, ``trials.parquet`` every trial,
``rag.yaml`` the fragment to paste (``recall-tool.yaml`` of that pipeline), ``figures/`` the
pictures. Ids and numbers, no text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from comis_eval.config import Config, shown
from comis_eval.config_file import dump_rag, dump_recall_tool, not_exportable
from comis_eval.errors import ConfigError, StudyError
from comis_eval.files import replacing
from comis_eval.text import printable
from comis_eval.tuning.sweep import SweepResult

STUDIES = Path("experiments") / "studies"
RESULT, TRIALS = "result.json", "trials.parquet"
FRAGMENTS = {"memory-recall": "rag.yaml", "recall-tool": "recall-tool.yaml"}
"""Name of the fragment's file, by the pipeline whose settings it holds."""
PARAMS = "params"
"""Column of a trial's point as JSON: only it tells a knob that is null from one not asked for."""
FORMAT = 1

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def checked_name(name: str) -> str:
    """A study's name, which is also its folder's.

    Raises:
        ConfigError: If it is none.
    """
    if not _NAME.fullmatch(name) or name in {".", ".."}:
        raise ConfigError(
            f"--study: {printable(name, limit=80)!r} is no name; use 1 to 64 letters, digits, "
            "dots, underscores and hyphens"
        )
    return name


def free_name(root: Path, dataset: str) -> str:
    """The first of DATASET-1, DATASET-2, ... that no study has."""
    stem = dataset[:56]
    number = 1
    while (root / f"{stem}-{number}").exists():
        number += 1
    return f"{stem}-{number}"


def write(result: SweepResult, folder: Path) -> None:
    """Write everything but the journal and the figures, each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_trials(result, folder / TRIALS)
    _replace(folder / FRAGMENTS[result.pipeline], fragment(result, result.recommended))
    text = json.dumps(as_json(result), ensure_ascii=False, allow_nan=False, indent=1)
    _replace(folder / RESULT, text + "\n")


def as_json(result: SweepResult) -> dict[str, Any]:
    """What was found and advised; undefined figures are null."""
    study, choice, looked = result.study, result.choice, result.held_out
    best, winner = study.best, result.winner
    dataset = result.dataset
    told: dict[str, Any] = {
        "format": FORMAT,
        "study": result.name,
        "pipeline": result.pipeline,
        "dataset": {
            "name": dataset.name,
            "version": dataset.version,
            "fingerprint": dataset.fingerprint,
        },
        "queries": len(dataset.queries),
        "current": result.current.to_tree(),
        "space": [_knob(knob._asdict()) for knob in study.task.space.knobs],
        "objectives": [objective.name for objective in study.objectives],
        "seed": result.seed,
        "sampler": result.sampler,
        "counts": study.counts._asdict(),
        "best": None if best is None else _trial(result, best.number),
        "winner": None if winner is None else _trial(result, winner.number),
        "pareto": [record.number for record in study.pareto],
        "floor": None if choice is None or choice.floor is None else choice.floor._asdict(),
        "tuned_gain": None if choice is None else choice.tuned_gain,
        "entrants": [] if choice is None else [e._asdict() for e in choice.entrants],
        "confirmation": None,
        "decision": {"outcome": result.decision.outcome, "reasons": list(result.decision.reasons)},
        "per_category": {},
        "importances": dict(result.importances),
        "flat": {name: list(values) for name, values in result.flat.items()},
        "references": {},
        "judged": list(result.judged),
        "leaked": result.leaked,
        "unjudged": [list(pair) for pair in result.unjudged],
        "notes": list(result.notes),
    }
    if looked is not None:
        told["confirmation"] = {
            "kind": looked.kind,
            "opened_before": looked.opened_before,
            "winners": [dict(point) for point in looked.winners],
            **asdict(looked.comparison),
        }
        told["per_category"] = {name: dict(row) for name, row in looked.per_category.items()}
    told["references"] = {name: dict(row) for name, row in result.references.items()}
    finite: dict[str, Any] = _finite(told)
    return finite


def fragment(result: SweepResult, config: Config) -> str:
    """The fragment to paste, with lines that say where it comes from and what it gains."""
    looked, same = result.held_out, config is result.current
    lines = [
        f"study {result.name}, dataset {result.dataset.name} {result.dataset.fingerprint[:12]}, "
        f"seed {result.seed}",
    ]
    if same:
        lines.append("no change is justified: these are the settings in use")
    elif looked is not None:
        found = looked.comparison
        lines.append(
            f"gain in {result.study.objectives[0].name} {found.mean:+.4f} "
            f"[{found.low:+.4f}, {found.high:+.4f}] on {found.n_queries} held-out queries"
        )
    searched = [knob.path for knob in result.study.task.space.knobs]
    return _dump(result.pipeline)(config, comments=[*lines, *_left_out(config, searched)])


def _dump(pipeline: str) -> Callable[..., str]:
    return dump_recall_tool if pipeline == "recall-tool" else dump_rag


def _left_out(config: Config, searched: Sequence[str]) -> list[str]:
    """A line on the searched settings of a configuration that the product does not have."""
    what_ifs = [path for path in not_exportable(config) if path in searched]
    if not what_ifs:
        return []
    return [f"not exportable, the product has no such setting: {', '.join(what_ifs)}"]


def read_result(folder: Path) -> dict[str, Any]:
    """What :func:`write` wrote.

    Raises:
        StudyError: If there is no such study, or it did not come to its end.
    """
    path = folder / RESULT
    if not _is_folder(folder):
        where = printable(str(folder), limit=200)
        raise StudyError(f"{where}: there is no such study; `comis-eval sweep` makes one")
    if not path.is_file():
        raise StudyError(f"{folder}: the sweep did not end; go on with --resume")
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise StudyError(f"{path}: not a result of format {FORMAT}; sweep again with --resume")
    return told


def exported(study: str, trial: int | None = None) -> str:
    """The fragment that a study advises, or the settings of one of its trials.

    Args:
        study: Its name, or its folder.
        trial: A trial's number; None: what the study advises.

    Raises:
        StudyError: If there is no such study or trial.
    """
    folder = STUDIES / study if _is_folder(STUDIES / study) else Path(study)
    told = read_result(folder)
    pipeline = told.get("pipeline", "memory-recall")
    if not isinstance(pipeline, str) or pipeline not in FRAGMENTS:
        raise StudyError(f"{folder / RESULT}: there is no pipeline {shown(pipeline)}")
    if trial is None:
        path = folder / FRAGMENTS[pipeline]
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
    paths = [knob["path"] for knob in told["space"]]
    rows = _points(folder / TRIALS)
    row = next((row for row in rows if row["number"] == trial), None)
    if row is None:
        raise StudyError(f"{folder}: there is no trial {trial}; there are 0 to {len(rows) - 1}")
    config = Config.model_validate(told["current"])
    if trial > 0:
        config = config.evolve(**json.loads(row[PARAMS]))
    lines = [f"study {told['study']}, trial {trial}: not confirmed", *_left_out(config, paths)]
    return _dump(pipeline)(config, comments=lines)


def _points(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.read_table(path, columns=["number", PARAMS]).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    return rows


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False


def _unreadable(path: Path, error: Exception) -> StudyError:
    why = printable(str(error), limit=120)
    return StudyError(f"{path}: cannot be read ({why}); sweep again with --resume")


def _trial(result: SweepResult, number: int) -> dict[str, Any]:
    record = result.study.trial(number)
    config = result.study.config(number)
    return {
        "number": number,
        "values": dict(record.params),
        "figures": dict(record.figures),
        "rag": _dump(result.pipeline)(config),
    }


def _knob(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {**tree, "choices": list(tree["choices"]), "when": [list(w) for w in tree["when"]]}


def _write_trials(result: SweepResult, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    study = result.study
    columns: dict[str, Any] = {
        "number": [record.number for record in study.trials],
        "state": [record.state for record in study.trials],
        "duplicate_of": [record.duplicate_of for record in study.trials],
        "feasible": [record.feasible for record in study.trials],
        "ms": [record.ms for record in study.trials],
        "reason": [record.reason for record in study.trials],
        PARAMS: [json.dumps(dict(record.params)) for record in study.trials],
    }
    for knob in study.task.space.knobs:
        columns[knob.path] = [record.params.get(knob.path) for record in study.trials]
    figures = dict.fromkeys(name for record in study.trials for name in record.figures)
    for name in figures:
        columns[name] = [_or_none(record.figures.get(name)) for record in study.trials]
    bounds = dict.fromkeys(name for record in study.trials for name in record.constraints)
    for name in bounds:
        columns[f"constraint:{name}"] = [r.constraints.get(name) for r in study.trials]
    with replacing(path) as partial:
        pq.write_table(pa.table(columns), partial, compression="zstd")


def _replace(path: Path, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _or_none(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
