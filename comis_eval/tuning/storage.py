"""A study in one of Optuna's storages, where several processes can share it.

A storage is ``journal:PATH``, a file of Optuna's own journal, or the URL of a database.
The study carries its fingerprint, and each trial its record and which process runs it, so
that a trial whose process died is found and run again under its own number.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.exceptions import DuplicatedStudyError, StorageInternalError, UpdateFinishedTrialError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from comis_eval.errors import StudyError
from comis_eval.text import mask_credentials, printable
from comis_eval.tuning.fingerprint import changes, phrase
from comis_eval.tuning.knob import Value
from comis_eval.tuning.measured import Objective
from comis_eval.tuning.records import TrialRecord, from_json, to_json

PATIENCE = 600.0
"""Seconds after which a trial of a process on another machine counts as abandoned."""

FINGERPRINT = "comis_eval:fingerprint"
RECORD = "comis_eval:record"
WORKER = "comis_eval:worker"

Existing = Literal["refuse", "resume", "join"]
"""What to do about a study that is there: only to resume must it be."""

_JOURNAL = "journal:"
_CREATION = 5.0  # seconds that another process may take to make the study
_UNTAGGED = 5.0  # seconds between the start of a trial and its process saying who runs it
_LOCKED = 10  # seconds after which the lock of a process that was killed is taken away
_ATTEMPTS = 5  # at opening: processes that make the tables of a new database at once collide

_log = logging.getLogger(__name__)


@contextmanager
def opened(url: str) -> Iterator[BaseStorage]:
    """Open a storage with Optuna kept :func:`quiet`, and close its connections afterwards.

    Raises:
        StudyError: If it cannot be opened, or fails meanwhile; credentials are masked.
    """
    if "@" in url and not url.startswith(_JOURNAL) and any(map(str.isspace, url)):
        # Not shown: a password goes on behind the space, where no mask would look for it.
        raise StudyError("--storage: the address holds white space; percent-encode it as %20")
    where = printable(mask_credentials(url), limit=200)
    try:
        storage = _journal(url) if url.startswith(_JOURNAL) else _database(url)
    except ImportError as error:
        hint = "; pip install 'comis_eval[postgres]'" if url.startswith("postgres") else ""
        raise StudyError(f"{where}: there is no driver for such a database{hint}") from error
    except (SQLAlchemyError, OSError, RuntimeError, ValueError) as error:
        raise StudyError(f"{where}: cannot be opened: {_said(error)}") from error
    try:
        with quiet():
            yield storage
    except (SQLAlchemyError, StorageInternalError) as error:
        raise StudyError(
            f"{where}: failed: {_said(error.__cause__ or error)}; "
            "finished trials are safe: go on with --resume"
        ) from error
    finally:
        if isinstance(storage, RDBStorage):
            storage.remove_session()
            storage.engine.dispose()


def _said(error: BaseException) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return printable(mask_credentials(lines[0]), limit=300)


def _journal(url: str) -> BaseStorage:
    path = Path(url.removeprefix(_JOURNAL))
    _make_private(path)
    lock = JournalFileSymlinkLock(str(path), grace_period=_LOCKED)
    return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


def _database(url: str) -> BaseStorage:
    for short in ("postgres://", "postgresql://"):
        if url.startswith(short):
            url = f"postgresql+psycopg://{url.removeprefix(short)}"
    file = make_url(url).database
    if url.startswith("sqlite") and file:
        _make_private(Path(file))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return RDBStorage(url)
        except SQLAlchemyError:
            if attempt == _ATTEMPTS:
                raise
            time.sleep(0.2 * attempt)
    raise AssertionError  # the last attempt returned or raised


def _make_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from telling what goes well, what is experimental, and what is known.

    A bound is already set in a trial whose process died between setting it and the end.
    """
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            warnings.filterwarnings("ignore", "The constraint value is ignored", UserWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


@dataclass(frozen=True)
class StoredStudy:
    """A study, and the storage it is in."""

    study: optuna.Study
    storage: BaseStorage

    def trials(self) -> list[FrozenTrial]:
        """All trials by number, as the storage has them now."""
        return self.study.get_trials(deepcopy=False)

    def attributes(self, number: int) -> Mapping[str, Any]:
        """What Optuna and its sampler noted about a trial."""
        attributes: Mapping[str, Any] = self.storage.get_trial_system_attrs(self._id_of(number))
        return attributes

    def _id_of(self, number: int) -> int:
        study_id = self.storage.get_study_id_from_name(self.study.study_name)
        return self.storage.get_trial_id_from_study_id_trial_number(study_id, number)

    def put_back(self, number: int) -> None:
        """Let a trial wait again, under its number and with what was proposed for it."""
        try:
            self.storage.set_trial_state_values(self._id_of(number), TrialState.WAITING)
        except UpdateFinishedTrialError:
            return  # its process lived after all

    def put_back_abandoned(self, found: Sequence[FrozenTrial], *, alone: bool) -> bool:
        """Let the trials wait again whose process is gone; say whether there were any.

        Args:
            found: All trials.
            alone: No other process works on the study, unless it says so.
        """
        running = [trial for trial in found if trial.state == TrialState.RUNNING]
        abandoned = [trial for trial in running if _gone(trial, alone)]
        for trial in abandoned:
            now = self.storage.get_trial(self._id_of(trial.number))
            if now.state == TrialState.RUNNING and now.user_attrs == trial.user_attrs:
                _log.info("trial %d was abandoned and waits again", trial.number)
                self.put_back(trial.number)  # else others were faster
        return bool(abandoned)

    def tell(self, trial: optuna.Trial, values: Sequence[float] | None) -> None:
        """Finish a trial with its values, or as failed.

        Of two processes that ran it, because one was taken for dead, the first counts.
        """
        told = list(values) if values is not None else None
        state = TrialState.COMPLETE if values is not None else TrialState.FAIL
        try:
            self.study.tell(trial, told, state=state, skip_if_finished=True)
        except ValueError:  # it waits again, though we were alive
            self.storage.set_trial_state_values(self._id_of(trial.number), TrialState.RUNNING)
            self.study.tell(trial, told, state=state, skip_if_finished=True)


def prepared(
    storage: BaseStorage,
    name: str,
    *,
    objectives: Sequence[Objective],
    sampler: BaseSampler,
    fingerprint: Mapping[str, Any],
    first: Mapping[str, Value],
    existing: Existing,
) -> StoredStudy:
    """Make a study whose first trial is the current configuration, or take the one there is.

    Args:
        storage: Where.
        name: Of the study.
        objectives: What is searched for.
        sampler: Who proposes.
        fingerprint: What the study is.
        first: Values of the first trial, all within the space.
        existing: What to do when there is a study of that name. Only to resume must there be.

    Raises:
        StudyError: If there is a study that must not be, is another one, or is not ours.
    """
    there = name in optuna.get_all_study_names(storage)
    if there and existing == "refuse":
        raise StudyError(
            f"study {printable(name)} exists; go on with --resume, or name another with --study"
        )
    if existing == "resume" and not there:
        raise StudyError(f"there is no study {printable(name)} to resume; leave out --resume")
    if not there:
        try:
            study = optuna.create_study(
                storage=storage,
                sampler=sampler,
                study_name=name,
                directions=[objective.direction for objective in objectives],
            )
        except DuplicatedStudyError:  # somebody else was first
            if existing == "refuse":
                raise StudyError(f"study {printable(name)} was just begun elsewhere") from None
        else:
            _complete(study, objectives, fingerprint, first)
            return StoredStudy(study, storage)
    study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    _check(study, objectives, fingerprint, first)
    return StoredStudy(study, storage)


def _complete(
    study: optuna.Study,
    objectives: Sequence[Objective],
    fingerprint: Mapping[str, Any],
    first: Mapping[str, Value],
) -> None:
    """The fingerprint goes last: a study that has one is whole."""
    study.set_metric_names([objective.name for objective in objectives])
    study.enqueue_trial(dict(first))
    study.set_user_attr(FINGERPRINT, json.dumps(fingerprint))


def _check(
    study: optuna.Study,
    objectives: Sequence[Objective],
    fingerprint: Mapping[str, Any],
    first: Mapping[str, Value],
) -> None:
    name = printable(study.study_name)
    given_up = time.monotonic() + _CREATION
    while (then := study.user_attrs.get(FINGERPRINT)) is None:
        trials = study.get_trials(deepcopy=False)
        if any(trial.state != TrialState.WAITING for trial in trials):
            raise StudyError(f"study {name} was not made by comis-eval; name another with --study")
        if time.monotonic() > given_up:  # who began it died on the way
            if not trials:
                _complete(study, objectives, fingerprint, first)
            else:
                study.set_user_attr(FINGERPRINT, json.dumps(fingerprint))
            return
        time.sleep(0.1)
    if differ := changes(json.loads(then), fingerprint):
        raise StudyError(
            f"study {name} is another one, so it cannot be resumed or joined: {phrase(differ)}"
        )


# --- what a trial carries -----------------------------------------------------------------


def tag(trial: optuna.Trial) -> None:
    """Say that this process runs the trial."""
    pid = os.getpid()
    worker = {"host": platform.node(), "pid": pid, "birth": _birth(pid), "at": time.time()}
    trial.set_user_attr(WORKER, worker)


def keep(trial: optuna.Trial, record: TrialRecord) -> None:
    """Store a record with its trial."""
    trial.set_user_attr(RECORD, to_json(record))


def kept(trial: FrozenTrial) -> TrialRecord:
    """The record of a finished trial.

    Raises:
        StudyError: If it has none that can be read.
    """
    try:
        return from_json(trial.number, trial.user_attrs[RECORD])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"trial {trial.number} was not run by comis-eval ({error!r}); "
            "name another study with --study"
        ) from error


def _gone(trial: FrozenTrial, alone: bool) -> bool:
    """Whether the process that ran a trial has ended, for all we know."""
    worker = trial.user_attrs.get(WORKER)
    if not isinstance(worker, Mapping):
        since = trial.datetime_start
        return alone or since is None or (datetime.now() - since).total_seconds() > _UNTAGGED
    pid, at = worker.get("pid"), worker.get("at")
    if not isinstance(pid, int) or not isinstance(at, int | float):
        return True
    if worker.get("host") == platform.node():
        ours = pid == os.getpid()  # from a former life: this one runs nothing while it looks
        if ours or not _lives(pid, worker.get("birth")):
            return True
    return time.time() - at > PATIENCE


def _lives(pid: int, birth: object) -> bool:
    if birth is not None:
        return _birth(pid) == birth
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _birth(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None: there is none, or no telling.

    Numbers of processes are used again, in a container that is started anew even at once.
    """
    try:
        said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return said.rpartition(")")[2].split()[19]
