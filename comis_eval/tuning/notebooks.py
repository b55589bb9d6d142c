"""Where the trials of a running search are written down."""

from __future__ import annotations

from typing import Protocol

from optuna import Trial

from comis_eval.tuning.journal import Journal
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.samplers import noted
from comis_eval.tuning.storage import StoredStudy, keep, tag


class Notebook(Protocol):
    """What a search tells about each of its trials."""

    def began(self, trial: Trial) -> None:
        """A trial has its number."""

    def proposed(self, trial: Trial) -> None:
        """A trial has its point."""

    def finished(self, trial: Trial, record: TrialRecord) -> None:
        """A trial was measured; Optuna is told next."""


class InMind:
    """Nothing is written down: the study lives in memory only."""

    def began(self, trial: Trial) -> None:
        """Do nothing."""

    def proposed(self, trial: Trial) -> None:
        """Do nothing."""

    def finished(self, trial: Trial, record: TrialRecord) -> None:
        """Do nothing."""


class InJournal(InMind):
    """Trials of a study in memory are written to our journal."""

    def __init__(self, journal: Journal, stored: StoredStudy) -> None:
        self._journal = journal
        self._stored = stored

    def proposed(self, trial: Trial) -> None:
        """Write where it is."""
        self._journal.started(trial.number, trial.params)

    def finished(self, trial: Trial, record: TrialRecord) -> None:
        """Write the record, and what the sampler noted."""
        self._journal.finished(record, noted(self._stored.attributes(trial.number)))


class InStorage(InMind):
    """Records are stored with the trials, in Optuna's storage."""

    def began(self, trial: Trial) -> None:
        """Say that this process runs it."""
        tag(trial)

    def finished(self, trial: Trial, record: TrialRecord) -> None:
        """Store the record."""
        keep(trial, record)
