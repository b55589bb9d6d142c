"""Evaluations and sweeps as MLflow runs; nothing else in the package imports MLflow.

::

    tracker = Tracker.open("sqlite:///experiments/mlflow.db")
    with tracker.sweep(parent) as log:
        for trial in trials:
            log.add(trial)
        logged = log.finish(parent)
    print(dashboard_command("sqlite:///experiments/mlflow.db"))

Read records, then tracker, writer and process (two ends of a pipe), recorder, store.
"""

from comis_eval.tracking.frame import runs_frame
from comis_eval.tracking.names import mlflow_name
from comis_eval.tracking.place import dashboard_command
from comis_eval.tracking.recorder import Outcome
from comis_eval.tracking.records import Logged, Parent, Point, Run, TrackedDataset
from comis_eval.tracking.tracker import SweepLog, Tracker

__all__ = [
    "Logged",
    "Outcome",
    "Parent",
    "Point",
    "Run",
    "SweepLog",
    "TrackedDataset",
    "Tracker",
    "dashboard_command",
    "mlflow_name",
    "runs_frame",
]
