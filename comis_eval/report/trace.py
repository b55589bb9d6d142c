"""The trace of an evaluation: every candidate's way through a recall, read back and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES
from comis_eval.config import LANES
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.evaluation import trace as traces
from comis_eval.stages.score import Signals
from comis_eval.text import printable

FACTORS = Signals._fields
"""The boosts, in the order in which they multiply."""

_NUMBERS = ("fused", "reranker", "base", *FACTORS, "final")
_MAX_BYTES = 1 << 32


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One row a (query, candidate) pair; a query's rows stand together, in its final order.

    Attributes:
        starts, ends: Where each query's rows begin and end, shape (q,).
        memory_ids: Shape (n,).
        ranks: By lane that ran: rank from 1, 0 where it is lacking, shape (n,).
        numbers: fused, reranker (NaN: not asked), base, a factor a boost, final; each (n,).
        fates: Shape (n,).
        deduped_by: Id of the memory that stayed instead; None for most. Shape (n,).
    """

    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    memory_ids: tuple[str, ...]
    ranks: Mapping[str, NDArray[np.int64]]
    numbers: Mapping[str, NDArray[np.float64]]
    fates: tuple[str, ...]
    deduped_by: tuple[str | None, ...]

    def rows(self, query: int) -> slice:
        """Where a query's candidates are, by its position in the evaluation."""
        return slice(int(self.starts[query]), int(self.ends[query]))


def trace_of(evaluation: Evaluation, path: Path | None = None) -> Trace | None:
    """The trace of an evaluation; None when there is none at hand.

    Args:
        evaluation: Just made, or read from a file.
        path: The file it was read from; its trace lies beside it.

    Raises:
        EvaluationError: If the trace is not the one that the evaluation was written with.
    """
    if evaluation.rankings is not None:
        columns = traces.columns(evaluation.rankings)
        told = {name: _listed(column) for name, column in columns.items()}
        return _checked(told, evaluation.query_ids)
    if evaluation.trace is None or path is None:
        return None
    beside = _beside(path, evaluation.trace)
    if not beside.is_file():
        return None
    if beside.stat().st_size > _MAX_BYTES:
        raise EvaluationError(f"{beside}: larger than {_MAX_BYTES >> 30} GiB; not a trace")
    held = beside.read_bytes()
    if hashlib.sha256(held).hexdigest() != evaluation.trace["sha256"]:
        raise EvaluationError(
            f"{beside}: its sha256 is not the one that {path.name} was written with; keep the two "
            "files together, or evaluate again with --out"
        )
    try:
        return _checked(_columns(held), evaluation.query_ids)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise EvaluationError(
            f"{beside}: not a trace ({printable(str(error), limit=120)}); evaluate again with --out"
        ) from error


def _beside(path: Path, held: Mapping[str, Any]) -> Path:
    name = held.get("file")
    if not isinstance(name, str) or not isinstance(held.get("sha256"), str):
        raise EvaluationError(f"{path}: trace must hold file and sha256; evaluate again with --out")
    # The name is somebody's text: it may not lead anywhere else.
    if Path(name).name != name or name in ("", ".", "..") or "\0" in name:
        raise EvaluationError(
            f"{path}: trace.file is '{printable(name, limit=60)}'; it must be the name of a file "
            "in the same folder"
        )
    return path.with_name(name)


def _columns(held: bytes) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(BytesIO(held))
        return {name: table.column(name).to_pylist() for name in table.column_names}
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error


def _listed(column: Any) -> list[Any]:
    """A column of numpy's as plain values, None where it is masked."""
    listed: list[Any] = column.tolist()
    return listed


def _checked(columns: Mapping[str, Sequence[Any]], query_ids: Sequence[str]) -> Trace:
    place_of = {query_id: place for place, query_id in enumerate(query_ids)}
    unknown = next((q for q in columns["query_id"] if q not in place_of), None)
    if unknown is not None:
        raise ValueError(f"holds query {unknown!r}, which the evaluation does not")
    queries = np.array([place_of[q] for q in columns["query_id"]], dtype=np.intp)
    first = np.flatnonzero(np.diff(queries, prepend=-1))
    starts, ends = np.zeros((2, len(query_ids)), dtype=np.intp)
    starts[queries[first]], ends[queries[first]] = first, np.append(first[1:], len(queries))
    places = np.arange(len(queries)) - starts[queries] + 1
    together = len(np.unique(queries)) == len(first)
    if not together or (places != _whole("place", columns["place"])).any():
        raise ValueError("its rows are out of order")
    ranks = {lane: f"{lane}_rank" for lane in LANES if f"{lane}_rank" in columns}
    known = {str(fate) for fate in FATES}
    strange = next((fate for fate in columns["fate"] if fate not in known), None)
    if strange is not None:
        raise ValueError(f"holds the fate {strange!r}")
    return Trace(
        starts=starts,
        ends=ends,
        memory_ids=_texts("memory_id", columns["memory_id"]),
        ranks={lane: _whole(name, columns[name]) for lane, name in ranks.items()},
        numbers={name: _numbers(name, columns[name]) for name in _NUMBERS},
        fates=_texts("fate", columns["fate"]),
        deduped_by=tuple(None if by is None else str(by) for by in columns["deduped_by"]),
    )


def _texts(name: str, column: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in column):
        raise TypeError(f"{name} must hold texts")
    return tuple(column)


def _whole(name: str, column: Sequence[Any]) -> NDArray[np.int64]:
    if not all(value is None or type(value) is int for value in column):
        raise TypeError(f"{name} must hold whole numbers")
    return np.array([value or 0 for value in column], dtype=np.int64)


def _numbers(name: str, column: Sequence[Any]) -> NDArray[np.float64]:
    if not all(value is None or type(value) is float for value in column):
        raise TypeError(f"{name} must hold numbers")
    return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
