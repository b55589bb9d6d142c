"""How often the held-out queries of a dataset were looked at.

A test that is opened again and again becomes a second tuning set. Every opening is one
line of JSON, appended; nothing is ever rewritten.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import NamedTuple

from comis_eval.errors import DatasetError
from comis_eval.text import printable


class Opening(NamedTuple):
    """One look at held-out queries.

    Attributes:
        fingerprint: The dataset's.
        held_out: Which queries: ``test`` of a seed's split, or ``folds`` of a nested search.
        seed: Of the split or the folds.
        study: Name of the sweep.
        at: When, ISO 8601 UTC.
        verdict: What the sweep said.
    """

    fingerprint: str
    held_out: str
    seed: int
    study: str
    at: str
    verdict: str


def openings(path: Path, fingerprint: str) -> list[Opening]:
    """Earlier looks at one dataset, oldest first; none when there is no ledger yet.

    Raises:
        DatasetError: If a line cannot be read; names it.
    """
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            opening = Opening(**json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise DatasetError(
                f"{path}:{number}: not an opening ({printable(str(error), limit=80)}); the ledger "
                "is appended to, never edited: restore it from version control"
            ) from error
        if opening.fingerprint == fingerprint:
            found.append(opening)
    return found


def record(path: Path, opening: Opening) -> None:
    """Append one opening, whole, also beside other processes that append."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(opening._asdict(), ensure_ascii=False, allow_nan=False) + "\n"
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
