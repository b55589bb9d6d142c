"""A study on disk: one line of JSON an event, only ever appended to.

The first line says what the study is; then each trial has a line when it starts, with its
point, and one when it is finished, with what became of it. That is all it takes to build
the study again. Every line ends in a checksum of itself. A line is written
as soon as it happens and survives the death of the process; it is forced to the disk in
batches, so a power cut may cost the last few.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self

from comis_eval.errors import StudyError
from comis_eval.text import printable
from comis_eval.tuning.fingerprint import changes, phrase
from comis_eval.tuning.knob import Value
from comis_eval.tuning.records import TrialRecord, from_json, to_json

FORMAT = 1
"""Version of the lines."""

SYNC_TRIALS = 50
"""After how many trials the file is forced to the disk."""

SYNC_SECONDS = 2.0
"""And after how long, when trials are slow."""

_SEAL = b',"crc":"'

_log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A finished trial, with what it takes to tell a sampler of it again.

    Attributes:
        record: What became of it.
        attributes: What the sampler noted about it.
    """

    record: TrialRecord
    attributes: Mapping[str, Any]


class Contents(NamedTuple):
    """What a journal says.

    Attributes:
        header: ``study``, ``fingerprint`` and ``optuna``; empty in a file that has none yet.
        entries: The finished trials, by number.
        running: Number of the trial that was started and not finished, or None.
        length: Bytes up to the end of the last whole line.
        torn: Bytes after it: a line whose writing was interrupted.
    """

    header: Mapping[str, Any]
    entries: tuple[Entry, ...]
    running: int | None
    length: int
    torn: int


def read_journal(path: Path) -> Contents:
    """Read a journal, whoever may be writing to it.

    Raises:
        StudyError: If it cannot be read, or a whole line of it is damaged; names the line.
    """
    where = printable(str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{where}: cannot be read: {error.strerror}") from error
    length = data.rfind(b"\n") + 1
    header: dict[str, Any] = {}
    entries: list[Entry] = []
    running: int | None = None
    for number, line in enumerate(data[:length].split(b"\n")[:-1], start=1):
        body, _, seal = line.rpartition(_SEAL)
        if seal != _seal_of(body):
            _damaged(where, number, "its checksum does not match what it says")
        try:
            event = json.loads(body + b"}")
            match event.pop("event"):
                case "study" if number == 1:
                    if (version := event.pop("format")) != FORMAT:
                        raise StudyError(
                            f"{where}: is of format {version}, this version reads {FORMAT}; "
                            "use the version that wrote it"
                        )
                    header = {
                        "study": str(event["study"]),
                        "fingerprint": dict(event["fingerprint"]),
                        "optuna": str(event["optuna"]),
                    }
                case "started" if header and event["trial"] == len(entries):
                    running = len(entries)
                case "finished" if running is not None and event["trial"] == running:
                    entries.append(Entry(from_json(running, event), event["attributes"]))
                    running = None
                case kind:
                    _damaged(where, number, f"{kind!r} cannot stand here")
        except (
            KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
        ) as error:  # fmt: skip
            raise StudyError(f"{where}:{number}: not an event of a study ({error!r})") from error
    return Contents(header, tuple(entries), running, length, len(data) - length)


def _damaged(where: str, number: int, how: str) -> NoReturn:
    raise StudyError(
        f"{where}:{number}: the line is damaged: {how}; restore the file, or begin another study"
    )


class Journal:
    """A journal open for writing; no other process can write to it meanwhile.

    Attributes:
        contents: What it said when it was opened.
        notes: What the user should know about it.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], *, resume: bool) -> None:
        """Open a journal.

        Args:
            path: Of the file; made, readable by its owner only, unless resumed.
            header: ``study``, ``fingerprint`` and ``optuna``.
            resume: Go on with the trials that are there.

        Raises:
            StudyError: If there is a journal and it is not resumed, none and it is, if it is
                of another study or damaged, or if somebody else is writing to it.
        """
        self._path = path
        self._where = printable(str(path))
        self._unsynced = 0
        self._synced_at = time.monotonic()
        self.notes: tuple[str, ...] = ()
        if resume and not path.exists():
            raise StudyError(f"{self._where}: there is no study to resume; leave out --resume")
        self._file = self._opened()
        try:
            self.contents = read_journal(path)
            self._take(header, resume)
        except BaseException:
            os.close(self._file)
            raise

    def _opened(self) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise StudyError(f"{self._where}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise StudyError(
                f"{self._where}: another process is running this study; wait for it, "
                "or share the study through --storage"
            ) from error
        return file

    def _take(self, header: Mapping[str, Any], resume: bool) -> None:
        then = self.contents.header
        if then and not resume:
            raise StudyError(
                f"{self._where}: the study exists, with {len(self.contents.entries)} trials; "
                "go on with --resume, or name another with --study"
            )
        if then and (differ := changes(then["fingerprint"], header["fingerprint"])):
            raise StudyError(
                f"{self._where}: is another study, so it cannot be resumed: {phrase(differ)}"
            )
        if self.contents.torn:
            os.ftruncate(self._file, self.contents.length)
            self._note(f"an interrupted line of {self.contents.torn} bytes was cut off its end")
        if not then:
            self._append({"event": "study", "format": FORMAT, **header})
            self.sync()
            _sync_folder(self._path.parent)
        elif then["optuna"] != header["optuna"]:
            self._note(
                f"was begun with Optuna {then['optuna']}, goes on with {header['optuna']}: "
                "the same seed may propose other values from here on"
            )

    def _note(self, text: str) -> None:
        self.notes = (*self.notes, f"{self._where}: {text}")
        _log.warning("%s: %s", self._where, text)

    def started(self, number: int, params: Mapping[str, Value]) -> None:
        """Say that a trial begins, and where."""
        self._append({"event": "started", "trial": number, "params": dict(params)})

    def finished(self, record: TrialRecord, attributes: Mapping[str, Any]) -> None:
        """Say what became of the trial that began last."""
        tree = to_json(record)
        event = {"event": "finished", "trial": record.number, **tree}
        self._append(event | {"attributes": dict(attributes)})
        self._unsynced += 1
        overdue = time.monotonic() - self._synced_at >= SYNC_SECONDS
        if self._unsynced >= SYNC_TRIALS or overdue:
            self.sync()

    def sync(self) -> None:
        """Force what was written to the disk."""
        os.fsync(self._file)
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Force all to the disk and let others write."""
        try:
            self.sync()
        finally:
            os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _append(self, event: Mapping[str, Any]) -> None:
        line = _sealed(event)
        while line:  # a full disk or a signal may take only a part
            line = line[os.write(self._file, line) :]


def _sealed(event: Mapping[str, Any]) -> bytes:
    body = json.dumps(event, separators=(",", ":"), allow_nan=False).encode()[:-1]
    return b"%s%s%s\n" % (body, _SEAL, _seal_of(body))


def _seal_of(body: bytes) -> bytes:
    return b'%08x"}' % zlib.crc32(body)


def _sync_folder(folder: Path) -> None:
    """Force the name of a new file to the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
