"""TREC: docs.trec and topics.trec (SGML) and qrels.txt.

Only ids, texts and grades have a place there. Texts are escaped (:mod:`..importers.sgml`) so
that they read back to the character; ids with markup characters are refused, because other
tools compare them with the qrels as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.exporters.base import (
    CARD,
    ExportReport,
    Loss,
    check_encodes,
    graded,
    losses,
    place,
    write_card,
    write_lines,
)
from comis_eval.datasets.importers import sgml
from comis_eval.datasets.importers.trec import Run, write_qrels, write_run
from comis_eval.datasets.importers.trec_collection import DOCUMENTS, QRELS, TOPICS
from comis_eval.datasets.write import new_folder
from comis_eval.errors import DatasetError

RUN = "run.txt"


def export_trec(dataset: Dataset, folder: Path, run: Run | None = None) -> ExportReport:
    """Write a dataset as a TREC collection.

    Args:
        dataset: What is written.
        folder: Where to; it must not exist, or be empty.
        run: Rankings to write beside it.

    Raises:
        DatasetError: If nobody judged the dataset, or an id or text cannot be written; then
            there is no folder.
    """
    dataset.check_labelled()
    told = [*losses(dataset, "left out", in_header="left out")]
    unjudged = len(dataset.queries) - len({query_id for query_id, _, _ in graded(dataset)})
    if unjudged:
        done = "in topics alone: qrels do not say that nothing is relevant"
        told.append(Loss("queries without a judgment", unjudged, done))
    tenants = {memory.tenancy for memory in dataset.memories}
    if len(tenants) > 1:
        told.append(Loss("tenancies", len(tenants), "one corpus: every query searches all"))
    with new_folder(folder) as part:
        counts = {
            DOCUMENTS[0]: write_lines(part / DOCUMENTS[0], _documents(dataset)),
            TOPICS[0]: write_lines(part / TOPICS[0], _topics(dataset)),
            QRELS[0]: len(dataset.judgments),
        }
        qrels: dict[str, dict[str, int]] = {}
        for query_id, memory_id, grade in graded(dataset):
            qrels.setdefault(query_id, {})[memory_id] = grade
        write_qrels(qrels, part / QRELS[0])
        if run is not None:
            write_run(run, part / RUN)
            counts[RUN] = sum(map(len, run.rankings.values()))
        report = ExportReport(counts, tuple(told))
        write_card(dataset, report, part / CARD)
    return report


def _documents(dataset: Dataset) -> Iterator[str]:
    for memory in dataset.memories:
        where = place("memory", memory.id)
        own, text = _id(where, memory.id), _text(where, memory.content)
        yield f"<DOC>\n<DOCNO>{own}</DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"


def _topics(dataset: Dataset) -> Iterator[str]:
    for query in dataset.queries:
        where = place("query", query.id)
        own, text = _id(where, query.id), _text(where, query.text)
        if text.casefold().startswith("topic:"):  # readers take that for a label
            text = f"&#{ord(text[0])};{text[1:]}"
        yield (
            f"<top>\n\n<num> Number: {own}\n<title> {text}\n\n"
            "<desc> Description:\n\n<narr> Narrative:\n\n</top>\n\n"
        )


def _text(where: str, text: str) -> str:
    escaped = sgml.escape(check_encodes(where, text))
    if len(escaped.encode()) > sgml.MAX_ELEMENT_BYTES - 1000:
        raise DatasetError(
            f"{where}: its text is {len(escaped)} characters as SGML, more than a reader takes"
        )
    return escaped


def _id(where: str, own: str) -> str:
    if any(character in own for character in "<>&"):
        raise DatasetError(
            f"{where}: the id holds one of < > &, which TREC tools do not read back; "
            "rename it, or export --as beir"
        )
    return check_encodes(where, own)
