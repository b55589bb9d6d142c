"""MLflow's runs read back as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from comis_eval.errors import TrackingError
from comis_eval.text import mask_credentials, printable
from comis_eval.tracking import database
from comis_eval.tracking.place import place_of

if TYPE_CHECKING:
    import pandas as pd

_PARENT = "mlflow.parentRunId"
_PAGE = 1000


def runs_frame(uri: str | None = None, *, experiment: str = "comis_eval") -> pd.DataFrame:
    """Every run of an experiment, the first one first.

    Args:
        uri: As for :meth:`comis_eval.tracking.Tracker.open`.
        experiment: Its name in MLflow.

    Returns:
        run_id, parent_id (None for a sweep or an evaluation), name, status, started (UTC),
        then a column ``params.NAME`` (text, as MLflow keeps it) or ``metrics.NAME`` (NaN where
        the run has none) for each name that any run has, as
        :func:`comis_eval.tracking.mlflow_name` writes it.

    Raises:
        ConfigError: If the address cannot be used.
        TrackingError: If there is no such experiment, or the store does not answer.
    """
    import pandas as pd

    place = place_of(uri)
    lacking = f"{place.shown} holds no experiment {printable(experiment, limit=60)!r}"
    if place.database is not None:
        database.check(place.database)
        if not place.database.exists():
            raise TrackingError(f"{lacking}: there is no such file; track a sweep there first")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    try:
        client = MlflowClient(tracking_uri=place.uri)
        found = client.get_experiment_by_name(experiment)
        if found is None:
            raise TrackingError(f"{lacking}; track a sweep there first")
        rows = [_row(run) for run in _runs(client, found.experiment_id)]
    except (MlflowException, OSError) as error:
        why = printable(mask_credentials(str(error)), limit=200)
        raise TrackingError(f"{place.shown} cannot be read: {why}") from error
    named = ["run_id", "parent_id", "name", "status", "started"]
    columns = dict.fromkeys([*named, *sorted({name for row in rows for name in row})])
    frame = pd.DataFrame(rows, columns=list(columns))
    return frame.assign(started=pd.to_datetime(frame["started"], unit="ms", utc=True))


def _runs(client: Any, experiment_id: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs(
            [experiment_id],
            max_results=_PAGE,
            order_by=["attributes.start_time ASC", "attributes.run_id ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _row(run: Any) -> dict[str, object]:
    return {
        "run_id": run.info.run_id,
        "parent_id": run.data.tags.get(_PARENT),
        "name": printable(run.info.run_name or ""),
        "status": run.info.status,
        "started": run.info.start_time,
        **{f"params.{name}": printable(text) for name, text in run.data.params.items()},
        **{f"metrics.{name}": value for name, value in run.data.metrics.items()},
    }
