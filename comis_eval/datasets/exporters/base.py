"""What every export shares: what was written, and what the format has no place for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets import records
from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.faults import shown
from comis_eval.errors import DatasetError
from comis_eval.text import markdown, printable

CARD = "README.md"


class Loss(NamedTuple):
    """Something that the format cannot hold: what, of how many records, where it went."""

    what: str
    number: int
    done: str

    def __str__(self) -> str:
        return printable(f"{self.what} ({self.number}): {self.done}")


class ExportReport(NamedTuple):
    """What an export wrote.

    Attributes:
        counts: Records written by file.
        losses: What the format cannot hold.
    """

    counts: dict[str, int]
    losses: tuple[Loss, ...]


def losses(dataset: Dataset, done: str, *, in_header: str) -> tuple[Loss, ...]:
    """List what documents, texts and grades do not say of a dataset.

    Args:
        dataset: What is exported.
        done: What becomes of the other fields of memories and queries.
        in_header: What becomes of what dataset.yaml says.
    """
    memories = _fields(map(records.memory_row, dataset.memories), {"id", "content"})
    queries = _fields(map(records.query_row, dataset.queries), {"id", "text"})
    said = {
        "splits": len(dataset.splits),
        "categories outside the headline": list(dataset.categories.values()).count(False),
        "policy": 1,
    }
    beside = {
        "attacks": len(dataset.attacks),
        "causal links": len(dataset.links),
        "edges": len(dataset.edges),
        "usefulness": len(dataset.usefulness),
        "embeddings files": len(dataset.embeddings),
    }
    told = [
        *(Loss(f"memories: {key}", number, done) for key, number in memories.items()),
        *(Loss(f"queries: {key}", number, done) for key, number in queries.items()),
        *(Loss(f"dataset: {key}", number, in_header) for key, number in said.items() if number),
        *(Loss(f"dataset: {key}", number, "left out") for key, number in beside.items() if number),
    ]
    if dataset.attacks:
        poison = {memory_id for attack in dataset.attacks for memory_id in attack.poison_ids}
        told.append(Loss("poison", len(poison), "exported as documents like any other"))
    return tuple(told)


def check_encodes(where: str, text: str) -> str:
    """Return the text when UTF-8 can hold it.

    Raises:
        DatasetError: If it cannot; the message names the record.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DatasetError(
            f"{where}: holds half of a surrogate pair, which is no character; nothing was exported"
        ) from error
    return text


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines, each with its end; return how many."""
    number = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in lines:
            file.write(line)
            number += 1
    return number


def write_card(dataset: Dataset, report: ExportReport, path: Path) -> None:
    """Write what the files are, whose, and what they lack."""
    about = {
        "Dataset": dataset.name,
        "Version": dataset.version,
        "Fingerprint": dataset.fingerprint,
        "Licence": dataset.licence,
        "Judged by": dataset.judged_by,
        "Description": dataset.description,
    }
    lines = ["# Exported from comis-eval", ""]
    lines += [f"- {key}: {markdown(value)}" for key, value in about.items() if value]
    lines += ["", "Not in the files as their format has it:", ""]
    lines += [f"- {markdown(str(loss))}" for loss in report.losses]
    check_encodes(dataset.name, "".join(lines))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def graded(dataset: Dataset) -> Iterator[tuple[str, str, int]]:
    """Yield (query id, memory id, grade) in the order of the queries and memories."""
    judgments = dataset.judgments
    for query, row, grade in zip(judgments.queries, judgments.rows, judgments.grades, strict=True):
        yield dataset.queries[query].id, dataset.memories[row].id, int(grade)


def _fields(rows: Iterable[dict[str, Any]], told: set[str]) -> Counter[str]:
    return Counter(key for row in rows for key in row if key not in told)


def place(kind: str, own: str) -> str:
    """How a message names a record."""
    return f"{kind} {shown(own)}"


Exporter = Callable[[Dataset, Path], ExportReport]
"""Writes a dataset into a new folder."""
