"""What every importer hands back beside the dataset: what it took, left and mended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from comis_eval.text import printable


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


@dataclass(frozen=True)
class ImportReport:
    """What an import made of its source.

    Attributes:
        counts: By kind of record (``memories``, ``queries``, ``judgments``).
        notes: Everything mended, left out or not understood, in source order.
    """

    counts: Mapping[str, Count]
    notes: tuple[Note, ...]

    @property
    def dropped_share(self) -> float:
        """Share of all records found that were dropped, in [0, 1]; 0 when none was found."""
        found = sum(count.found for count in self.counts.values())
        return sum(count.dropped for count in self.counts.values()) / found if found else 0.0
