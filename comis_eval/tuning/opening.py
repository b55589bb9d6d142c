"""A search made ready: the study in memory or in a storage, with the trials that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from comis_eval.tuning.journal import Entry, Journal
from comis_eval.tuning.notebooks import InJournal, InMind, InStorage
from comis_eval.tuning.samplers import NumberedSampler
from comis_eval.tuning.search import VIOLATION, Search
from comis_eval.tuning.storage import Existing, StoredStudy, opened, prepared
from comis_eval.tuning.task import Plan, Task


def in_memory(task: Task, plan: Plan, journal: Journal | None) -> Search:
    """A study in memory, with the trials that its journal has, if it has one."""
    sampler = NumberedSampler(plan.sampler, task.space, seed=plan.seed, parallel=False)
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(
        storage=storage,
        sampler=sampler,
        study_name=plan.name,
        directions=[objective.direction for objective in task.objectives],
    )
    entries: Sequence[Entry] = journal.contents.entries if journal else ()
    if entries:
        study.add_trials(_told(entry, task) for entry in entries)
        sampler.recall(study, [entry.attributes for entry in entries])
    else:
        study.enqueue_trial(dict(task.first))
    stored = StoredStudy(study, storage)
    notebook = InJournal(journal, stored) if journal else InMind()
    return Search(task, stored, notebook, known=[entry.record for entry in entries])


def _told(entry: Entry, task: Task) -> FrozenTrial:
    """A finished trial as Optuna had it."""
    record = entry.record
    params = record.params if record.number > 0 else task.first
    complete = record.state == "complete"
    return create_trial(
        state=TrialState.COMPLETE if complete else TrialState.FAIL,
        values=list(record.values) if complete else None,
        params=dict(params),
        distributions={path: task.space.distributions[path] for path in params},
        system_attrs=dict(entry.attributes),
        constraints={VIOLATION: record.violation} if complete else None,
    )


@contextmanager
def in_storage(
    task: Task,
    plan: Plan,
    url: str,
    *,
    identity: Mapping[str, Any],
    existing: Existing,
    parallel: bool = False,
) -> Iterator[Search]:
    """A study in a storage of Optuna's.

    Args:
        task: What is searched.
        plan: How.
        url: Of the storage.
        identity: The study's fingerprint.
        existing: What to do when there is a study of that name.
        parallel: Other processes are meant to work on it too.

    Raises:
        StudyError: If the storage cannot be used, or the study is not there, must not be
            there or is another one.
    """
    with opened(url) as storage:
        stored = prepared(
            storage,
            plan.name,
            objectives=task.objectives,
            sampler=NumberedSampler(plan.sampler, task.space, seed=plan.seed, parallel=parallel),
            fingerprint=identity,
            first=task.first,
            existing=existing,
        )
        yield Search(task, stored, InStorage(), alone=not parallel, keep_per_query=not parallel)
