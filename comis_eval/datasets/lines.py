"""Strict reading of line-based files: JSON objects, one a line, and columns of words.

Files are UTF-8 without a byte order mark, lines end in a line feed (a carriage return
before it is ignored), and a blank line is a fault: it is what a half-written or badly
joined file looks like. Nothing is guessed, retyped or skipped: a line that cannot be read
as it stands is a fault with its number, and reading goes on to find the next one.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Container, Iterator
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets.faults import Complaints, shown
from comis_eval.files import open_regular

MAX_LINE_BYTES = 8 * 2**20
"""Longest line read; past it a file is more likely not line-based than a memory that long."""


class UnreadableError(ValueError):
    """A text is not JSON as this package accepts it; the message says why."""


class Line(NamedTuple):
    """One line of a file: its number from 1, and its text without the line feed."""

    number: int
    text: str


def read_lines(path: Path, complaints: Complaints) -> Iterator[Line]:
    """Yield the readable, non-blank lines of a file; the others become faults.

    Args:
        path: The file; its name alone stands in the faults.
        complaints: Takes the faults, one of a file that cannot be opened among them.
    """
    try:
        with open_regular(path) as file:
            number = 0
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                whole = len(raw) <= MAX_LINE_BYTES or raw.endswith(b"\n")
                while not whole and (rest := file.readline(MAX_LINE_BYTES)):
                    whole = rest.endswith(b"\n")
                try:
                    yield Line(number, _text(raw, first=number == 1))
                except UnreadableError as error:
                    complaints.fault(path.name, number, str(error))
    except FileNotFoundError:
        complaints.fault(path.name, None, "no such file")
    except OSError as error:
        complaints.fault(path.name, None, f"cannot be read: {error.strerror}")


def read_objects(
    path: Path, complaints: Complaints, *, only: Container[int] | None = None
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line number, JSON object) for each line that holds one; others become faults.

    Args:
        path: The file.
        complaints: Takes the faults.
        only: Numbers of the lines to decode; None: all.
    """
    for line in read_lines(path, complaints):
        if only is not None and line.number not in only:
            continue
        try:
            value = decode_json(line.text)
        except UnreadableError as error:
            complaints.fault(path.name, line.number, str(error))
            continue
        if isinstance(value, dict):
            yield line.number, value
        else:
            complaints.fault(
                path.name, line.number, f"must be one JSON object, found {shown(value)}"
            )


def read_columns(
    path: Path, names: tuple[str, ...], complaints: Complaints
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, words) for each line of exactly ``len(names)`` words.

    Words are parted by any white space, as in TREC files.
    """
    for line in read_lines(path, complaints):
        words = line.text.split()
        if len(words) == len(names):
            yield line.number, words
        else:
            complaints.fault(
                path.name,
                line.number,
                f"has {len(words)} columns, must have {len(names)}: {' '.join(names)}",
            )


def decode_json(text: str) -> object:
    """Decode one JSON value, refusing what Python's reader lets through.

    Raises:
        UnreadableError: If the text is not JSON, repeats a key, holds NaN, an infinity, a number
            too large for a float, half of a surrogate pair, or is nested too deep.
    """
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnreadableError:
        raise
    except json.JSONDecodeError as error:
        cut_off = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        raise UnreadableError(
            f"not JSON: {error.msg.removesuffix(' starting at')} at line {error.lineno}, "
            f"column {error.colno}" + "; it looks cut off" * cut_off
        ) from error
    except UnicodeEncodeError as error:
        raise UnreadableError("holds half of a surrogate pair, which is no character") from error
    except RecursionError as error:
        raise UnreadableError("nested too deep") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise UnreadableError(f"not usable JSON: {error}") from error
    return value


def _text(raw: bytes, *, first: bool) -> str:
    if first and raw.startswith(BOM_UTF8):
        raise UnreadableError("starts with a byte order mark; save the file as UTF-8 without one")
    if len(raw.rstrip(b"\r\n")) > MAX_LINE_BYTES:
        raise UnreadableError(f"longer than {MAX_LINE_BYTES} bytes; is it one record a line?")
    try:
        text = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8 from byte {error.start + 1} of the line on") from error
    if not text.strip():
        raise UnreadableError("blank line; remove it")
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        times = Counter(key for key, _ in pairs)  # in one pass: a line holds a million keys
        repeated = next(key for key, number in times.items() if number > 1)
        raise UnreadableError(f"key {shown(repeated)} stands twice in one object; keep one")
    return values


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise UnreadableError(f"number {shown(digits)} is too large")
    return value


def _no_constant(word: str) -> float:
    raise UnreadableError(f"{word} is not a JSON number; leave the field out when it is unknown")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant
)
