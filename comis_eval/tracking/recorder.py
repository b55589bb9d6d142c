"""One evaluation or sweep written to MLflow, or what an earlier attempt left to write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import isfinite
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

from comis_eval.errors import ComisEvalError, TrackingError
from comis_eval.tracking.locks import locked
from comis_eval.tracking.names import mlflow_name
from comis_eval.tracking.place import Place
from comis_eval.tracking.prepared import LONG_VALUES, Prepared, prepared
from comis_eval.tracking.records import Parent, Run
from comis_eval.tracking.store import BACKOFF_SECONDS, Found, Store, StoreLostError

NAMES = "names.json"
"""The artifact that says what MLflow calls the names it does not take."""

KEY = "comis_eval.key"
TRIAL = "comis_eval.trial"
_PARENT = "mlflow.parentRunId"
_COMMIT = "mlflow.source.git.commit"
_WAIT_SECONDS = 600.0
_MOST_FAULTS = 50


class Outcome(NamedTuple):
    """What has become of one evaluation or sweep.

    Attributes:
        run_id: Of the parent run; "" when it could not be written.
        planned: Child runs handed over.
        logged: Child runs that are in MLflow.
        already: How many of those an earlier call had logged.
        not_finite: Metric values left out.
        faults: What went wrong, in the order it did, without credentials; each once, and the
            first fifty.
    """

    run_id: str
    planned: int
    logged: int
    already: int
    not_finite: int
    faults: list[str]


class Recorder:
    """Writes one parent run and its children; never raises for what the store does.

    Use it as a context manager; :meth:`close` finishes the parent run. Whatever is already
    there is left as it is. A run that was begun and never ended - its writer was killed - is
    completed. Two recorders of the same sweep on one machine wait for each other.
    """

    def __init__(
        self, place: Place, parent: Parent, *, backoff: Sequence[float] = BACKOFF_SECONDS
    ) -> None:
        """Say what is recorded where.

        Args:
            place: Where.
            parent: The parent run as far as it is known; :meth:`close` may add to it.
            backoff: Pauses in seconds between attempts of a call.
        """
        self._place = place
        self._parent = parent
        self._backoff = backoff
        self._key = parent.key or uuid4().hex
        self._held = ExitStack()
        self._store: Store | None = None
        self._run_id = ""
        self._was_ended = False
        self._kept_params: dict[str, str] = {}
        self._kept_metrics: dict[str, float] = {}
        self._done: set[str] = set()
        self._half: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._told: set[str] = set()
        self._already = self._not_finite = 0
        self._faults: dict[str, None] = {}

    @property
    def outcome(self) -> Outcome:
        """What has become of it so far."""
        return Outcome(
            self._run_id,
            len(self._told),
            len(self._told & self._done),
            self._already,
            self._not_finite,
            list(self._faults),
        )

    def __enter__(self) -> Self:
        """Open the store and the parent run."""
        try:
            if self._parent.key is not None:
                lock = self._place.lock_file(self._parent.key)
                self._held.enter_context(locked(lock, wait_seconds=_WAIT_SECONDS))
            self._store = Store(self._place, self._parent.experiment, backoff=self._backoff)
            self._open(self._store)
        except (ComisEvalError, OSError) as error:
            self._lose(error)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let the next recorder of this sweep in."""
        if self._store is not None:
            self._store.settle()
        self._held.close()

    def _open(self, store: Store) -> None:
        found = self._found_parent(store) if self._parent.key is not None else None
        if found is not None:
            self._was_ended = found.ended
            self._kept_params = dict(found.params)
            self._kept_metrics = dict(found.metrics)
            for child in store.search(_PARENT, found.run_id):
                key = child.tags.get(TRIAL, "")
                if child.ended:
                    self._done.add(key)
                else:
                    self._half[key] = child.run_id
        self._run_id = self._write_parent(
            store, None if found is None else found.run_id, replace(self._parent, metrics={})
        )
        store.add_dataset(self._run_id, self._parent.dataset)

    def _found_parent(self, store: Store) -> Found | None:
        there = store.search(KEY, self._key)
        return there[0] if there else None

    def add(self, run: Run) -> None:
        """Write a child run unless it is there; the same key again changes nothing."""
        if run.key in self._told:
            return
        self._told.add(run.key)
        tags = {**run.tags, _PARENT: self._run_id, TRIAL: run.key, "comis_eval.kind": "trial"}
        told = self._prepared(prepared(run.params, run.metrics, tags))
        if run.key in self._done:
            self._already += 1
            return
        if self._store is None:
            return
        try:
            self._write_child(self._store, run, told)
        except StoreLostError as error:
            self._lose(error)
        except TrackingError as error:
            self._fault(f"trial {run.key}: {error}")
        else:
            self._done.add(run.key)

    def _write_child(self, store: Store, run: Run, told: Prepared) -> None:
        def find() -> str | None:
            mine = (r for r in store.search(_PARENT, self._run_id) if r.tags.get(TRIAL) == run.key)
            return next((child.run_id for child in mine), None)

        self._half[run.key] = store.write(
            self._half.get(run.key),
            find=find,
            name=run.name,
            started_ms=run.started_ms,
            params=told.params,
            metrics=told.metrics,
            tags=told.tags,
            at_ms=run.ended_ms,
            ended=run.status,
            artifacts={LONG_VALUES: told.long} if told.long else {},
        )

    def close(self, parent: Parent | None) -> Outcome:
        """Finish the parent run: metrics, curves, files, status.

        Args:
            parent: The parent run as it ended; None when nobody will say: it is then marked
                as killed, and the next call with its key goes on with it. One that had ended
                and got nothing new stays as it was: the next call may have been faster.
        """
        idle = self._was_ended and self.outcome.logged == self._already
        if self._store is not None and not (parent is None and idle):
            try:
                self._close(self._store, parent)
            except TrackingError as error:
                self._fault(str(error))
        return self.outcome

    def _close(self, store: Store, parent: Parent | None) -> None:
        final = replace(self._parent, status="KILLED") if parent is None else parent
        curves = {
            mlflow_name(name): [point for point in points if isfinite(point.value)]
            for name, points in final.curves.items()
        }
        store.add_curves(self._run_id, curves)
        for name, file in final.artifacts.items():
            try:
                store.add_artifact(self._run_id, name, file)
            except StoreLostError:
                raise
            except TrackingError as error:
                self._fault(str(error))
        self._write_parent(store, self._run_id, final, ended=final.status)

    def _write_parent(
        self, store: Store, run_id: str | None, parent: Parent, *, ended: str | None = None
    ) -> str:
        kind = "evaluation" if parent.key is None else "sweep"
        tags = {
            **parent.tags,
            KEY: self._key,
            "comis_eval.kind": kind,
            "comis_eval.dataset": parent.dataset.name,
            "comis_eval.dataset.fingerprint": parent.dataset.fingerprint,
            "comis_eval.dataset.version": parent.dataset.version,
        }
        if parent.commit is not None:
            tags[_COMMIT] = parent.commit
        if ended is not None and kind == "sweep":
            tags["comis_eval.planned"] = str(self.outcome.planned)
            tags["comis_eval.logged"] = str(self.outcome.logged)
        told = self._prepared(prepared(parent.params, parent.metrics, tags))
        changed = {
            name: text
            for name, text in told.params.items()
            if self._kept_params.setdefault(name, text) != text
        }
        new_metrics = {
            name: value
            for name, value in told.metrics.items()
            if self._kept_metrics.get(name) != value
        }
        artifacts = {LONG_VALUES: told.long} if told.long else {}
        if ended is not None and self._names:
            artifacts[NAMES] = self._names
        written = store.write(
            run_id,
            find=lambda: getattr(self._found_parent(store), "run_id", None),
            name=parent.name,
            started_ms=parent.started_ms,
            params={name: text for name, text in told.params.items() if name not in changed},
            metrics=new_metrics,
            tags={
                **told.tags,
                **{mlflow_name(f"comis_eval.resumed.{n}"): text for n, text in changed.items()},
            },
            at_ms=parent.ended_ms or time.time_ns() // 1_000_000,
            ended=ended,
            artifacts=artifacts,
        )
        self._kept_metrics.update(new_metrics)
        return written

    def _prepared(self, told: Prepared) -> Prepared:
        self._names.update(told.names)
        self._not_finite += told.not_finite
        return told

    def _lose(self, error: Exception) -> None:
        self._store = None
        self._fault(str(error))

    def _fault(self, text: str) -> None:
        if len(self._faults) < _MOST_FAULTS:
            self._faults.setdefault(text)
