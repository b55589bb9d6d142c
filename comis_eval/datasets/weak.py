"""Weak labels: what a running system's users did with what it recalled.

A weak label says that a memory, once injected for a query, was used or ignored. It is a hint
and no judgment: what was never surfaced has none, what stood first is used more often, and
the counts behind it are of a memory, not of a query. So weak labels live in a file of their
own, ``weak.tsv``, which is no part of the dataset (the fingerprint does not cover it, and
neither :func:`~comis_eval.datasets.load_dataset` nor any metric reads it); whoever wants them
asks for them here.

The file begins with the line ``query<TAB>memory<TAB>signal<TAB>source``; a signal is ``used``
or ``ignored``, and the source says whence it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from comis_eval.datasets.contents import WEAK
from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.faults import Complaints, listed, shown
from comis_eval.datasets.labels import Usefulness
from comis_eval.datasets.lines import read_columns
from comis_eval.errors import DatasetError

COLUMNS = ("query", "memory", "signal", "source")


class Signal(StrEnum):
    """What became of a memory after it was injected."""

    USED = "used"
    IGNORED = "ignored"


class WeakLabel(NamedTuple):
    """One hint: for this query this memory was injected, and used or ignored.

    Attributes:
        query_id: The query.
        memory_id: The memory.
        signal: What became of it.
        source: Whence the signal comes, such as ``usefulness``; one word.
    """

    query_id: str
    memory_id: str
    signal: Signal
    source: str


def signal_of(counts: Usefulness | None) -> Signal | None:
    """Say which way a memory's counts lean; None when they lean neither way."""
    if counts is None or counts.used == counts.ignored:
        return None
    return Signal.USED if counts.used > counts.ignored else Signal.IGNORED


def weak_labels(
    surfaced: Iterable[tuple[str, str]], usefulness: Mapping[str, Usefulness]
) -> list[WeakLabel]:
    """Label the (query, memory) pairs that were injected by what the memory's counts say.

    A pair that was surfaced several times is labelled once.
    """
    labels: dict[tuple[str, str], WeakLabel] = {}
    for query_id, memory_id in surfaced:
        signal = signal_of(usefulness.get(memory_id))
        if signal is not None:
            label = WeakLabel(query_id, memory_id, signal, "usefulness")
            labels.setdefault((query_id, memory_id), label)
    return list(labels.values())


def write_weak(labels: Iterable[WeakLabel], folder: Path) -> None:
    """Write ``weak.tsv`` into a dataset folder."""
    with (folder / WEAK).open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(COLUMNS) + "\n")
        file.writelines("\t".join(label) + "\n" for label in labels)


def load_weak(dataset: Dataset) -> tuple[WeakLabel, ...]:
    """Read the weak labels beside a dataset; none when it has no ``weak.tsv``.

    Raises:
        DatasetError: If a line is malformed, names a query or memory that the dataset lacks,
            or repeats a pair; every fault by line.
    """
    if dataset.folder is None or not (dataset.folder / WEAK).exists():
        return ()
    complaints = Complaints()
    labels: dict[tuple[str, str], WeakLabel] = {}
    for line, words in read_columns(dataset.folder / WEAK, COLUMNS, complaints):
        query_id, memory_id, signal, source = words
        if line == 1:
            if tuple(words) != COLUMNS:
                complaints.fault(WEAK, 1, f"must be {' '.join(COLUMNS)}, found {shown(words)}")
        elif signal not in list(Signal):
            complaints.fault(WEAK, line, f"signal is {shown(signal)}; allowed: {', '.join(Signal)}")
        elif query_id not in dataset.position_of:
            complaints.fault(WEAK, line, f"query {shown(query_id)} is not in the dataset")
        elif memory_id not in dataset.row_of:
            complaints.fault(WEAK, line, f"memory {shown(memory_id)} is not in the dataset")
        elif (query_id, memory_id) in labels:
            complaints.fault(WEAK, line, "this query and memory are labelled on an earlier line")
        else:
            label = WeakLabel(query_id, memory_id, Signal(signal), source)
            labels[query_id, memory_id] = label
    if complaints.faults:
        raise DatasetError(
            f"{dataset.folder} has {len(complaints.faults)} faults:\n{listed(complaints.faults)}"
        )
    return tuple(labels.values())
