"""What a judge did, one line an act: appended and on disk before anybody is told it was taken."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from comis_eval.datasets.faults import Complaints, listed
from comis_eval.datasets.fields import (
    Field,
    Fields,
    UnusableError,
    choice,
    identifier,
    integer,
    name,
    read_fields,
    text,
)
from comis_eval.datasets.lines import MAX_LINE_BYTES, UnreadableError, decode_json
from comis_eval.errors import JudgeError
from comis_eval.text import printable

GRADES = range(4)
_SUFFIX = ".jsonl"
_SHOWN = 80


class Act(StrEnum):
    """What a judge can do."""

    GRADE = "grade"
    SKIP = "skip"
    UNDO = "undo"


class Pair(NamedTuple):
    """A memory put beside a query, by their ids."""

    query_id: str
    memory_id: str


class Entry(NamedTuple):
    """One line of a judge's file.

    Attributes:
        at: When, ms.
        act: What was done.
        pair: To what; an undo repeats the pair of the act it takes back.
        sitting: 1, or 2 for a second look at what the same judge has graded before.
        grade: 0..3 when something was graded, else None.
        seen: Says which texts were judged, see :func:`~comis_eval.judge.pairs.seen`.
    """

    at: int
    act: Act
    pair: Pair
    sitting: int
    grade: int | None
    seen: str


class Held(NamedTuple):
    """What a judge's file holds.

    Attributes:
        entries: In the order they were made.
        size: Bytes of whole lines.
        torn: What stands behind them, which a kill cut off before anybody was told it was
            taken; empty as a rule.
    """

    entries: list[Entry]
    size: int
    torn: bytes


class Journal:
    """A judge's file, open for appending; nobody else can hold it meanwhile.

    Attributes:
        path: The file.
        judge: The judge's name.
        entries: Everything in it.
        healed: Part of a line that a kill had left at its end and that was cut off, ready to
            be shown; None as a rule. What it was about is asked again.
    """

    def __init__(self, folder: Path, judge: str, *, clock: Callable[[], int] | None = None) -> None:
        """Open or make ``folder/judge.jsonl``.

        Args:
            folder: Made when missing, for its owner alone.
            judge: A name, ``[A-Za-z0-9._-]{1,64}``.
            clock: Milliseconds since 1970; None: the system's.

        Raises:
            JudgeError: If the name is none, the file is a link, in use or damaged.
            OSError: If it cannot be opened or mended.
        """
        self.judge = judge_name(judge)
        self.path = folder / f"{self.judge}{_SUFFIX}"
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        refuse_link(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        self._descriptor = _open(self.path)
        try:
            self._lock()
            held = read_journal(self.path)
            self.healed = _cut(self._descriptor, held)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.entries = held.entries
        self._size = held.size
        _sync_folder(folder)

    def append(
        self, act: Act, pair: Pair, *, sitting: int, grade: int | None = None, seen: str = ""
    ) -> Entry:
        """Write one line and wait until it is on disk.

        Raises:
            OSError: If it could not be; the file is then as it was before.
        """
        entry = Entry(self._clock(), act, pair, sitting, grade, seen)
        line = (json.dumps(_row(entry), ensure_ascii=True) + "\n").encode()
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)
        self.entries.append(entry)
        return entry

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JudgeError(
                f"{self.path} is open in another `comis-eval judge`; end that one, or give "
                "each person a name of their own (--judge NAME)"
            ) from error


def judge_name(value: str) -> str:
    """Accept a judge's name.

    Raises:
        JudgeError: If it could not be the name of a file of its own.
    """
    try:
        return name(value)
    except UnusableError as error:
        raise JudgeError(f"--judge{error.args[0]}, and is neither . nor ..") from error


def refuse_link(folder: Path) -> None:
    """Refuse a folder of judgments that is a link: it may have come with somebody's dataset.

    Raises:
        JudgeError: If it is one.
    """
    if folder.is_symlink():
        raise JudgeError(
            f"{folder} is a link; judgments are written into a folder of their own: name where "
            "it leads with --judgments, or remove it"
        )


def read_journal(path: Path) -> Held:
    """Read a judge's file, which its judge may be writing meanwhile.

    Raises:
        JudgeError: If a line other than one cut off at the end cannot be used; names every
            such line.
        OSError: If it cannot be read.
    """
    content = path.read_bytes()
    whole, end, torn = content.rpartition(b"\n")
    complaints = Complaints()
    entries: list[Entry] = []
    for number, raw in enumerate(whole.split(b"\n") if end else (), 1):
        entry = _entry(raw, number, path.name, complaints)
        if entry is not None:
            entries.append(entry)
    if not complaints.faults:
        _check_undone(entries, path.name, complaints)
    if complaints.faults:
        raise JudgeError(
            f"{path.parent} holds judgments that cannot be used; mend or move the file, nothing "
            f"was changed:\n{listed(complaints.faults)}"
        )
    return Held(entries, len(whole) + len(end), torn)


def read_all(folder: Path) -> dict[str, Held]:
    """What every judge's file in a folder holds, by name; nothing when there is no folder.

    Raises:
        JudgeError: If one cannot be used.
    """
    refuse_link(folder)
    if not folder.is_dir():
        return {}
    files = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    for path in files:
        if path.is_symlink() or not path.is_file():
            raise JudgeError(f"{path} is no file of judgments; move it elsewhere")
    return {judge_name(path.stem): read_journal(path) for path in files}


def standing(entries: Iterable[Entry], *, sitting: int) -> list[Entry]:
    """The grades and skips of a sitting that were not taken back, in the order made.

    An undo takes back the last act on its pair that stands.
    """
    kept: dict[int, Entry] = {}
    of_pair: dict[Pair, list[int]] = {}
    for number, entry in enumerate(entries):
        if entry.sitting != sitting:
            continue
        acts = of_pair.setdefault(entry.pair, [])
        if entry.act is Act.UNDO:
            del kept[acts.pop()]
        else:
            kept[number] = entry
            acts.append(number)
    return list(kept.values())


def grades(entries: Sequence[Entry], *, sitting: int) -> dict[Pair, Entry]:
    """The last grade that stands of each pair; a skip behind it does not take it back."""
    return {e.pair: e for e in standing(entries, sitting=sitting) if e.act is Act.GRADE}


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise JudgeError(f"{path} is a link; remove it or choose another --judge") from error
        raise
    if not path.is_file():
        os.close(descriptor)
        raise JudgeError(f"{path} is no plain file; remove it or choose another --judge")
    return descriptor


def _cut(descriptor: int, held: Held) -> str | None:
    if not held.torn:
        return None
    os.ftruncate(descriptor, held.size)
    os.fsync(descriptor)
    return printable(held.torn.decode("utf-8", "backslashreplace"), limit=_SHOWN)


def _sync_folder(folder: Path) -> None:
    """Have the file's name itself on disk, or a power cut could take the whole file."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _grade(value: object) -> int:
    if integer(value) not in GRADES:
        raise UnusableError(f" is {value}; allowed: 0, 1, 2, 3")
    return integer(value)


def _sitting(value: object) -> int:
    if integer(value) not in (1, 2):
        raise UnusableError(f" is {value}; allowed: 1, 2")
    return integer(value)


_ENTRY: Fields = {
    "at": Field("at", integer, required=True),
    "act": Field("act", choice(Act), required=True),
    "query": Field("query_id", identifier, required=True),
    "memory": Field("memory_id", identifier, required=True),
    "sitting": Field("sitting", _sitting, required=True),
    "grade": Field("grade", _grade),
    "seen": Field("seen", text, required=True),
}


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "at": entry.at,
        "act": str(entry.act),
        "query": entry.pair.query_id,
        "memory": entry.pair.memory_id,
        "sitting": entry.sitting,
        "seen": entry.seen,
    }
    return row if entry.grade is None else row | {"grade": entry.grade}


def _entry(raw: bytes, number: int, file: str, complaints: Complaints) -> Entry | None:
    try:
        if len(raw) > MAX_LINE_BYTES:
            raise UnreadableError(f"longer than {MAX_LINE_BYTES} bytes")
        row = decode_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        complaints.fault(file, number, f"not UTF-8 from byte {error.start + 1} on")
        return None
    except UnreadableError as error:
        complaints.fault(file, number, str(error))
        return None
    if not isinstance(row, dict):
        complaints.fault(file, number, f"must hold keys ({', '.join(_ENTRY)})")
        return None
    values, wrong = read_fields(row, _ENTRY)
    if not wrong and (values["act"] is Act.GRADE) != ("grade" in values):
        wrong.append("grade must be there when act is grade, and only then")
    for message in wrong:
        complaints.fault(file, number, message)
    if wrong:
        return None
    pair = Pair(values["query_id"], values["memory_id"])
    return Entry(
        values["at"], values["act"], pair, values["sitting"], values.get("grade"), values["seen"]
    )


def _check_undone(entries: Sequence[Entry], file: str, complaints: Complaints) -> None:
    """An undo must have something to take back, or the file was put together by hand."""
    there: Counter[tuple[int, Pair]] = Counter()
    for number, entry in enumerate(entries, 1):
        key = (entry.sitting, entry.pair)
        there[key] += -1 if entry.act is Act.UNDO else 1
        if there[key] < 0:
            complaints.fault(file, number, "takes back an act that is not there")
            return
