"""A study as Optuna itself has it: for its dashboard, and for what its evaluators tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comis_eval.files import replacing
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.result import StudyResult

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage


def write_journal(study: StudyResult, path: Path, name: str) -> None:
    """Write a journal file that ``optuna-dashboard PATH`` opens, whole or not at all.

    Optuna's own journal syncs the disk a dozen times a trial. Here its records are collected
    first and written once.
    """
    from optuna.storages import JournalStorage
    from optuna.storages.journal import BaseJournalBackend

    class Collected(BaseJournalBackend):
        """Keeps the records that Optuna would append."""

        def __init__(self) -> None:
            self.records: list[dict[str, Any]] = []

        def read_logs(self, log_number_from: int) -> list[dict[str, Any]]:
            return self.records[log_number_from:]

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            self.records.extend(logs)

    backend = Collected()
    copied(study, study.trials, storage=JournalStorage(backend), name=name)
    lines = (json.dumps(record, separators=(",", ":")) for record in backend.records)
    with replacing(path) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def copied(
    study: StudyResult,
    records: Iterable[TrialRecord],
    *,
    knobs: Sequence[str] | None = None,
    storage: BaseStorage | None = None,
    name: str | None = None,
) -> Study:
    """The complete trials as a study of Optuna's.

    Args:
        study: Whose objectives and space they are.
        records: Which trials. Values outside of the space's ranges, which only the current
            configuration can have, are left out of a trial's parameters.
        knobs: Which parameters; None: all.
        storage: Where to; None: memory.
        name: Of the copy.
    """
    import optuna

    from comis_eval.tuning.storage import quiet

    distributions = study.task.space.distributions
    wanted = set(distributions if knobs is None else knobs)
    outside = study.task.space.outside(study.current.params)
    with quiet():
        copy = optuna.create_study(
            directions=[objective.direction for objective in study.objectives],
            storage=storage,
            study_name=name,
        )
        made = []
        for record in records:
            if record.state != "complete":
                continue
            params = {
                path: value
                for path, value in record.params.items()
                if path in wanted and not (record.number == 0 and path in outside)
            }
            made.append(
                optuna.trial.create_trial(
                    params=params,
                    distributions={path: distributions[path] for path in params},
                    values=list(record.values),
                    user_attrs={"trial": record.number, "feasible": record.feasible},
                )
            )
        copy.add_trials(made)
    return copy
