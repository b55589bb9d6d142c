"""The trace of an evaluation: every candidate's way through a recall, read back and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES
from comis_eval.config import LANES
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, trace
from comis_eval.stages.score import Signals
from comis_eval.text import printable

if TYPE_CHECKING:
    import pyarrow as pa

FACTORS = Signals._fields
"""The boosts, in the order in which they multiply."""

_NUMBERS = ("fused", "reranker", "base", *FACTORS, "final")


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


def trace_of(evaluation: Evaluation, path: Path) -> Trace | None:
    """The trace beside an evaluation file; None when there is none.

    Args:
        evaluation: As it was read, its queries in any order.
        path: The file it was read from.

    Raises:
        EvaluationError: If the trace is not the one that the evaluation was written with.
    """
    if evaluation.trace is None:
        return None
    if not trace.beside(evaluation, path).is_file():
        return None
    place, held = trace.whole(evaluation, path)
    try:
        return _checked(_table(held), evaluation.query_ids)
    except ValueError as error:
        raise EvaluationError(
            f"{place}: not a trace ({printable(str(error), limit=120)}); evaluate again with --out"
        ) from error


def _table(held: bytes) -> pa.Table:
    """The columns that are shown, each of its type; a rank or number that is lacking is null."""
    import pyarrow as pa

    lanes = [f"{lane}_rank" for lane in LANES]
    types = {
        **dict.fromkeys(("query_id", "memory_id", "fate", "deduped_by"), pa.string()),
        **dict.fromkeys(("place", *lanes), pa.int64()),
        **dict.fromkeys(_NUMBERS, pa.float64()),
    }
    try:
        file = trace.opened(held)
        there = [name for name in types if name in file.schema_arrow.names]
        lacking = [name for name in types if name not in (*there, *lanes)]
        if lacking:
            raise ValueError(f"it lacks {', '.join(lacking)}")
        table = file.read(columns=there)
        return table.select(there).cast(pa.schema([(name, types[name]) for name in there]))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from error


def _checked(table: pa.Table, query_ids: Sequence[str]) -> Trace:
    place_of = {query_id: place for place, query_id in enumerate(query_ids)}
    asked = _texts(table, "query_id")
    unknown = next((query_id for query_id in asked if query_id not in place_of), None)
    if unknown is not None:
        raise ValueError(f"holds query {unknown!r}, which the evaluation does not")
    queries = np.array([place_of[query_id] for query_id in asked], dtype=np.intp)
    first = np.flatnonzero(np.diff(queries, prepend=-1))
    starts, ends = np.zeros((2, len(query_ids)), dtype=np.intp)
    starts[queries[first]], ends[queries[first]] = first, np.append(first[1:], len(queries))
    places = np.arange(len(queries)) - starts[queries] + 1
    together = len(np.unique(queries)) == len(first)
    if not together or (places != _whole(table, "place")).any():
        raise ValueError("its rows are out of order")
    fates = _texts(table, "fate")
    strange = set(fates).difference(map(str, FATES))
    if strange:
        raise ValueError(f"holds the fate {min(strange)!r}")
    return Trace(
        starts=starts,
        ends=ends,
        memory_ids=_texts(table, "memory_id"),
        ranks={
            lane: _whole(table, f"{lane}_rank")
            for lane in LANES
            if f"{lane}_rank" in table.column_names
        },
        numbers={name: _numbers(table, name) for name in _NUMBERS},
        fates=fates,
        deduped_by=tuple(table["deduped_by"].to_pylist()),
    )


def _texts(table: pa.Table, name: str) -> tuple[str, ...]:
    if table[name].null_count:
        raise ValueError(f"{name} has gaps")
    return tuple(table[name].to_pylist())


def _whole(table: pa.Table, name: str) -> NDArray[np.int64]:
    return np.asarray(table[name].fill_null(0).to_numpy(), dtype=np.int64)


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    numbers = np.asarray(table[name].fill_null(np.nan).to_numpy(), dtype=np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"{name} holds an infinite number")
    return numbers
