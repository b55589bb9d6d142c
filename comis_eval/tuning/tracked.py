"""A sweep as MLflow is told it: the parent run, and one child a trial. No text of memories."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from comis_eval.config import Config, config_hash
from comis_eval.datasets import Dataset
from comis_eval.evaluation import Evaluation
from comis_eval.evaluation.inputs import objective_of
from comis_eval.evaluation.measure import versions
from comis_eval.text import sha256_text
from comis_eval.tracking import Parent, Run, TrackedDataset
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.sweep import SweepPlan, SweepResult

EXPERIMENT = "comis_eval"


def run_of(record: TrialRecord, objectives: tuple[Objective, ...], *, at_ms: int) -> Run:
    """One trial as a child run.

    Args:
        record: The trial.
        objectives: What was searched for; ``top:N`` ranks by the first.
        at_ms: When it ended, ms since 1970.
    """
    first = objectives[0]
    score = first.sign * record.values[0] if record.feasible and record.values else None
    bounds = {f"constraint.{name}": amount for name, amount in record.constraints.items()}
    tags = {
        "comis_eval.feasible": str(record.feasible).lower(),
        "comis_eval.duplicate_of": "" if record.duplicate_of is None else str(record.duplicate_of),
        "comis_eval.current": str(record.number == 0).lower(),
    }
    if record.reason:
        tags["comis_eval.reason"] = record.reason
    return Run(
        key=str(record.number),
        name=f"trial-{record.number:05d}",
        params=record.params,
        metrics={**record.figures, **bounds},
        tags=tags,
        status="FINISHED" if record.state == "complete" else "FAILED",
        started_ms=at_ms - round(record.ms),
        ended_ms=at_ms,
        score=score,
        always=record.number == 0,
    )


def parent_of(
    plan: SweepPlan,
    dataset: Dataset,
    current: Config,
    *,
    started_ms: int,
    result: SweepResult | None = None,
    artifacts: Mapping[str, Path] | None = None,
) -> Parent:
    """The parent run of a sweep: as it begins, and with its result as it ends.

    Args:
        plan: What was asked for.
        dataset: What was searched on.
        current: The configuration in use.
        started_ms: When it began, ms since 1970.
        result: What came of it.
        artifacts: Files to upload, by their path in MLflow.

    The run's key depends on all that its trials depend on, not on how many there are: a
    sweep that goes on adds to its run, another one of the same name has a run of its own.
    """
    space = "default" if plan.space is None else plan.space.fingerprint
    identity = [
        plan.name, dataset.fingerprint, config_hash(current), plan.seed, plan.sampler,
        list(plan.objectives), space, plan.freeze_trust, plan.pipeline,
    ]  # fmt: skip
    metrics: dict[str, float | None] = {}
    tags = {**_tags(current), "version.optuna": version("optuna")}
    if result is not None:
        tags["comis_eval.decision"] = result.decision.outcome
        metrics |= {f"trials.{kind}": n for kind, n in result.study.counts._asdict().items()}
        if result.study.best is not None:
            metrics |= {f"best.{name}": v for name, v in result.study.best.figures.items()}
        if result.held_out is not None:
            found = result.held_out.comparison
            metrics |= {
                "held_out.gain": found.mean,
                "held_out.low": found.low,
                "held_out.high": found.high,
                "held_out.p": found.p,
            }
    return Parent(
        experiment=EXPERIMENT,
        name=plan.name,
        dataset=_dataset(dataset),
        started_ms=started_ms,
        ended_ms=None if result is None else round(time.time() * 1000),
        key=sha256_text(json.dumps(identity)),
        params={
            "pipeline": plan.pipeline,
            "sampler": plan.sampler,
            "seed": plan.seed,
            "objectives": ",".join(plan.objectives),
            "config_hash": config_hash(current),
            **_constants(current),
        },
        metrics=metrics,
        tags=tags,
        commit=git_commit(),
        artifacts=artifacts or {},
        resume=f"the same command with --study {plan.name} --resume --trials 0",
    )


def single(
    evaluation: Evaluation,
    dataset: Dataset,
    config: Config,
    *,
    started_ms: int,
    artifacts: Mapping[str, Path] | None = None,
) -> Parent:
    """One evaluation as a run of its own."""
    return Parent(
        experiment=EXPERIMENT,
        name=f"evaluate-{dataset.name}",
        dataset=_dataset(dataset),
        started_ms=started_ms,
        ended_ms=round(time.time() * 1000),
        params={
            "split": evaluation.dataset["split"],
            "seed": evaluation.seed,
            "pipeline": evaluation.pipeline,
            "config_hash": evaluation.config_hash,
            "gain": evaluation.settings["gain"],
            "relevance_level": evaluation.settings["relevance_level"],
            "k0": evaluation.settings["k0"],
            "c0": evaluation.settings["c0"],
            **_settings(config, evaluation.pipeline),
        },
        metrics={
            (name if category == "all" else f"{category}.{name}"): mean.value
            for category, row in evaluation.means.items()
            for name, mean in row.items()
        },
        tags=_tags(config),
        commit=git_commit(),
        artifacts=artifacts or {},
    )


def git_commit() -> str | None:
    """The commit of the code that runs, None where git does not keep this very file.

    Installed below somebody's project, the project's commit would say nothing of this code.
    """
    here = Path(__file__).resolve()
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return None
    return _git(here.parent, "rev-parse", "HEAD")


def _git(folder: Path, *words: str) -> str | None:
    try:
        told = subprocess.run(  # noqa: S603
            ["git", *words],  # noqa: S607  (git is where the user has it)
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() if told.returncode == 0 else None


def _tags(config: Config) -> dict[str, str]:
    return {
        "comis_eval.semantics": config.semantics.preset,
        **{f"version.{name}": number for name, number in versions().items()},
    }


def _constants(current: Config) -> dict[str, str | int]:
    """What the figures of a sweep rest on: those of the current configuration."""
    constants = objective_of(current)
    return {"gain": "linear", "relevance_level": 1, "k0": constants.k0, "c0": constants.c0}


def texts_of(dataset: Dataset) -> dict[str, Path]:
    """The dataset's own files, for whoever lets its text leave the machine."""
    folder = dataset.folder
    names = ("dataset.yaml", "memories.jsonl", "queries.jsonl", "qrels.tsv")
    return {} if folder is None else {f"dataset/{name}": folder / name for name in names}


def _dataset(dataset: Dataset) -> TrackedDataset:
    return TrackedDataset(dataset.name, dataset.fingerprint, dataset.version)


def _settings(config: Config, pipeline: str) -> dict[str, str | int | float | bool | None]:
    """The settings of a pipeline by dotted path."""
    tree = config.to_tree()
    if pipeline == "recall-tool":
        return _leaves(tree["harness"]["recallTool"], "harness.recallTool")
    return _leaves(tree["rag"], "rag")


def _leaves(tree: Mapping[str, object], above: str) -> dict[str, str | int | float | bool | None]:
    found: dict[str, str | int | float | bool | None] = {}
    for key, value in tree.items():
        path = f"{above}.{key}"
        if isinstance(value, Mapping):
            found |= _leaves(value, path)
        elif isinstance(value, str | int | float | bool) or value is None:
            found[path] = value
        else:
            found[path] = str(value)
    return found
