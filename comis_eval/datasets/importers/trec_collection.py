"""A TREC collection: documents, topics and qrels, in a folder.

Documents are SGML (``<DOC>``, see :mod:`.sgml`) in a file or in every file of a folder, or
JSON, one a line; topics are SGML (``<top>``) or ``id<tab>text``. Decisions, besides those of
:mod:`.collection`:

- a document's content is its titles and texts in file order, a line feed between them; other
  elements are left out and counted;
- a query is one field of its topic, without ``Number:``, ``Topic:``, ``Description:`` or
  ``Narrative:`` in front;
- topics are known by their number, or by their place in the file where the qrels count so
  (Cranfield's do).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comis_eval.datasets.faults import Complaints, shown
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.importers import sgml
from comis_eval.datasets.importers.base import MAX_BAD, ImportReport, Note, Tell, name_of
from comis_eval.datasets.importers.collection import (
    CollectionWriter,
    Judged,
    Record,
    joined,
    unread,
)
from comis_eval.datasets.importers.folder import FolderWriter
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.importers.trec import QRELS_COLUMNS
from comis_eval.datasets.lines import UnreadableError, decode_json, read_columns, read_lines
from comis_eval.datasets.write import new_folder, write_header
from comis_eval.errors import DatasetError
from comis_eval.files import open_regular

DOCUMENTS = ("docs.trec", "docs.jsonl", "docs")
TOPICS = ("topics.trec", "topics.tsv", "topics.txt")
QRELS = ("qrels.txt", "qrels.trec", "qrels")
"""Where each is looked for; an export writes the first."""
TOPIC_FIELDS = {"title": "Topic", "desc": "Description", "narr": "Narrative"}
"""Fields of a topic, and the word that may stand in front of each."""

_TITLES = frozenset({"title", "headline", "hl", "head", "ttl"})
_TEXTS = frozenset({"text", "leadpara", "lp"})
_JSON_IDS = ("docno", "doc_id", "id", "_id")
_JSON_TEXTS = ("text", "contents", "content")
_NUMBER = re.compile(r"\A\s*Number:", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class TrecOptions:
    """What is taken, and how.

    Attributes:
        documents, topics, qrels: Files, seen from the source; None: the usual names.
        by_position: Whether topics are known by their place in the file, from 1.
        topic_field: Of TOPIC_FIELDS, what is asked.
        grades: What grades become.
        redactor: Replaces secrets.
        max_bad: Share of malformed records that is still imported.
        tell: Told of progress.
    """

    documents: Path | None = None
    topics: Path | None = None
    qrels: Path | None = None
    by_position: bool = False
    topic_field: str = "title"
    grades: Mapping[int, int] = field(default_factory=dict)
    redactor: Redactor | None = None
    max_bad: float = MAX_BAD
    tell: Tell | None = None


def import_trec(source: Path, folder: Path, options: TrecOptions) -> ImportReport:
    """Turn a TREC collection into a dataset folder.

    Args:
        source: The folder; it is only read.
        folder: Where to; it must not exist, or be empty.
        options: What is taken.

    Raises:
        DatasetError: If a file is missing, or too many records are malformed; then nothing
            is written.
    """
    if not source.is_dir():
        raise DatasetError(f"{source} is no folder; name the one with documents, topics, qrels")
    documents = _named(source, options.documents, DOCUMENTS, "--docs")
    topics = _named(source, options.topics, TOPICS, "--topics")
    qrels = _named(source, options.qrels, QRELS, "--qrels")
    left: Counter[str] = Counter()
    with new_folder(folder) as part:
        with FolderWriter(part, options.redactor) as writer:
            collection = CollectionWriter(
                writer,
                (documents, topics, qrels),
                grades=options.grades,
                max_bad=options.max_bad,
                hint=""
                if options.by_position
                else "; if the qrels count topics in file order, say --topics-by-position",
            )
            collection.write(
                _documents(documents, left, options.tell), _topics(topics, options), _judged(qrels)
            )
        write_header(_header(source, folder), part / HEADER)
    notes = [*collection.notes]
    notes += [
        Note(documents.name, f"{number} documents have {what}", "left out")
        for what, number in sorted(left.items())
    ]
    if options.redactor is not None:
        what = f"{writer.replaced} secrets found by pattern"
        notes.append(Note(source.name, what, "replaced by placeholders"))
    return ImportReport(collection.counts, tuple(notes), name=name_of(folder, "trec"))


def _named(source: Path, stated: Path | None, usual: tuple[str, ...], option: str) -> Path:
    if stated is not None:
        return source / stated
    there = next((source / name for name in usual if (source / name).exists()), None)
    if there is None:
        raise DatasetError(f"{source} holds none of {', '.join(usual)}; say which with {option}")
    return there


def _header(source: Path, folder: Path) -> dict[str, Any]:
    return {
        "name": name_of(folder, "trec"),
        "description": f"imported from the TREC collection {source.name}; createdAt is the same "
        "for every document",
        "licence": "not stated by the format; see the source",
        "judgedBy": "not stated by the format; see the source",
    }


def _documents(path: Path, left: Counter[str], tell: Tell | None) -> Iterator[Record]:
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    before = 0
    for file, size in zip(files, sizes, strict=True):
        told = file.relative_to(path).as_posix() if path.is_dir() else path.name
        if file.suffix == ".jsonl":
            yield from _json_documents(file, told, left)
        else:
            for element in sgml.read_elements(file, "DOC"):
                yield _document(element, told, left)
                if tell is not None:
                    tell("documents", before + element.done, sum(sizes))
        before += size


def _document(element: sgml.Element, file: str, left: Counter[str]) -> Record:
    where = f"{file}:{element.line}"
    if element.text is None:
        return Record(where, None, element.why)
    own: str | None = None
    titles: list[str] = []
    texts: list[str] = []
    others: set[str] = set()
    for name, raw in sgml.fields(element.text):
        if name == "docno":
            if own is not None:
                return Record(where, None, "has two DOCNO")
            own = sgml.plain(raw)
        elif name in _TITLES or name in _TEXTS:
            (titles if name in _TITLES else texts).append(sgml.plain(raw))
            if sgml.has_markup(raw):
                others.add("markup inside their text")
        else:
            others.add(f"an element <{name}>")
    if not own:
        return Record(where, None, "has no DOCNO")
    left.update(others)
    title = "\n".join(text for text in titles if text)
    text = "\n".join(text for text in texts if text)
    return Record(where, {"id": own, "content": joined(title, text)})


def _json_documents(path: Path, file: str, left: Counter[str]) -> Iterator[Record]:
    complaints = Complaints()
    for number, line in read_lines(path, complaints):
        yield _json_document(f"{file}:{number}", line, left)
    for where, why in unread(path, complaints):
        yield Record(where, None, why)


def _json_document(where: str, line: str, left: Counter[str]) -> Record:
    try:
        value = decode_json(line)
    except UnreadableError as error:
        return Record(where, None, str(error))
    if not isinstance(value, dict):
        return Record(where, None, f"must be one JSON object, found {shown(value)}")
    own = next((key for key in _JSON_IDS if key in value), None)
    body = next((key for key in _JSON_TEXTS if key in value), None)
    if own is None or body is None:
        return Record(where, None, f"needs one of {', '.join(_JSON_IDS)} and a text")
    title, text = value.get("title"), value[body]
    if not isinstance(value[own], str):
        return Record(where, None, f"{own} is {shown(value[own])}; ids are always text")
    if not isinstance(title, str | None) or not isinstance(text, str | None):
        return Record(where, None, f"title and {body} must be text")
    left.update(f"a key {shown(key)}" for key in value if key not in (own, body, "title"))
    return Record(where, {"id": value[own], "content": joined(title, text)})


def _topics(path: Path, options: TrecOptions) -> Iterator[Record]:
    if _begins_with_markup(path):
        read = _sgml_topics(path, options.topic_field)
    else:
        read = _tsv_topics(path)
    for place, record in enumerate(read, start=1):
        if not options.by_position:
            yield record
        elif record.row is None:
            raise DatasetError(
                f"{record.where}: {record.why}; topics are counted by place, so all must be sound"
            )
        else:
            yield Record(record.where, record.row | {"id": str(place)})


def _begins_with_markup(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(1000).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error


def _sgml_topics(path: Path, asked: str) -> Iterator[Record]:
    prefix = re.compile(rf"\A\s*{TOPIC_FIELDS[asked]}:", re.IGNORECASE)
    for element in sgml.read_elements(path, "top"):
        where = f"{path.name}:{element.line}"
        if element.text is None:
            yield Record(where, None, element.why)
            continue
        told: dict[str, str] = {}
        for name, raw in sgml.fields(element.text):
            told.setdefault(name, raw)
        if "num" not in told or asked not in told:
            lacking = "num" if "num" not in told else f"{asked} (see --topic-field)"
            yield Record(where, None, f"has no {lacking}; it has {', '.join(told) or 'nothing'}")
            continue
        own = sgml.plain(_NUMBER.sub("", told["num"], count=1))
        text = sgml.plain(prefix.sub("", told[asked], count=1))
        yield Record(where, {"id": own, "text": text})


def _tsv_topics(path: Path) -> Iterator[Record]:
    complaints = Complaints()
    for number, line in read_lines(path, complaints):
        where = f"{path.name}:{number}"
        words = line.split("\t")
        if len(words) == 2:
            yield Record(where, {"id": words[0].strip(), "text": words[1]})
        else:
            yield Record(where, None, f"has {len(words)} columns, must have 2: id, text")
    for where, why in unread(path, complaints):
        yield Record(where, None, why)


def _judged(path: Path) -> Iterator[Judged]:
    complaints = Complaints()
    for number, (query_id, _, document_id, grade) in read_columns(path, QRELS_COLUMNS, complaints):
        yield Judged(f"{path.name}:{number}", query_id, document_id, grade)
    for where, why in unread(path, complaints):
        yield Judged(where, why=why)
