"""The loop over trials: ask for a point, measure it, write it down, tell the sampler."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from optuna import Trial
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from comis_eval.errors import ComisEvalError, StudyError
from comis_eval.tuning.knob import Value
from comis_eval.tuning.notebooks import Notebook
from comis_eval.tuning.records import Point, TrialRecord, concluded, point
from comis_eval.tuning.storage import StoredStudy, kept
from comis_eval.tuning.task import Task

VIOLATION = "violation"
"""The one bound that Optuna knows of: by how much all bounds together are overstepped.

That sum is what its samplers look at, in every trial before each new one; named bounds would
make them, and databases, several times slower. The record has them by name.
"""

_IDLE = 0.2  # seconds between looks at what other processes still run


class Search:
    """A search in one process, beside others or alone.

    Attributes:
        records: The finished trials it knows of, by number.
        per_query: Values by query of the distinct trials measured here.
    """

    def __init__(
        self,
        task: Task,
        stored: StoredStudy,
        notebook: Notebook,
        *,
        known: Iterable[TrialRecord] = (),
        alone: bool = True,
        keep_per_query: bool = True,
    ) -> None:
        """Begin or go on.

        Args:
            task: What is searched.
            stored: The study, whose first trial waits or is there.
            notebook: Where trials are written down.
            known: The trials that the study has.
            alone: No other process is meant to work on the study.
            keep_per_query: Whether to keep the values by query.

        Raises:
            StudyError: If the current configuration could not be scored.
        """
        self.records: dict[int, TrialRecord] = {}
        self.per_query: dict[int, NDArray[np.float64]] = {}
        self._task = task
        self._stored = stored
        self._notebook = notebook
        self._alone = alone
        self._keep = keep_per_query
        self._first: dict[Point, int] = {}
        self._settled = 0  # all trials before this number are finished and known
        for record in known:
            self._know(record)

    def run(self, trials: int) -> Iterator[TrialRecord]:
        """Run trials until so many are finished, here or elsewhere; yield those run here.

        Raises:
            StudyError: If the current configuration cannot be scored.
            ComisEvalError: What measuring raises; the trial is run again on the next occasion.
        """
        if trials:
            self._stored.put_back_abandoned(self._stored.trials(), alone=self._alone)
        while True:
            found = self._stored.trials()
            self._learn(found)
            unfinished = [t for t in found[self._settled : trials] if not t.state.is_finished()]
            if len(found) < trials or any(t.state == TrialState.WAITING for t in unfinished):
                trial = self._stored.study.ask()
                if trial.number >= trials:  # others took the last ones meanwhile
                    self._stored.put_back(trial.number)
                    continue
                try:
                    record = self._conclude(trial)
                except UpdateFinishedTrialError:  # we were taken for dead; it was run elsewhere
                    continue
                yield record
            elif not unfinished:
                return
            elif not self._stored.put_back_abandoned(unfinished, alone=False):
                time.sleep(_IDLE)

    def watched(self) -> list[TrialRecord]:
        """What was finished since the last look, by whichever process."""
        before = set(self.records)
        self._learn(self._stored.trials())
        return [record for number, record in self.records.items() if number not in before]

    def _conclude(self, trial: Trial) -> TrialRecord:
        self._notebook.began(trial)
        params = self._params(trial)
        self._notebook.proposed(trial)
        record = self._record(trial.number, params)
        self._notebook.finished(trial, record)
        self._tell(trial, record)
        self._know(record)
        return record

    def _params(self, trial: Trial) -> dict[str, Value]:
        space = self._task.space
        if trial.number > 0:
            return space.suggest(trial)
        first = self._task.first
        for knob in space.knobs:
            if knob.path in first:
                knob.ask(trial)  # gives the value it has waited with, and makes it a parameter
        return space.values_of(self._task.base)

    def _record(self, number: int, params: dict[str, Value]) -> TrialRecord:
        original = self._first.get(point(params))
        if original is not None:
            known = self.records[original]
            return known._replace(number=number, params=params, duplicate_of=original, ms=0.0)
        began = time.perf_counter()
        try:
            measured = self._task.measure(self._task.config(number, params))
        except ComisEvalError as error:
            said = ", ".join(f"{path}={value}" for path, value in params.items())
            raise type(error)(f"trial {number} ({said}): {error}") from error
        ms = (time.perf_counter() - began) * 1e3
        record = concluded(number, params, measured, self._task.objectives, ms)
        if self._keep and record.state == "complete":
            self.per_query[number] = np.asarray(measured.per_query, dtype=np.float64)
        return record

    def _tell(self, trial: Trial, record: TrialRecord) -> None:
        if record.state == "failed":
            self._stored.tell(trial, None)
            return
        trial.set_constraint(VIOLATION, record.violation)
        self._stored.tell(trial, record.values)

    def _know(self, record: TrialRecord) -> None:
        if record.number == 0 and record.state == "failed":
            raise StudyError(
                f"the current configuration cannot be scored, so nothing can be compared with "
                f"it: {record.reason}"
            )
        self.records[record.number] = record
        self._first.setdefault(point(record.params), record.number)

    def _learn(self, found: Sequence[FrozenTrial]) -> None:
        """Take over what other processes finished."""
        for trial in found[self._settled :]:
            if trial.state.is_finished() and trial.number not in self.records:
                self._know(kept(trial))
        while self._settled < len(found) and found[self._settled].state.is_finished():
            self._settled += 1
