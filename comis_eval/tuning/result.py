"""What a study found, and the values by query that choosing among its trials takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.errors import StudyError
from comis_eval.tuning.measured import Measured, Objective
from comis_eval.tuning.records import Counts, TrialRecord, best, count, marked, pareto
from comis_eval.tuning.task import Task

_SAME = 1e-9  # relative; processors differ in last bits


def _same(measured: Measured, record: TrialRecord) -> bool:
    """Whether a trial scores, and oversteps its bounds, as its record says."""
    bounds = dict(measured.constraints)
    return (
        len(measured.values) == len(record.values)
        and bounds.keys() == record.constraints.keys()
        and np.allclose(measured.values, record.values, rtol=_SAME, atol=0)
        and np.allclose(
            [bounds[name] for name in record.constraints],
            list(record.constraints.values()), rtol=_SAME, atol=1e-12,
        )
    )  # fmt: skip


def _told(scored: Measured | TrialRecord) -> str:
    bounds = ", ".join(f"{name} {amount:g}" for name, amount in scored.constraints.items())
    return f"{list(scored.values)}" + (f" ({bounds})" if bounds else "")


class StudyResult:
    """What a study found.

    Attributes:
        task: What was searched.
        trials: All finished trials, by number.
        planned: How many there should be.
        notes: What the user should know.
    """

    def __init__(
        self,
        task: Task,
        trials: Iterable[TrialRecord],
        planned: int,
        *,
        notes: tuple[str, ...] = (),
        per_query: Mapping[int, NDArray[np.float64]] | None = None,
    ) -> None:
        self.task = task
        self.trials = marked(trials)
        self.planned = max(planned, len(self.trials))
        self.notes = notes
        self._by_number = {record.number: record for record in self.trials}
        self._per_query = dict(per_query or {})
        if 0 not in self._by_number:
            raise StudyError(
                "the current configuration has not been measured yet; run at least one trial"
            )

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What was searched for."""
        return self.task.objectives

    @property
    def current(self) -> TrialRecord:
        """Trial 0, the current configuration."""
        return self._by_number[0]

    @property
    def best(self) -> TrialRecord | None:
        """The best feasible trial, of several objectives by the first; None: none is feasible."""
        return best(self.trials, self.objectives)

    @property
    def pareto(self) -> tuple[TrialRecord, ...]:
        """The feasible trials that none is better than on every objective."""
        return pareto(self.trials, self.objectives)

    @property
    def counts(self) -> Counts:
        """How many trials there are of each kind."""
        return count(self.trials, self.planned)

    def trial(self, number: int) -> TrialRecord:
        """One trial.

        Raises:
            StudyError: If there is no finished trial of that number.
        """
        if number not in self._by_number:
            raise StudyError(f"the study has no finished trial {number}")
        return self._by_number[number]

    def config(self, number: int) -> Config:
        """The configuration of a trial."""
        return self.task.config(number, self.trial(number).params)

    def per_query(self, number: int) -> NDArray[np.float64]:
        """The first objective's value of each query in a trial, NaN where undefined, shape (q,).

        What another process measured is measured again, once.

        Raises:
            StudyError: If the trial failed, or scores differently now than it did.
        """
        record = self.trial(number)
        if record.state == "failed":
            raise StudyError(f"trial {number} has no values: {record.reason}")
        original = number if record.duplicate_of is None else record.duplicate_of
        if original not in self._per_query:
            measured = self.task.measure(self.config(original))
            if not _same(measured, record):
                raise StudyError(
                    f"trial {original} scored {_told(record)} and now scores "
                    f"{_told(measured)}: something changed that the study's fingerprint "
                    "does not cover; begin another study"
                )
            self._per_query[original] = np.asarray(measured.per_query, dtype=np.float64)
        return self._per_query[original]

    def matrix(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """The values by query of several trials, shape (trials, q)."""
        return np.stack([self.per_query(number) for number in numbers])

    def check_complete(self, required: int | None = None) -> None:
        """Refuse a study most of which failed.

        Args:
            required: How many trials must be complete; None: half of them.

        Raises:
            StudyError: If fewer are; says why they failed.
        """
        needed = ceil(len(self.trials) / 2) if required is None else required
        complete = len(self.trials) - self.counts.failed
        if complete < needed:
            reasons = Counter(r.reason for r in self.trials if r.state == "failed")
            said = "; ".join(
                f"{reason} ({times} times)" for reason, times in reasons.most_common(3)
            )
            raise StudyError(
                f"only {complete} of {len(self.trials)} trials could be scored, "
                f"{needed} must be: {said or 'run more trials'}"
            )
