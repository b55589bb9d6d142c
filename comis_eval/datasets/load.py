"""From a dataset folder to a :class:`~comis_eval.datasets.dataset.Dataset`, or every fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from comis_eval.datasets.checks import check_contents, check_folder
from comis_eval.datasets.contents import FILES, Contents, hash_embeddings, read_contents
from comis_eval.datasets.dataset import Dataset
from comis_eval.datasets.faults import Complaints, Fault, listed
from comis_eval.datasets.fields import NAME
from comis_eval.datasets.header import FILE as HEADER
from comis_eval.datasets.header import Header
from comis_eval.datasets.judgments import Judgments
from comis_eval.errors import DatasetError

SHIPPED = Path(__file__).parents[2] / "datasets"
"""Where the datasets of a source checkout stand."""


@dataclass(frozen=True, eq=False)
class Report:
    """What was found in a dataset folder.

    Attributes:
        folder: The folder read.
        faults: Why it cannot be used, by file and line.
        warnings: What is allowed but probably not meant, by file and line.
        dataset: What was read; None when there are faults.
    """

    folder: Path
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    dataset: Dataset | None


def load_dataset(path_or_name: str | Path, *, labelled: bool = True) -> Dataset:
    """Read a dataset.

    Args:
        path_or_name: A dataset folder, or the name of one in ``datasets/`` of the working
            directory or of this source checkout.
        labelled: False also takes one that is still to be judged, see :func:`validate`.

    Returns:
        The dataset, checked whole.

    Raises:
        DatasetError: If there is no such folder, or anything in it is wrong; the message
            lists every fault (the first 50 in full) by file and line.
    """
    report = validate(path_or_name, labelled=labelled)
    if report.dataset is None:
        raise DatasetError(_told(report))
    return report.dataset


def validate(path_or_name: str | Path, *, labelled: bool = True) -> Report:
    """Read a dataset and report everything that is wrong or odd in it, by file and line.

    Args:
        path_or_name: As :func:`load_dataset` takes it.
        labelled: False lets qrels.tsv be missing, and the judgments not yet say of each
            query what its ``answerable`` says; all else is asked as always.

    Raises:
        DatasetError: If there is no such folder.
    """
    folder = _folder(path_or_name)
    complaints = Complaints()
    contents = read_contents(folder, complaints, labelled=labelled)
    check_contents(contents, complaints, labelled=labelled)
    check_folder(folder, complaints)
    faults = _in_file_order(complaints.faults)
    dataset = None
    if contents.header is not None and not faults:
        dataset = _build(folder, contents, contents.header)
    return Report(folder, faults, _in_file_order(complaints.warnings), dataset)


def _build(folder: Path, contents: Contents, header: Header) -> Dataset:
    memories, queries = contents.memories.records, contents.queries.records
    row_of = {memory.id: row for row, memory in enumerate(memories)}
    position_of = {query.id: position for position, query in enumerate(queries)}
    triples = [
        (position_of[query_id], row_of[memory_id], grade)
        for _, query_id, memory_id, grade in contents.judgments or ()
        if grade is not None
    ]
    return Dataset(
        name=header.name,
        version=header.version,
        licence=header.licence,
        description=header.description,
        judged_by=header.judged_by,
        policy=header.policy,
        categories=header.categories,
        splits=header.splits,
        memories=tuple(memories),
        queries=tuple(queries),
        judgments=Judgments.of(triples, n_queries=len(queries)),
        attacks=tuple(contents.attacks.records),
        links=tuple(contents.links.records),
        edges=tuple(contents.edges.records),
        usefulness=dict(contents.usefulness.records),
        embeddings=hash_embeddings(folder),
        folder=folder,
        labelled=header.labelled,
    )


def _folder(path_or_name: str | Path) -> Path:
    """Find the folder: a path that exists, else a name among the known datasets."""
    path = Path(path_or_name)
    if path.is_dir():
        return path
    if path.exists():
        raise DatasetError(
            f"{path} is a file; a dataset is a folder with {HEADER} "
            "(make one with `comis-eval import`)"
        )
    homes = [Path("datasets"), SHIPPED]
    if NAME.fullmatch(str(path_or_name)):
        for home in homes:
            if (home / path).is_dir():
                return home / path
    known = sorted({found.parent.name for home in homes for found in home.glob(f"*/{HEADER}")})
    raise DatasetError(
        f"no dataset {str(path_or_name)!r}: neither a folder nor a name in datasets/; "
        f"known names: {', '.join(known) or 'none'} (looked in {Path('datasets').absolute()}; "
        "run in the checkout or give the whole path)"
    )


def _in_file_order(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    known = {file: number for number, file in enumerate(FILES)}
    return tuple(sorted(faults, key=lambda f: (known.get(f.file, len(known)), f.file, f.line or 0)))


def _told(report: Report) -> str:
    if len(report.faults) == 1:
        return f"{report.folder}/{report.faults[0]}"
    return f"{report.folder} has {len(report.faults)} faults:\n{listed(report.faults)}"
