"""What the dataset adds to a report: texts, trust and grades; without it there are ids only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from comis_eval.datasets import Dataset, load_dataset
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.text import printable
from comis_eval.types import Memory, Query


@dataclass(frozen=True, eq=False)
class Texts:
    """The queries, memories and grades of an evaluated dataset, by id."""

    queries: Mapping[str, Query]
    memories: Mapping[str, Memory]
    grades: Mapping[str, Mapping[str, int]]


def texts_of(path: str | Path, evaluation: Evaluation) -> Texts:
    """Load the dataset that an evaluation was made on.

    Raises:
        EvaluationError: If it is another one, or the same name with other content.
        DatasetError: If it cannot be loaded.
    """
    dataset = load_dataset(path)
    found, wanted = dataset.fingerprint, str(evaluation.dataset.get("fingerprint"))
    if found != wanted:
        raise EvaluationError(
            f"--dataset {path}: '{dataset.name}' has fingerprint {found[:12]}, the evaluation was "
            f"made on '{printable(str(evaluation.dataset.get('name')), limit=64)}' with "
            f"{printable(wanted, limit=13)}; name that dataset, or evaluate this one again"
        )
    lacking = [query_id for query_id in evaluation.query_ids if query_id not in dataset.position_of]
    if lacking:
        raise EvaluationError(
            f"the evaluation holds query '{printable(lacking[0], limit=40)}', which the dataset "
            f"'{dataset.name}' does not have; evaluate again with --out"
        )
    return _texts(dataset)


def _texts(dataset: Dataset) -> Texts:
    grades: dict[str, dict[str, int]] = {query.id: {} for query in dataset.queries}
    judged = dataset.judgments
    for query, row, grade in zip(judged.queries, judged.rows, judged.grades, strict=True):
        grades[dataset.queries[query].id][dataset.memories[row].id] = int(grade)
    return Texts(
        {query.id: query for query in dataset.queries},
        {memory.id: memory for memory in dataset.memories},
        grades,
    )
