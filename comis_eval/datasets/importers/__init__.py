"""Importers: one file a format; each takes a source and makes a dataset folder, or a dataset.

A format is a line of ``FORMATS``: its name, what the command line must know of it, and a
function from a :class:`Request` to an :class:`ImportReport`. Counts, malformed records and
the folder that is there whole or not at all are in :mod:`.base` and
:func:`~comis_eval.datasets.write.new_folder`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from comis_eval.datasets.importers.base import (
    MAX_BAD,
    BadRecords,
    Count,
    ImportReport,
    Note,
    Tell,
)
from comis_eval.datasets.importers.beir import PARTS, BeirOptions, import_beir
from comis_eval.datasets.importers.comis import ComisOptions, import_comis
from comis_eval.datasets.importers.longmemeval import (
    UNITS,
    LongMemEvalOptions,
    import_longmemeval,
)
from comis_eval.datasets.importers.redact import Redactor
from comis_eval.datasets.importers.trec_collection import TOPIC_FIELDS, TrecOptions, import_trec
from comis_eval.errors import DatasetError

if TYPE_CHECKING:
    from comis_eval.datasets.importers.locomo import import_locomo
    from comis_eval.datasets.importers.recall_trace import TraceOptions, import_recall_trace


@dataclass(frozen=True, kw_only=True)
class Request:
    """What somebody asks of an importer; a format refuses the options it does not know.

    Attributes:
        source: What is imported.
        folder: The dataset folder to make.
        redactor: What replaces secrets; None: nothing is replaced.
        max_bad: Share of malformed records that stops the import; None: MAX_BAD.
        tenant, agent: Whose memories; None: everybody's.
        no_embeddings: Whether vectors are left out.
        database, query_log, usefulness: What a trace is joined with.
        unit: What becomes a memory of LongMemEval; None: a session.
        split: The only file of BEIR's judgments; None: all.
        docs, topics, qrels: A TREC collection's files, seen from the source; None: the usual.
        topics_by_position: Whether its qrels count topics in file order.
        topic_field: What of a topic is asked; None: the title.
        grades: What grades become, (from, to).
        tell: Told of progress.
    """

    source: Path
    folder: Path
    redactor: Redactor | None = None
    max_bad: float | None = None
    tenant: str | None = None
    agent: str | None = None
    no_embeddings: bool = False
    database: Path | None = None
    query_log: Path | None = None
    usefulness: Path | None = None
    unit: str | None = None
    split: str | None = None
    docs: Path | None = None
    topics: Path | None = None
    qrels: Path | None = None
    topics_by_position: bool = False
    topic_field: str | None = None
    grades: tuple[tuple[int, int], ...] = ()
    tell: Tell | None = None

    @property
    def allowed(self) -> float:
        """Share of malformed records that is still imported."""
        return MAX_BAD if self.max_bad is None else self.max_bad

    @property
    def comis(self) -> ComisOptions:
        """What of it concerns a database."""
        return ComisOptions(
            tenant=self.tenant,
            agent=self.agent,
            embeddings=not self.no_embeddings,
            redactor=self.redactor,
            max_bad=self.allowed,
            workers=os.cpu_count() or 1,
            tell=self.tell,
        )


class Format(NamedTuple):
    """One format.

    Attributes:
        run: Imports.
        options: The fields of a Request, besides source and folder, that it heeds.
    """

    run: Callable[[Request], ImportReport]
    options: frozenset[str] = frozenset()


def _comis(request: Request) -> ImportReport:
    return import_comis(request.source, request.folder, request.comis)


def _locomo(request: Request) -> ImportReport:
    from comis_eval.datasets.importers.locomo import import_locomo
    from comis_eval.datasets.write import write_dataset

    dataset, report = import_locomo(request.source)
    if request.max_bad is not None and report.dropped_share > request.max_bad:
        raise DatasetError(
            f"{request.source}: {report.dropped_share:.3%} of the records cannot be used, more "
            f"than --max-bad {request.max_bad:g}; nothing was imported"
        )
    write_dataset(dataset, request.folder)
    return replace(report, name=dataset.name, fingerprint=dataset.fingerprint)


def _recall_trace(request: Request) -> ImportReport:
    if request.database is None:
        raise DatasetError(
            f"{request.source}: a trace names memories by id only; say which database has them: "
            "--database memory.db"
        )
    from comis_eval.datasets.importers.recall_trace import TraceOptions, import_recall_trace

    options = TraceOptions(
        database=request.database,
        query_log=request.query_log,
        usefulness=request.usefulness,
        comis=request.comis,
    )
    return import_recall_trace(request.source, request.folder, options)


def _longmemeval(request: Request) -> ImportReport:
    options = LongMemEvalOptions(
        request.unit or UNITS[0], request.redactor, request.allowed, request.tell
    )
    return import_longmemeval(request.source, request.folder, options)


def _beir(request: Request) -> ImportReport:
    options = BeirOptions(
        request.split, dict(request.grades), request.redactor, request.allowed, request.tell
    )
    return import_beir(request.source, request.folder, options)


def _trec(request: Request) -> ImportReport:
    options = TrecOptions(
        documents=request.docs,
        topics=request.topics,
        qrels=request.qrels,
        by_position=request.topics_by_position,
        topic_field=request.topic_field or "title",
        grades=dict(request.grades),
        redactor=request.redactor,
        max_bad=request.allowed,
        tell=request.tell,
    )
    return import_trec(request.source, request.folder, options)


_ANY = frozenset({"redactor", "max_bad"})
_DATABASE = _ANY | frozenset({"tenant", "agent", "no_embeddings"})
FORMATS: dict[str, Format] = {
    "locomo": Format(_locomo, frozenset({"max_bad"})),
    "longmemeval": Format(_longmemeval, _ANY | {"unit"}),
    "beir": Format(_beir, _ANY | {"split", "grades"}),
    "trec": Format(
        _trec, _ANY | {"docs", "topics", "qrels", "topics_by_position", "topic_field", "grades"}
    ),
    "comis": Format(_comis, _DATABASE),
    "recall-trace": Format(_recall_trace, _DATABASE | {"database", "query_log", "usefulness"}),
}
"""By the FORMAT of ``comis-eval import FORMAT SOURCE --out DIR``."""

_HOMES = {
    "TraceOptions": "recall_trace",
    "import_locomo": "locomo",
    "import_recall_trace": "recall_trace",
}
"""Names that are imported when they are first used, and their modules."""

__all__ = [
    "FORMATS",
    "MAX_BAD",
    "PARTS",
    "TOPIC_FIELDS",
    "UNITS",
    "BadRecords",
    "BeirOptions",
    "ComisOptions",
    "Count",
    "Format",
    "ImportReport",
    "LongMemEvalOptions",
    "Note",
    "Redactor",
    "Request",
    "TraceOptions",
    "TrecOptions",
    "import_beir",
    "import_comis",
    "import_locomo",
    "import_longmemeval",
    "import_recall_trace",
    "import_trec",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
