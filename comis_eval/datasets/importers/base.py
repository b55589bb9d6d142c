"""What every importer shares: what it took, left and mended, and when it must stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from comis_eval.errors import DatasetError
from comis_eval.text import printable

MAX_BAD = 0.01
"""Share of malformed records that stops an import, unless told otherwise."""

_LISTED = 20


class Count(NamedTuple):
    """How many records of one kind were found, and how many of them were kept."""

    found: int
    kept: int

    @property
    def dropped(self) -> int:
        """How many were left out; each is in the notes."""
        return self.found - self.kept


class Note(NamedTuple):
    """One thing that was not as it should be: where, what was found, what was done."""

    where: str
    what: str
    done: str

    def __str__(self) -> str:
        return printable(f"{self.where}: {self.what}; {self.done}")


class Tell(Protocol):
    """Is told how far a step is."""

    def __call__(self, step: str, done: int, total: int, /) -> None:
        """So much of a step is done."""


@dataclass(frozen=True)
class ImportReport:
    """What an import made of its source.

    Attributes:
        counts: By kind of record (``memories``, ``queries``, ``judgments``).
        notes: Everything mended, left out or not understood, in source order.
        name: The dataset's.
        fingerprint: Of the dataset, where it was built in memory; None where it was
            streamed (``comis-eval validate`` tells it).
    """

    counts: Mapping[str, Count]
    notes: tuple[Note, ...]
    name: str = ""
    fingerprint: str | None = None

    @property
    def dropped_share(self) -> float:
        """Share of all records found that were dropped, in [0, 1]; 0 when none was found."""
        found = sum(count.found for count in self.counts.values())
        return sum(count.dropped for count in self.counts.values()) / found if found else 0.0

    @property
    def reasons(self) -> dict[str, int]:
        """How many notes end alike: what was done, and how often."""
        return dict(Counter(note.done for note in self.notes))


def name_of(folder: Path, otherwise: str) -> str:
    """A dataset's name from that of its folder, where what no name holds becomes a hyphen."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in folder.name)
    return name[:64] if name.strip(".") else otherwise


@dataclass
class BadRecords:
    """The malformed records of one source, each with its place; too many stop the import.

    Attributes:
        source: The file they stand in.
        max_share: Largest share of malformed records that is still imported, in [0, 1].
        notes: One a record, in source order.
    """

    source: Path
    max_share: float = MAX_BAD
    notes: list[Note] = field(default_factory=list)

    def add(self, where: str, why: str) -> None:
        """List a record that is left out because it is malformed."""
        self.notes.append(Note(where, why, "dropped: malformed"))

    def check(self, found: int) -> None:
        """Stop when more than the allowed share of the records found is malformed.

        Raises:
            DatasetError: If so; it lists the first of them.
        """
        if len(self.notes) <= self.max_share * found:
            return
        listed = [f"{note.where}: {note.what}" for note in self.notes[:_LISTED]]
        if len(self.notes) > _LISTED:
            listed.append(f"... and {len(self.notes) - _LISTED} more")
        raise DatasetError(
            f"{self.source}: {len(self.notes)} of {found} records are malformed, more than "
            f"{self.max_share:.3g} of them; nothing was imported. Mend the source, or allow "
            "more with --max-bad SHARE:\n" + "\n".join(listed)
        )
