"""A JSON file that is one list of objects, read object by object.

The file may be larger than memory: what is held is one object and what was read past it.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.lines import UnreadableError, decode_json
from comis_eval.errors import DatasetError
from comis_eval.files import open_regular

MAX_OBJECT_CHARS = 128 * 2**20
"""Longest object read; past it the file is more likely broken than one object that long."""

_CHUNK_BYTES = 2**20
_SPACE = " \t\n\r"


class Element(NamedTuple):
    """One member of the list.

    Attributes:
        place: Its index, from 0.
        line: The line of the file where it begins, from 1.
        value: The object; None when it cannot be used.
        why: Why not.
        done: How many bytes of the file were read so far.
    """

    place: int
    line: int
    value: dict[str, object] | None
    why: str
    done: int


class _Text:
    """The part of a file that is still to be parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.buffer = ""
        self.at = 0
        self.line = 1
        self.done = 0
        self.ended = False
        self._file = open_regular(path)
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def close(self) -> None:
        self._file.close()

    def read(self, size: int) -> None:
        """Read so many bytes on; forget what was parsed."""
        raw = self._file.read(size)
        self.done += len(raw)
        self.ended = not raw
        try:
            text = self._decoder.decode(raw, final=self.ended)
        except UnicodeDecodeError as error:
            place = self.done - len(raw) + error.start
            raise DatasetError(f"{self.path}: not UTF-8 near byte {place}") from error
        self.buffer, self.at = self.buffer[self.at :] + text, 0

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self.at < len(self.buffer) and self.buffer[self.at] in _SPACE:
                self.line += self.buffer[self.at] == "\n"
                self.at += 1
            if self.at < len(self.buffer) or self.ended:
                return self.buffer[self.at : self.at + 1]
            self.read(_CHUNK_BYTES)

    def take(self, end: int) -> str:
        """Pass over the text up to an end, and return it."""
        text = self.buffer[self.at : end]
        self.line += text.count("\n")
        self.at = end
        return text

    def fault(self, message: str) -> DatasetError:
        return DatasetError(f"{self.path}:{self.line}: {message}")


def read_array(path: Path) -> Iterator[Element]:
    """Yield the objects of a JSON list in order.

    An object that is JSON, but not as this package accepts it (a key twice, NaN, half of a
    surrogate pair), and a member that is no object have a ``why``; reading goes on.

    Raises:
        DatasetError: If the file cannot be read, is not UTF-8, or is no JSON list; the
            message names the line.
    """
    try:
        text = _Text(path)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        if text.peek() != "[":
            raise text.fault(f"begins with {shown(text.peek())}; it must be a JSON list")
        text.take(text.at + 1)
        place = 0
        while text.peek() != "]":
            if place and text.peek() != ",":
                raise text.fault(f"{shown(text.peek())} after member {place - 1} of the list")
            if place:
                text.take(text.at + 1)
                text.peek()
            line = text.line
            yield Element(place, line, *_decoded(_member(text, place)), text.done)
            place += 1
        text.take(text.at + 1)
        if text.peek():
            raise text.fault("something stands after the end of the list")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    finally:
        text.close()


def _member(text: _Text, place: int) -> str:
    """Find where the next member ends, reading on as long as it may be cut off."""
    size = _CHUNK_BYTES
    while True:
        try:
            end = _DECODER.raw_decode(text.buffer, text.at)[1]
            if end < len(text.buffer) or text.ended:  # else a number might go on
                return text.take(end)
        except RecursionError as error:
            raise text.fault(f"member {place} is nested too deep") from error
        except ValueError as error:
            if text.ended:
                what = "is cut off or no JSON"
                if isinstance(error, json.JSONDecodeError):
                    what += f": {error.msg.removesuffix(' starting at')}"
                raise text.fault(
                    f"member {place} of the list, which begins here, {what}"
                ) from error
        if len(text.buffer) - text.at > MAX_OBJECT_CHARS:
            raise text.fault(
                f"member {place} of the list, which begins here, has no end within "
                f"{MAX_OBJECT_CHARS} characters"
            )
        text.read(size)
        size *= 2  # so that a long object is not tried from its start at every step


def _decoded(text: str) -> tuple[dict[str, object] | None, str]:
    try:
        value = decode_json(text)
    except UnreadableError as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, f"must be an object, found {shown(value)}"
    return value, ""


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds ends; what it makes of values is thrown away."""
