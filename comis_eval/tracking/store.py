"""MLflow's client, with retries and with one kind of error: the file that speaks MLflow."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from comis_eval.errors import TrackingError
from comis_eval.text import mask_credentials, printable
from comis_eval.tracking import database
from comis_eval.tracking.locks import locked
from comis_eval.tracking.place import Place
from comis_eval.tracking.records import Point, TrackedDataset

BACKOFF_SECONDS = (0.5, 2.0, 8.0)
"""Pauses between attempts; after the last one the store counts as lost."""

CONTEXT = "evaluation"
LONGEST_DIGEST = 36
_PAGE = 1000
_CONNECT_SECONDS = 120.0
_FINAL = frozenset(
    (
        "CUSTOMER_UNAUTHORIZED", "ENDPOINT_NOT_FOUND", "INVALID_PARAMETER_VALUE", "INVALID_STATE",
        "NOT_IMPLEMENTED", "PERMISSION_DENIED", "RESOURCE_DOES_NOT_EXIST", "UNAUTHENTICATED",
    )
)  # fmt: skip

T = TypeVar("T")


class StoreLostError(TrackingError):
    """The store did not answer, however often it was asked."""


class Found(NamedTuple):
    """A run that is there.

    Attributes:
        run_id: MLflow's id.
        ended: Whether it was closed; otherwise parts may be missing.
        params: As text, by MLflow's names.
        metrics: By MLflow's names.
        tags: By MLflow's names.
    """

    run_id: str
    ended: bool
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


class Store:
    """One experiment of one MLflow store.

    Every call is safe to repeat and is repeated while the store stumbles.
    """

    def __init__(
        self, place: Place, experiment: str, *, backoff: Sequence[float] = BACKOFF_SECONDS
    ) -> None:
        """Connect; make the database and the experiment when they are not there.

        Raises:
            ConfigError: If the database file is not MLflow's.
            TrackingError: If the store cannot be reached or refuses the experiment.
        """
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        self._place = place
        self._backoff = tuple(backoff)
        self._stumbles = (MlflowException, SQLAlchemyError, sqlite3.Error, OSError)
        if place.database is not None and place.artifact_root is not None:
            database.check(place.database)
            self._retried(partial(database.create, place.database, place.artifact_root))
            database.tune()
        try:
            with locked(place.lock_file("connect"), wait_seconds=_CONNECT_SECONDS):
                # a PostgreSQL database gets its tables here: one process at a time
                self._client = self._retried(lambda: MlflowClient(tracking_uri=place.uri))
                self._experiment_id = self._retried(lambda: self._experiment(experiment))
        except ImportError as error:
            raise TrackingError(
                f"{place.shown}: {error}; for PostgreSQL: pip install 'comis_eval[postgres]'"
            ) from error

    def _experiment(self, name: str) -> str:
        root = self._place.artifact_root
        location = None if root is None else root.as_uri()
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name, artifact_location=location))
            except self._stumbles:
                found = self._client.get_experiment_by_name(name)
                if found is None:  # nobody else made it in between
                    raise
        if found.lifecycle_stage != "active":
            raise TrackingError(
                f"the experiment {printable(name)!r} was deleted in MLflow; restore it with "
                f"mlflow experiments restore --experiment-id {found.experiment_id}"
            )
        if location is not None and found.artifact_location != location:
            raise TrackingError(
                f"the experiment {printable(name)!r} keeps artifacts in "
                f"{printable(mask_credentials(found.artifact_location))}, not in {location}; "
                "was the database moved? Track to a new file, or to the old artifact root"
            )
        return str(found.experiment_id)

    def search(self, tag: str, value: str) -> list[Found]:
        """The runs with this tag, oldest first."""
        return self._retried(lambda: list(self._pages(f"tags.`{tag}` = '{value}'")))

    def _pages(self, filter_string: str) -> Iterator[Found]:
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id],
                filter_string,
                max_results=_PAGE,
                order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
                page_token=token,
            )
            for run in page:
                yield Found(
                    run.info.run_id,
                    run.info.status not in ("RUNNING", "SCHEDULED"),
                    run.data.params,
                    run.data.metrics,
                    run.data.tags,
                )
            token = page.token
            if not token:
                return

    def write(
        self,
        run_id: str | None,
        *,
        find: Callable[[], str | None],
        name: str,
        started_ms: int,
        params: Mapping[str, str],
        metrics: Mapping[str, float],
        tags: Mapping[str, str],
        at_ms: int,
        ended: str | None,
        artifacts: Mapping[str, Any],
    ) -> str:
        """Write a run, or what it lacks, in as few calls as MLflow has for it.

        Args:
            run_id: A run begun before; None to create one.
            find: Looks for the run when creating it failed: the answer may have been lost,
                not the run.
            name: What the list of runs shows.
            started_ms: Start, in milliseconds since 1970.
            params: As text, by MLflow's names.
            metrics: Finite, by MLflow's names.
            tags: By MLflow's names.
            at_ms: The metrics' time: the same in every call, which lets MLflow drop repeats.
            ended: Status to close the run with; None leaves it open.
            artifacts: JSON values to keep as files, by file name.

        Returns:
            The run's id.
        """
        from mlflow.entities import Metric, Param, RunTag

        known = run_id
        tried = created = False

        def attempt() -> str:
            nonlocal known, tried, created
            if known is None and tried:
                known = find()
            if known is None:
                tried = True
                made = self._client.create_run(
                    self._experiment_id, start_time=started_ms, tags=dict(tags), run_name=name
                )
                known, created = made.info.run_id, True
            self._client.log_batch(
                known,
                metrics=[Metric(key, value, at_ms, 0) for key, value in metrics.items()],
                params=[Param(key, value) for key, value in params.items()],
                tags=[] if created else [RunTag(key, value) for key, value in tags.items()],
            )
            for file, content in artifacts.items():
                self._client.log_dict(known, content, file)
            if ended is not None:
                self._client.set_terminated(known, ended, at_ms)
            return str(known)

        return self._retried(attempt)

    def settle(self) -> None:
        """Leave an SQLite file that can be copied by itself."""
        if self._place.database is not None:
            database.settle(self._place.database)

    def add_dataset(self, run_id: str, dataset: TrackedDataset) -> None:
        """Say what the run measured on; MLflow's digest holds the start of the fingerprint."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        given = Dataset(
            name=dataset.name,
            digest=dataset.fingerprint[:LONGEST_DIGEST],
            source_type="comis_eval",
            source=json.dumps(
                {
                    "fingerprint": dataset.fingerprint,
                    "version": dataset.version,
                    "source_digest": dataset.source_digest,
                }
            ),
        )
        put = [DatasetInput(given, [InputTag("mlflow.data.context", CONTEXT)])]
        self._retried(lambda: self._client.log_inputs(run_id, put))

    def add_curves(self, run_id: str, curves: Mapping[str, Sequence[Point]]) -> None:
        """Log metrics over steps; names are MLflow's, values finite."""
        from mlflow.entities import Metric

        points = [
            Metric(name, point.value, point.at_ms, point.step)
            for name, curve in curves.items()
            for point in curve
        ]
        for start in range(0, len(points), _PAGE):
            batch = points[start : start + _PAGE]
            self._retried(partial(self._client.log_batch, run_id, batch))

    def add_artifact(self, run_id: str, name: str, file: Path) -> None:
        """Upload a file under a path of our choice.

        Raises:
            TrackingError: If the file cannot be read or the path leaves the run's folder.
        """
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise TrackingError(f"artifact {printable(name)!r}: not a path below the run's folder")
        if not file.is_file():
            raise TrackingError(f"artifact {printable(name)!r}: there is no file {file}")
        folder = None if len(path.parts) == 1 else str(path.parent)
        with tempfile.TemporaryDirectory(prefix="comis_eval-") as aside:
            named = file
            if file.name != path.name:  # MLflow names an artifact after its file
                named = Path(aside) / path.name
                named.symlink_to(file.absolute())
            self._retried(lambda: self._client.log_artifact(run_id, str(named), folder))

    def _retried(self, attempt: Callable[[], T]) -> T:
        for number, pause in enumerate((*self._backoff, None), start=1):
            try:
                return attempt()
            except self._stumbles as error:
                if getattr(error, "error_code", None) in _FINAL:
                    raise TrackingError(_said(error)) from None
                if pause is None:
                    said = f"no success in {number} attempts: {_said(error)}"
                    raise StoreLostError(said) from None
                time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def _said(error: BaseException) -> str:
    # the text may repeat the address, and a driver's whole statement
    return printable(mask_credentials(str(error)), limit=300)
