"""BEIR: a folder with corpus.jsonl, queries.jsonl and qrels/{train,dev,test}.tsv.

Decisions, besides those of :mod:`.collection`:

- a document's content is its title, a line feed and its text;
- the judgments of several files are fixed splits (train: tune, dev: select, test: test); of
  one file there are none, and they are derived as everywhere;
- ``metadata`` is left out, except what this package's own export keeps in it under
  ``comis_eval``: the fields of a memory or query, and beside the files their dataset.yaml.

Source:
    Thakur et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
    Retrieval Models", NeurIPS 2021; the package beir 2.2.0 (Apache-2.0).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.header import read_header
from comis_eval.datasets.importers.base import ImportReport, Note, Tell, name_of
from comis_eval.datasets.importers.collection import (
    CollectionWriter,
    Judged,
    Record,
    joined,
    unread,
)
from comis_eval.datasets.importers.folder import FolderWriter
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.lines import UnreadableError, decode_json, read_lines
from comis_eval.datasets.write import header_of, new_folder, write_header
from comis_eval.errors import DatasetError

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
COLUMNS = ("query-id", "corpus-id", "score")
PARTS = {"train": "tune", "dev": "select", "test": "test"}
"""Files of judgments, and the splits they are here."""
OWN = "comis_eval"
"""The key of metadata that holds what BEIR has no place for."""

_KEYS = {"_id", "title", "text", "metadata"}


class BeirOptions(NamedTuple):
    """What is taken of a folder.

    Attributes:
        part: Of PARTS, the only file of judgments that is read; None: every one there is.
        grades: What grades become.
        redactor: Replaces secrets.
        max_bad: Share of malformed records that is still imported.
        tell: Told of progress.
    """

    part: str | None
    grades: Mapping[int, int]
    redactor: Redactor | None
    max_bad: float
    tell: Tell | None = None


def import_beir(source: Path, folder: Path, options: BeirOptions) -> ImportReport:
    """Turn a BEIR folder into a dataset folder.

    Args:
        source: The folder; it is only read.
        folder: Where to; it must not exist, or be empty.
        options: What is taken.

    Raises:
        DatasetError: If a file is missing, too many records are malformed, or what is left
            is no dataset; then nothing is written.
    """
    # Here, because NumPy comes with it, which the formats that stream do not need.
    from comis_eval.datasets.load import load_dataset

    judged, other = _judged_files(source, options.part)
    left: Counter[tuple[str, str]] = Counter()
    with new_folder(folder) as part:
        with FolderWriter(part, options.redactor) as writer:
            collection = CollectionWriter(
                writer,
                (source / CORPUS, source / QUERIES, source / QRELS),
                grades=options.grades,
                max_bad=options.max_bad,
            )
            collection.write(
                _records(source / CORPUS, left, "content", options.tell),
                _records(source / QUERIES, left, "text", options.tell),
                _judgments(judged),
            )
        write_header(_header(source, folder, collection, options), part / HEADER)
        try:
            dataset = load_dataset(part)  # what metadata claims may contradict itself
        except DatasetError as error:
            raise DatasetError(f"{folder} not written: {error}") from error
    notes = [*collection.notes, *(Note(*told, "left out") for told in _told(left))]
    notes += [Note(f"{QRELS}/{name}", "another file of judgments", "left out") for name in other]
    if options.redactor is not None:
        what = f"{writer.replaced} secrets found by pattern"
        notes.append(Note(source.name, what, "replaced by placeholders"))
    return ImportReport(
        collection.counts, tuple(notes), name=dataset.name, fingerprint=dataset.fingerprint
    )


def _judged_files(source: Path, part: str | None) -> tuple[dict[str, Path], list[str]]:
    """The files of judgments to read by split, and the names of the others."""
    if not source.is_dir():
        raise DatasetError(f"{source} is no folder; a BEIR set has {CORPUS}, {QUERIES}, {QRELS}/")
    there = sorted(path.name for path in (source / QRELS).glob("*.tsv"))
    wanted = [name for name in PARTS if f"{name}.tsv" in there and part in (None, name)]
    if not wanted:
        asked = f"{part}.tsv" if part else ", ".join(f"{name}.tsv" for name in PARTS)
        raise DatasetError(
            f"{source / QRELS} does not hold {asked}; it holds {', '.join(map(shown, there)) or 0}"
        )
    files = {PARTS[name]: source / QRELS / f"{name}.tsv" for name in wanted}
    return files, [name for name in there if name not in {path.name for path in files.values()}]


def _records(
    path: Path, left: Counter[tuple[str, str]], text_key: str, tell: Tell | None
) -> Iterator[Record]:
    """Read corpus or queries; lines that cannot be read come last."""
    complaints = Complaints()
    size = path.stat().st_size if path.is_file() else 0
    done = 0
    for number, text in read_lines(path, complaints):
        done += len(text)
        if tell is not None and number % 1000 == 0:
            tell(path.stem, min(done, size), size)
        yield _record(f"{path.name}:{number}", text, path.name, left, text_key)
    for where, why in unread(path, complaints):
        yield Record(where, None, why)


def _record(
    where: str, line: str, file: str, left: Counter[tuple[str, str]], text_key: str
) -> Record:
    try:
        value = decode_json(line)
    except UnreadableError as error:
        return Record(where, None, str(error))
    wrong = _wrong(value, text_key)
    if wrong is not None or not isinstance(value, dict):
        return Record(where, None, wrong or "")
    metadata = value.get("metadata") or {}
    own = metadata.get(OWN, {})
    left.update((file, key) for key in value if key not in _KEYS)
    left.update((file, f"metadata.{key}") for key in metadata if key != OWN)
    if text_key == "text":
        if (value.get("title") or "").strip():
            left[file, "title"] += 1
        content = value["text"]
    else:
        content = joined(value.get("title"), value.get("text"))
    return Record(where, {**own, "id": value["_id"], text_key: content})


def _wrong(value: object, text_key: str) -> str | None:
    """What is wrong with a line of corpus or queries; None: nothing."""
    if not isinstance(value, dict):
        return f"must be one JSON object, found {shown(value)}"
    if not isinstance(value.get("_id"), str):
        return f"_id is {shown(value.get('_id'))}; ids are always text"
    for key in ("title", "text"):
        if not isinstance(value.get(key), str | None):
            return f"{key} is {shown(value[key])}; it must be text"
    if text_key == "text" and value.get("text") is None:
        return "text is missing; it is required"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        return f"metadata is {shown(metadata)}; it must be an object"
    own = (metadata or {}).get(OWN, {})
    return (
        None if isinstance(own, dict) else f"metadata.{OWN} is {shown(own)}; it must be an object"
    )


def _judgments(files: Mapping[str, Path]) -> Iterator[Judged]:
    for part, path in files.items():
        complaints = Complaints()
        for number, text in read_lines(path, complaints):
            where = f"{QRELS}/{path.name}:{number}"
            try:
                words = next(csv.reader([text], delimiter="\t", strict=True))
            except csv.Error as error:
                yield Judged(where, why=f"{shown(text)} cannot be read: {error}")
                continue
            if number == 1:
                if tuple(words) != COLUMNS:
                    raise DatasetError(
                        f"{path}:1: must be {shown(chr(9).join(COLUMNS))}, found {shown(text)}"
                    )
            elif len(words) != len(COLUMNS):
                why = f"has {len(words)} columns, must have {len(COLUMNS)}: {' '.join(COLUMNS)}"
                yield Judged(where, why=why)
            else:
                yield Judged(where, words[0], words[1], words[2], part)
        for where, why in unread(path, complaints):
            yield Judged(f"{QRELS}/{where}", why=why)


def _header(
    source: Path, folder: Path, collection: CollectionWriter, options: BeirOptions
) -> dict[str, Any]:
    """What dataset.yaml says: what an export kept of it, else where it all comes from."""
    redact = options.redactor
    if (source / HEADER).exists():
        complaints = Complaints()
        kept = read_header(source / HEADER, complaints)
        if kept is None:
            raise DatasetError(f"{source}/{complaints.faults[0]}")
        header = header_of(kept)
        header.pop("labelled", None)
    else:
        header = {
            "name": name_of(folder, "beir"),
            "description": f"imported from the BEIR folder {source.name}; createdAt is the same "
            "for every document that came without",
            "licence": "not stated by the format; see the source",
            "judgedBy": "not stated by the format; see the source",
        }
    if redact is not None:
        for key in ("description", "licence", "judgedBy", "version"):
            if key in header:
                header[key] = redact.text(header[key])[0]
        if "categories" in header:
            header["categories"] = {
                redact.text(name)[0]: value for name, value in header["categories"].items()
            }
    splits = header.pop("splits", None)
    if options.part is None:
        splits = _splits(splits, collection)
        if splits:
            header["splits"] = {
                split: sorted(map(collection.writer.id, groups)) for split, groups in splits.items()
            }
    return header


def _splits(
    stated: Mapping[str, list[str]] | None, collection: CollectionWriter
) -> dict[str, list[str]] | None:
    """Fixed splits, without the groups of queries that were left out."""
    parts = {part: groups for part, groups in collection.groups.items() if part}
    used = set().union(*collection.groups.values())
    if stated is not None:
        return {split: [g for g in groups if g in used] for split, groups in stated.items()}
    if len(parts) < 2:
        return None
    placed: dict[str, str] = {}
    for part, groups in parts.items():
        for group in groups:
            if placed.setdefault(group, part) != part:
                raise DatasetError(
                    f"group {shown(group)} has queries in {placed[group]} and in {part}; import "
                    "one of them with --split"
                )
    return {part: list(groups) for part, groups in parts.items()}


def _told(left: Counter[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for (file, key), number in left.items():
        yield file, f"{number} records have {shown(key)}"
