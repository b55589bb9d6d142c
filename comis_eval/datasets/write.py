"""From a dataset in memory to its folder, whole or not at all."""

from __future__ import annotations

import csv
import json
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from comis_eval.datasets import records
from comis_eval.datasets.contents import (
    ATTACKS,
    EDGES,
    LINKS,
    MEMORIES,
    QRELS,
    QUERIES,
    USEFULNESS,
    USEFULNESS_COLUMNS,
)
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.header import Header
from comis_eval.errors import DatasetError

if TYPE_CHECKING:
    from comis_eval.datasets.dataset import Dataset


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, quoting all text that does not begin with a letter.

    It knows the numbers of YAML 1.1 and would leave ``1e3`` bare, which is read as a number.
    """

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Represent text so that it reads back as text."""
        style = None if text[:1].isalpha() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)


def write_dataset(dataset: Dataset, folder: str | Path) -> Path:
    """Write a dataset as a folder.

    The files are written beside the folder, read back, compared by fingerprint and only
    then moved into place, so that a folder either holds the whole dataset or is not there.

    Args:
        dataset: What to write; embeddings files are copied from the folder it came from.
        folder: Where to; it must not exist, or be empty.

    Returns:
        The folder.

    Raises:
        DatasetError: If the folder holds something, or what was written does not read
            back as the same dataset.
    """
    target = Path(folder)
    with new_folder(target) as part:
        _write_files(dataset, part)
        _check_same(dataset, part, target)
    return target


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a new folder beside ``target`` that takes its place when the block ends well.

    Raises:
        DatasetError: If ``target`` is there and holds something.
    """
    check_free(target)
    part = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
    part.mkdir(parents=True)
    try:
        yield part
        if target.exists():
            target.rmdir()
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check_free(target: Path) -> None:
    """Refuse a folder that holds something, or a file of that name."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DatasetError(f"{target} exists and is not empty; choose another or remove it first")


def _write_files(dataset: Dataset, folder: Path) -> None:
    write_header(header_of(dataset), folder / HEADER)
    write_objects(folder / MEMORIES, map(records.memory_row, dataset.memories))
    write_objects(folder / QUERIES, map(records.query_row, dataset.queries))
    if dataset.labelled:
        _write_judgments(dataset, folder / QRELS)
    if dataset.attacks:
        write_objects(folder / ATTACKS, map(records.attack_row, dataset.attacks))
    if dataset.links:
        write_objects(folder / LINKS, map(records.link_row, dataset.links))
    if dataset.edges:
        write_objects(folder / EDGES, map(records.edge_row, dataset.edges))
    if dataset.usefulness:
        _write_usefulness(dataset, folder / USEFULNESS)
    for name in dataset.embeddings:
        if dataset.folder is None:
            raise DatasetError(f"{dataset.name}: {name} is stated but no folder to copy it from")
        shutil.copyfile(dataset.folder / name, folder / name)


def _check_same(dataset: Dataset, written: Path, target: Path) -> None:
    from comis_eval.datasets.load import load_dataset  # here, because importers only write

    try:
        found = load_dataset(written).fingerprint
    except DatasetError as error:
        raise DatasetError(f"{target} not written: {error}") from error
    if found != dataset.fingerprint:
        raise DatasetError(
            f"{target} not written: it would read back as another dataset "
            f"(fingerprint {found[:12]}, not {dataset.fingerprint[:12]})"
        )


def header_of(dataset: Dataset | Header) -> dict[str, Any]:
    """Return what dataset.yaml says of a dataset, defaults left out."""
    about = {
        "version": dataset.version,
        "licence": dataset.licence,
        "description": dataset.description,
        "judgedBy": dataset.judged_by,
    }
    header: dict[str, Any] = {"name": dataset.name}
    header |= {key: value for key, value in about.items() if value}
    header["policy"] = {
        "trustLevels": sorted(str(level) for level in dataset.policy.trust_levels),
        "scope": str(dataset.policy.scope),
    }
    if dataset.categories:
        header["categories"] = {
            category: {"headline": headline} for category, headline in dataset.categories.items()
        }
    if dataset.splits:
        header["splits"] = {split: list(groups) for split, groups in dataset.splits.items()}
    if not dataset.labelled:
        header["labelled"] = False
    return header


def write_header(header: dict[str, Any], path: Path) -> None:
    """Write dataset.yaml so that every text reads back as text."""
    text = yaml.dump(header, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    path.write_text(text, encoding="utf-8", newline="\n")


def write_objects(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON objects, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_judgments(dataset: Dataset, path: Path) -> None:
    judgments = dataset.judgments
    pairs = zip(judgments.queries, judgments.rows, judgments.grades, strict=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(
            f"{dataset.queries[query].id}\t0\t{dataset.memories[row].id}\t{grade}\n"
            for query, row, grade in pairs
        )


def _write_usefulness(dataset: Dataset, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(USEFULNESS_COLUMNS)
        writer.writerows((key, *value) for key, value in dataset.usefulness.items())
