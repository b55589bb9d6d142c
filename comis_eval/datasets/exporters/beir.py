"""BEIR: corpus.jsonl, queries.jsonl, and qrels/test.tsv or a file a fixed split.

Text and grades stand where every BEIR tool looks for them. What BEIR has no place for is
kept in ``metadata`` under a key of our own and in dataset.yaml beside, which others ignore
and our importer reads, so that both ways together change nothing.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from comis_eval.datasets import records
from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.exporters.base import (
    CARD,
    ExportReport,
    check_encodes,
    graded,
    losses,
    place,
    write_card,
    write_lines,
)
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.importers.beir import COLUMNS, CORPUS, OWN, PARTS, QRELS, QUERIES
from comis_eval.datasets.lines import MAX_LINE_BYTES
from comis_eval.datasets.write import header_of, new_folder, write_header
from comis_eval.errors import DatasetError


def export_beir(dataset: Dataset, folder: Path) -> ExportReport:
    """Write a dataset as a BEIR folder.

    Args:
        dataset: What is written.
        folder: Where to; it must not exist, or be empty.

    Raises:
        DatasetError: If nobody judged the dataset, or a text cannot be written; then there
            is no folder.
    """
    dataset.check_labelled()
    told = losses(dataset, f"in metadata.{OWN}, which other tools ignore", in_header=f"in {HEADER}")
    with new_folder(folder) as part:
        counts = {
            CORPUS: write_lines(part / CORPUS, _corpus(dataset)),
            QUERIES: write_lines(part / QUERIES, _queries(dataset)),
        }
        (part / QRELS).mkdir()
        for name, rows in _judgments(dataset).items():
            path = part / QRELS / f"{name}.tsv"
            counts[f"{QRELS}/{name}.tsv"] = write_lines(path, _tsv([COLUMNS, *rows])) - 1
        write_header(header_of(dataset), part / HEADER)
        report = ExportReport(counts, told)
        write_card(dataset, report, part / CARD)
    return report


def _corpus(dataset: Dataset) -> Iterator[str]:
    for memory in dataset.memories:
        row = records.memory_row(memory)
        own, text = row.pop("id"), row.pop("content")
        value = {"_id": own, "title": "", "text": text, "metadata": {OWN: row}}
        yield _line(place("memory", own), value)


def _queries(dataset: Dataset) -> Iterator[str]:
    for query in dataset.queries:
        row = records.query_row(query)
        own, text = row.pop("id"), row.pop("text")
        yield _line(place("query", own), {"_id": own, "text": text, "metadata": {OWN: row}})


def _line(where: str, value: dict[str, Any]) -> str:
    line = check_encodes(where, json.dumps(value, ensure_ascii=False) + "\n")
    if len(line.encode()) > MAX_LINE_BYTES:
        raise DatasetError(f"{where}: its line would be longer than {MAX_LINE_BYTES} bytes")
    return line


def _judgments(dataset: Dataset) -> dict[str, list[tuple[str, str, int]]]:
    """The judgments by file: one a fixed split, else all in test."""
    split_of = {group: split for split, groups in dataset.splits.items() for group in groups}
    name_of = {split: name for name, split in PARTS.items()}
    files: dict[str, list[tuple[str, str, int]]] = {}
    for row in graded(dataset):
        group = dataset.queries[dataset.position_of[row[0]]].group
        files.setdefault(name_of[split_of[group]] if split_of else "test", []).append(row)
    return files or {"test": []}


def _tsv(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    for row in rows:
        text = io.StringIO()
        csv.writer(text, delimiter="\t", lineterminator="\n").writerow(row)
        yield text.getvalue()
