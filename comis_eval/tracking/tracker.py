"""Evaluations and sweeps in MLflow: what the rest of the package calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from comis_eval.errors import TrackingError
from comis_eval.text import printable
from comis_eval.tracking import database
from comis_eval.tracking.place import Place, place_of
from comis_eval.tracking.recorder import Outcome
from comis_eval.tracking.records import Logged, Parent, Run, best, top_of
from comis_eval.tracking.store import BACKOFF_SECONDS
from comis_eval.tracking.writer import Writer

_FAULTS_SHOWN = 3


@dataclass(frozen=True)
class Tracker:
    """A place for runs; nothing is written, and MLflow not imported, before a run is told.

    Attributes:
        place: Where.
        backoff: Pauses in seconds between attempts of a call.
    """

    place: Place
    backoff: Sequence[float] = BACKOFF_SECONDS

    @classmethod
    def open(cls, uri: str | None = None, *, artifact_root: Path | None = None) -> Tracker:
        """Check where runs are to go.

        Args:
            uri: ``sqlite:///FILE``, a server's ``http(s)://`` address, or PostgreSQL's;
                None is ``sqlite:///experiments/mlflow.db``.
            artifact_root: Folder of artifacts; None is ``mlartifacts`` beside the SQLite
                file. A server has its own.

        Raises:
            ConfigError: If the address cannot be used, or names a file that is not MLflow's.
        """
        place = place_of(uri, artifact_root=artifact_root)
        if place.database is not None:
            database.check(place.database)
        return cls(place)

    def log_single(self, parent: Parent) -> str:
        """Log one evaluation and return its run's id.

        Raises:
            TrackingError: If anything of it is not in MLflow, after retries.
        """
        return self.log_sweep(parent, ()).run_id

    def log_sweep(self, parent: Parent, runs: Iterable[Run], *, which: str = "all") -> Logged:
        """Log a sweep after the fact, or what an earlier call left out: nothing twice.

        Args:
            parent: The sweep, with its ``key``.
            runs: Every trial of it.
            which: ``all``, ``top:N`` by score, or ``none``.

        Raises:
            ConfigError: If ``which`` is none of them.
            TrackingError: If anything is missing in MLflow, after retries; says how many runs
                and the command that logs them.
        """
        with self.sweep(parent, which=which) as sweep:
            for run in runs:
                sweep.add(run)
            return sweep.finish(parent)

    def sweep(self, parent: Parent, *, which: str = "all") -> SweepLog:
        """Log a sweep while it runs, by a process beside it.

        Example::

            with tracker.sweep(parent) as log:
                for trial in search:
                    log.add(run_of(trial))
                logged = log.finish(parent_with_results)

        Args:
            parent: The sweep as far as it is known.
            which: ``all``, ``top:N`` by score, or ``none``.

        Raises:
            ConfigError: If ``which`` is none of them.
        """
        return SweepLog(self, parent, top_of(which))


class SweepLog:
    """The log of one sweep; adding to it neither waits nor fails.

    Left by an error, it closes the parent run as killed; a later call with the same key goes
    on with it.
    """

    def __init__(self, tracker: Tracker, parent: Parent, top: int | None) -> None:
        """Start the writer process; see :meth:`Tracker.sweep`."""
        self._shown = tracker.place.shown
        self._parent = parent
        self._top = top
        self._held: list[Run] = []
        self._keys: set[str] = set()
        self._finished = False
        self._writer = Writer(tracker.place, parent, backoff=tracker.backoff)

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let the writer end what it was given."""
        if not self._finished:
            self._writer.finish(None)

    @property
    def outcome(self) -> Outcome:
        """What the writer last reported: how many are logged, and the faults so far."""
        return self._writer.outcome

    def add(self, run: Run) -> None:
        """Log a trial; the same key again changes nothing. Returns at once."""
        if run.key in self._keys:
            return
        self._keys.add(run.key)
        if self._top is None:
            self._writer.add(run)
        else:
            self._held.append(run)

    def finish(self, parent: Parent, *, planned: int | None = None) -> Logged:
        """Finish the parent run and wait until everything is written.

        Args:
            parent: The sweep as it ended, of the same key and experiment.
            planned: How many distinct trials the sweep was to have; None to take those told.

        Raises:
            TrackingError: If anything is missing in MLflow, after retries.
        """
        same = ("experiment", "name", "key")
        differing = [part for part in same if getattr(parent, part) != getattr(self._parent, part)]
        if differing:
            raise ValueError(f"finish was given another sweep: {', '.join(differing)} differ")
        chosen = [] if self._top is None else best(self._held, self._top)
        for run in chosen:
            self._writer.add(run)
        expected = len(self._keys) if self._top is None else len(chosen)
        self._finished = True
        outcome = self._writer.finish(parent)
        faults = list(outcome.faults)
        if planned is not None and planned != len(self._keys):
            faults.insert(0, f"{planned} trials were planned and {len(self._keys)} told")
        if faults or outcome.logged != expected:
            raise TrackingError(self._missing(expected - outcome.logged, expected, faults))
        return Logged(outcome.run_id, expected, outcome.logged, outcome.already, outcome.not_finite)

    def _missing(self, missing: int, expected: int, faults: Sequence[str]) -> str:
        lack = f"{missing} of {expected} runs are" if missing else "something is"
        why = "; ".join(printable(fault) for fault in faults[:_FAULTS_SHOWN])
        more = f" (and {len(faults) - _FAULTS_SHOWN} more)" if len(faults) > _FAULTS_SHOWN else ""
        return (
            f"{printable(self._parent.name)}: {lack} not in MLflow at {self._shown}: "
            f"{why or 'the writer did not say why'}{more}. The results are saved; "
            f"log what is missing with: {self._parent.resume}"
        )
