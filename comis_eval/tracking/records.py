"""What is tracked: plain records of ids and numbers, and the same records as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from math import inf, isnan
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from comis_eval.errors import ConfigError

Scalar = str | int | float | bool | None
Status = Literal["FINISHED", "FAILED", "KILLED"]


class Point(NamedTuple):
    """One point of a curve of the parent run.

    Attributes:
        step: Where on the x axis, for example the number of the trial.
        value: The metric there.
        at_ms: When, in milliseconds since 1970.
    """

    step: int
    value: float
    at_ms: int


@dataclass(frozen=True)
class TrackedDataset:
    """The dataset of a run, as an MLflow dataset input.

    Attributes:
        name: Its name.
        fingerprint: SHA-256 of its canonical content, in hex.
        version: Its version.
        source_digest: Digest of the source it was imported from, or "".
    """

    name: str
    fingerprint: str
    version: str
    source_digest: str = ""


@dataclass(frozen=True)
class Run:
    """One trial: a child run.

    Attributes:
        key: Which trial of the sweep this is, the same each time it is told; not empty.
        name: What the list of runs shows.
        params: Knobs by dotted name.
        metrics: By our names (``recall@5``); NaN and None are undefined.
        tags: By name.
        status: How the trial ended.
        started_ms: Start, in milliseconds since 1970.
        ended_ms: End, likewise.
        score: What ``top:N`` ranks by, higher is better; None ranks last.
        always: Logged whatever ``top:N`` leaves out (the current configuration, the front).
    """

    key: str
    name: str
    params: Mapping[str, Scalar]
    metrics: Mapping[str, float | None]
    tags: Mapping[str, str]
    status: Status
    started_ms: int
    ended_ms: int
    score: float | None = None
    always: bool = False

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("a run needs a key that tells it from the others of its sweep")


_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")


@dataclass(frozen=True)
class Parent:
    """One evaluation, or one sweep with its trials as child runs.

    Attributes:
        experiment: The MLflow experiment.
        name: What the list of runs shows.
        dataset: What was measured on.
        started_ms: Start, in milliseconds since 1970.
        ended_ms: End, likewise; None while it runs.
        key: Says which sweep this is, so that a second call adds what is missing instead of a
            second run: the study's fingerprint, of letters, digits and ``._:-``. None for a
            run of its own.
        params: By dotted name. MLflow never changes a param: what a later call says
            differently becomes the tag ``comis_eval.resumed.<name>``.
        metrics: As a run's.
        tags: By name: semantics, versions.
        commit: The git commit of the code, or None.
        artifacts: Files to upload, by their path in MLflow, for example ``figures/gain.png``.
        curves: Metrics over steps, by name.
        status: How it ended.
        resume: The command that logs what is missing; errors say it.
    """

    experiment: str
    name: str
    dataset: TrackedDataset
    started_ms: int
    ended_ms: int | None = None
    key: str | None = None
    params: Mapping[str, Scalar] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    artifacts: Mapping[str, Path] = field(default_factory=dict)
    curves: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    status: Status = "FINISHED"
    resume: str = "the same command"

    def __post_init__(self) -> None:
        if self.key is not None and not _KEY.fullmatch(self.key):
            raise ValueError(
                f"the key of a sweep is made of letters, digits and ._:-, got {self.key!r}"
            )


class Logged(NamedTuple):
    """What is in MLflow now.

    Attributes:
        run_id: Of the evaluation, or of the sweep's parent run.
        planned: Child runs that were to be there.
        logged: Child runs that are there; always equal to ``planned``.
        already: How many of them an earlier call had logged.
        not_finite: Metric values left out because they are undefined or infinite; each run
            lists its own in the tag ``comis_eval.not_logged``.
    """

    run_id: str
    planned: int
    logged: int
    already: int
    not_finite: int


_TOP = re.compile(r"top:([1-9][0-9]{0,8})")


def top_of(which: str) -> int | None:
    """How many of the best runs are logged: None for ``all``, 0 for ``none``.

    Raises:
        ConfigError: If it is none of ``all``, ``top:N`` and ``none``.
    """
    if which in ("all", "none"):
        return None if which == "all" else 0
    found = _TOP.fullmatch(which)
    if found is None:
        raise ConfigError(
            f"which trials to log must be all, top:N with N >= 1, or none; got {which!r}"
        )
    return int(found[1])


def best(runs: Iterable[Run], top: int) -> list[Run]:
    """The runs with the highest scores, and those logged always, in the order given.

    Args:
        runs: The whole sweep.
        top: How many of the best, >= 0; of equal scores the earlier counts. With 0 nothing
            is logged, ``always`` or not.
    """
    if top == 0:
        return []
    listed = list(runs)
    ranked = sorted(range(len(listed)), key=lambda index: _low_first(listed[index].score))
    chosen = set(ranked[:top])
    return [run for index, run in enumerate(listed) if run.always or index in chosen]


def _low_first(score: float | None) -> float:
    return inf if score is None or isnan(score) else -score


def as_json(record: Run | Parent) -> dict[str, Any]:
    """The record as plain values; :func:`run_of` and :func:`parent_of` read it back."""
    plain = _plain(record)
    if not isinstance(plain, dict):
        raise TypeError(f"{type(record).__name__} is not a record")
    return plain


def run_of(plain: Mapping[str, Any]) -> Run:
    """Read a run back."""
    return Run(**plain)


def parent_of(plain: Mapping[str, Any]) -> Parent:
    """Read a parent back."""
    return Parent(
        **{
            **plain,
            "dataset": TrackedDataset(**plain["dataset"]),
            "artifacts": {name: Path(path) for name, path in plain["artifacts"].items()},
            "curves": {
                name: [Point(*point) for point in points]
                for name, points in plain["curves"].items()
            },
        }
    )


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"only numbers, strings and paths are tracked, got {type(value).__name__}")
