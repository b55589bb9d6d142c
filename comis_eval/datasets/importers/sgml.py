"""TREC's SGML: documents (``<DOC>``) and topics (``<top>``), and what stands for a character.

It never was quite SGML: topics leave their fields open, texts hold bare ``<`` and ``&``, and
no two tools agree. What is read here: elements by name in any case; in a text, markup is
removed and ``&amp; &lt; &gt; &quot; &apos;`` and numeric references are decoded, other
references stay as they are; white space at both ends of a text goes. What is written holds
no bare ``<``, ``>`` or ``&``, and numeric references for control characters and for white
space at the ends, so that it is read back to the character.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from comis_eval.datasets.faults import shown
from comis_eval.datasets.lines import MAX_LINE_BYTES
from comis_eval.errors import DatasetError
from comis_eval.files import open_regular

MAX_ELEMENT_BYTES = MAX_LINE_BYTES
"""Longest document or topic read: longer ones would not fit a line of a dataset either."""

_CHUNK_BYTES = 2**20
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
# Possessive, so that no text makes the search go back and forth.
_MARKUP = re.compile(r"<[/!]?[A-Za-z-][^<>]*+>")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*+)[^<>]*+>")
_OUTSIDE = re.compile(rb"<[^<>]*+>|\s++")
_NOT_PLAIN = re.compile("[<>&\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")


class Element(NamedTuple):
    """One ``<DOC>`` or ``<top>``.

    Attributes:
        line: Where it begins, from 1.
        text: What stands between its tags; None when it cannot be used.
        why: Why not.
        done: How many bytes of the file were read so far.
    """

    line: int
    text: str | None
    why: str
    done: int


def escape(text: str) -> str:
    """Write a text so that :func:`plain` reads it back.

    Example: ``" a<b"`` -> ``"&#32;a&lt;b"``
    """
    inner = text.strip()
    start = text.index(inner) if inner else len(text)
    ends = text[:start], text[start + len(inner) :]
    before, after = ("".join(f"&#{ord(c)};" for c in end) for end in ends)
    return before + _NOT_PLAIN.sub(_referred, inner) + after


def plain(raw: str) -> str:
    """Read a text: markup removed, ends stripped, references decoded."""
    return _REFERENCE.sub(_decoded, _MARKUP.sub(" ", raw).strip())


def has_markup(raw: str) -> bool:
    """Whether :func:`plain` removes anything but white space from a text."""
    return _MARKUP.search(raw) is not None


def fields(text: str) -> list[tuple[str, str]]:
    """Split an element into fields: (name in lower case, raw text).

    A field ends where it is closed; one that is never closed ends at the next tag.
    """
    tags = list(_TAG.finditer(text))
    closings: dict[str, list[int]] = {}
    for number, tag in enumerate(tags):
        if tag[1]:
            closings.setdefault(tag[2].lower(), []).append(number)
    found: list[tuple[str, str]] = []
    number = 0
    while number < len(tags):
        tag = tags[number]
        number += 1
        if tag[1]:
            continue
        name = tag[2].lower()
        ends = closings.get(name, [])
        closing = bisect_left(ends, number)
        if closing < len(ends):
            number = ends[closing]
        end = tags[number].start() if number < len(tags) else len(text)
        found.append((name, text[tag.end() : end]))
    return found


def read_elements(path: Path, name: str) -> Iterator[Element]:
    """Yield the elements of a name in a file, without holding more than one.

    An element that another begins in, that is too long or is not UTF-8, and text outside
    of elements, have a ``why``; reading goes on.

    Raises:
        DatasetError: If the file cannot be read.
    """
    try:
        with open_regular(path) as file:
            yield from _Reader(file, name).elements()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error


class _Reader:
    """A file cut after the closing tag of each element."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        tag = name.encode()
        self._opening = re.compile(rb"<" + tag + rb"(?:\s[^<>]*+)?>", re.IGNORECASE)
        self._closing = re.compile(rb"</" + tag + rb"\s*+>", re.IGNORECASE)
        self._buffer = b""
        self._at = 0
        self._line = 1
        self._done = 0
        self._ended = False

    def elements(self) -> Iterator[Element]:
        """Yield what the file holds, whole or not."""
        while (closing := self._find()) is not None:
            segment = self._buffer[self._at : closing.start()]
            yield from self._within(segment)
            self._line += self._buffer.count(b"\n", self._at, closing.end())
            self._at = closing.end()
        rest = self._buffer[self._at :]
        if self._opening.search(rest):
            yield Element(self._line, None, f"no </{self._name}> closes what is last", self._done)
        elif _OUTSIDE.sub(b"", rest):
            yield Element(self._line, None, self._outside(rest), self._done)

    def _within(self, segment: bytes) -> Iterator[Element]:
        """The element a segment ends with, and what is wrong before it."""
        line = self._line
        openings = list(self._opening.finditer(segment))
        if not openings:
            yield Element(line, None, f"</{self._name}> closes nothing", self._done)
            return
        before = segment[: openings[0].start()]
        if _OUTSIDE.sub(b"", before):
            yield Element(line, None, self._outside(before), self._done)
        for opening in openings[:-1]:
            start = line + segment.count(b"\n", 0, opening.start())
            yield Element(start, None, f"no </{self._name}> closes it", self._done)
        start = line + segment.count(b"\n", 0, openings[-1].start())
        inner = segment[openings[-1].end() :]
        if len(inner) > MAX_ELEMENT_BYTES:
            why = f"is longer than {MAX_ELEMENT_BYTES} bytes"
            yield Element(start, None, why, self._done)
            return
        try:
            yield Element(start, inner.decode(), "", self._done)
        except UnicodeDecodeError as error:
            why = f"not UTF-8 ({shown(inner[error.start : error.start + 4])}); convert it first"
            yield Element(start, None, f"{why}: iconv -f LATIN1 -t UTF-8", self._done)

    def _outside(self, raw: bytes) -> str:
        found = shown(_OUTSIDE.sub(b" ", raw).strip()[:40].decode(errors="replace"))
        return f"{found} stands outside of any <{self._name}>"

    def _find(self) -> re.Match[bytes] | None:
        """The next closing tag; reads on as long as there is none."""
        start = self._at
        while True:
            found = self._closing.search(self._buffer, start)
            if found is not None or self._ended:
                return found
            if len(self._buffer) - self._at > 2 * MAX_ELEMENT_BYTES:
                raise DatasetError(
                    f"{self._file.name}:{self._line}: no </{self._name}> within "
                    f"{2 * MAX_ELEMENT_BYTES} bytes; is it a file of <{self._name}>?"
                )
            chunk = self._file.read(_CHUNK_BYTES)
            self._ended = not chunk
            self._done += len(chunk)
            self._buffer, self._at = self._buffer[self._at :] + chunk, 0
            # a tag may have been cut by the chunk's end
            start = max(0, len(self._buffer) - len(chunk) - 64)


def _referred(match: re.Match[str]) -> str:
    named = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return named.get(match[0], f"&#{ord(match[0])};")


def _decoded(match: re.Match[str]) -> str:
    if match[3]:
        return _NAMED[match[3]]
    code = int(match[1]) if match[1] else int(match[2], 16)
    usable = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if usable else match[0]
