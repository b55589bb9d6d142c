"""What is wrong with a dataset's files, collected so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from comis_eval.text import printable

LISTED = 50
"""How many faults a message prints; the others are counted."""

_SHOWN_CHARS = 80


class Fault(NamedTuple):
    """One thing wrong, and where: the file's name in its folder, and the line from 1."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return printable(f"{place}: {self.message}")


class Complaints:
    """Collects faults, which make a dataset unusable, and warnings, which do not."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def fault(self, file: str, line: int | None, message: str) -> None:
        """Note a reason why the dataset cannot be used."""
        self.faults.append(Fault(file, line, message))

    def warn(self, file: str, line: int | None, message: str) -> None:
        """Note something allowed that is probably not meant."""
        self.warnings.append(Fault(file, line, message))


def listed(faults: Sequence[Fault]) -> str:
    """Join faults one a line, the first ``LISTED`` of them, and say how many more there are."""
    lines = [str(fault) for fault in faults[:LISTED]]
    if len(faults) > LISTED:
        lines.append(f"... and {len(faults) - LISTED} more")
    return "\n".join(lines)


def shown(value: object) -> str:
    """Show a value in a message: on one line, no control characters, cut when long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


def did_you_mean(word: object, allowed: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the nearest allowed word, else the allowed ones."""
    known = sorted(allowed)
    near = get_close_matches(str(word), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(known)}"
