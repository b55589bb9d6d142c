"""One study in one process: begin it or go on with it, search, say what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comis_eval.config import Config
from comis_eval.errors import StudyError
from comis_eval.tuning.journal import Journal
from comis_eval.tuning.measured import Measure, Objective
from comis_eval.tuning.records import TrialRecord, best
from comis_eval.tuning.result import StudyResult
from comis_eval.tuning.space import Space
from comis_eval.tuning.task import Plan, Task

if TYPE_CHECKING:
    from comis_eval.tuning.storage import Existing

Progress = Callable[[TrialRecord, TrialRecord | None], None]
"""Told of each trial once it is finished, and of the best one so far."""


def run_study(
    measure: Measure,
    space: Space,
    base: Config,
    *,
    objectives: Sequence[Objective],
    trials: int,
    seed: int,
    sampler: str = "tpe",
    journal: Path | None = None,
    storage: str | None = None,
    study_name: str = "study",
    resume: bool = False,
    fingerprint: Mapping[str, Any] | None = None,
    required: int | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Search in this process until a study has so many trials.

    Trial 0 is the current configuration. A point that was measured before is not measured
    again. With the same arguments the trials are the same, however often the study was
    interrupted and resumed.

    Args:
        measure: Scores a configuration.
        space: What varies.
        base: The current configuration.
        objectives: What is searched for, in the order of the measure's values.
        trials: How many the study shall have, those of earlier processes included; 0, to
            resume: none is run, whatever the study has.
        seed: Of the sampler, >= 0.
        sampler: ``tpe``, ``random`` or ``nsga2``.
        journal: File that the study is written to and resumed from.
        storage: Instead of that file, ``journal:PATH`` (Optuna's own format) or the URL of a
            database. With neither, the study lives in memory only.
        study_name: Of the study.
        resume: Go on with a study that is there.
        fingerprint: What the study depends on besides: dataset, split, semantics.
        required: How many trials must be complete; None: half of them.
        progress: Told of each trial.

    Raises:
        ConfigError: If a knob does nothing.
        StudyError: If the study cannot be begun or resumed, the current configuration cannot
            be scored, or too few trials are complete. What is finished is kept.
    """
    if journal is not None and storage is not None:
        raise StudyError("a study is written to a journal or to a storage, not to both")
    if trials < 0 or (trials == 0 and not resume):
        raise StudyError(f"a study needs at least one trial, got {trials}")
    task = Task(measure, space, base, tuple(objectives))
    plan = Plan(study_name, seed, sampler, fingerprint or {})
    identity = plan.fingerprint(task)
    from comis_eval.tuning.opening import in_memory, in_storage
    from comis_eval.tuning.storage import quiet

    with ExitStack() as stack:
        stack.enter_context(quiet())
        notes: tuple[str, ...] = ()
        if storage is not None:
            existing: Existing = "resume" if resume else "refuse"
            search = stack.enter_context(
                in_storage(task, plan, storage, identity=identity, existing=existing)
            )
        else:
            book = _book(plan, identity, journal, resume)
            if book is not None:
                notes = stack.enter_context(book).notes
            search = in_memory(task, plan, book)
        leader = best(search.records.values(), task.objectives)
        for record in search.run(trials):
            leader = best((record, *([leader] if leader else [])), task.objectives)
            if progress is not None:
                progress(record, leader)
    result = StudyResult(
        task,
        search.records.values(),
        trials,
        notes=(*notes, *task.notes),
        per_query=search.per_query,
    )
    result.check_complete(required)
    return result


def _book(
    plan: Plan, identity: Mapping[str, Any], path: Path | None, resume: bool
) -> Journal | None:
    if path is None:
        if resume:
            raise StudyError("a study in memory cannot be resumed; give a journal or a storage")
        return None
    from optuna import __version__ as version

    header = {"study": plan.name, "fingerprint": identity, "optuna": version}
    return Journal(path, header, resume=resume)
