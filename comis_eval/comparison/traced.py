"""A query's way through the stages, read back from the trace beside an evaluation file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from comis_eval.comparison.way import Ids, RankedWay, Reranked, Way, best_first
from comis_eval.config import LANES
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, trace
from comis_eval.text import printable
from comis_eval.types import Fate

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = {
    "query_id": "string", "memory_id": "string", "place": "int64", "fused_place": "int64",
    "rerank": "string", "rerank_reason": "string", "in_pool": "bool", "reranker": "float64",
    "scored_place": "int64", "fate": "string",
}  # fmt: skip
_ALWAYS = ("memory_id", "place", "rerank", "rerank_reason", "in_pool", "fate")
_RANKED = (Fate.INCLUDED, Fate.OVER_BUDGET, Fate.BEYOND_MAX_RESULTS)
"""Fates of what trust filter and dedup let through."""

Row = Mapping[str, Any]


class TracedWay(NamedTuple):
    """The way of one query, as its rows of a trace tell it.

    Attributes:
        rows: In final order; none when no lane found anything.
    """

    rows: Sequence[Row] = ()

    def lane(self, name: str) -> Ids:
        """See :class:`~comis_eval.comparison.way.Way`."""
        return self._by(f"{name}_rank")

    def fused(self) -> Ids:
        """See :class:`~comis_eval.comparison.way.Way`."""
        return self._by("fused_place")

    def reranked(self) -> Reranked:
        """See :class:`~comis_eval.comparison.way.Way`; ``unknown`` without any candidate."""
        if not self.rows:
            return Reranked("unknown", "no candidates", ())
        pool = [row for row in self.rows if row["in_pool"]]
        ids = [row["memory_id"] for row in pool]
        scores = [0.0 if row["reranker"] is None else row["reranker"] for row in pool]
        first = self.rows[0]
        answers = best_first(zip(ids, scores, strict=True))
        return Reranked(first["rerank"], first["rerank_reason"], answers)

    def scored(self) -> Ids:
        """See :class:`~comis_eval.comparison.way.Way`."""
        return self._by("scored_place")

    def filtered(self) -> Ids:
        """See :class:`~comis_eval.comparison.way.Way`."""
        taken = [row for row in self.rows if row["fate"] == Fate.TRUST_FILTERED]
        return TracedWay(taken).scored()

    def ranking(self) -> Ids:
        """See :class:`~comis_eval.comparison.way.Way`."""
        return self._of(*_RANKED)

    def context(self) -> Ids:
        """See :class:`~comis_eval.comparison.way.Way`."""
        return self._of(Fate.INCLUDED)

    def _by(self, column: str) -> Ids:
        there = [row for row in self.rows if row.get(column)]
        return tuple(row["memory_id"] for row in sorted(there, key=lambda row: row[column]))

    def _of(self, *fates: Fate) -> Ids:
        return tuple(row["memory_id"] for row in self.rows if row["fate"] in fates)


def ways_of(
    evaluation: Evaluation, path: Path | None, query_ids: Collection[str]
) -> dict[str, Way]:
    """Return the ways of some queries of an evaluation.

    Args:
        evaluation: Just made, or read from a file.
        path: The file it was read from: its trace lies beside it.
        query_ids: Which queries; all of them are the evaluation's.

    Raises:
        EvaluationError: If there is no trace, or not the one it was written with.
    """
    if evaluation.rankings is not None:
        rankings = evaluation.rankings
        place_of = {query.id: place for place, query in enumerate(rankings.table.queries)}
        return {query_id: RankedWay(rankings, place_of[query_id]) for query_id in query_ids}
    if evaluation.trace is None or path is None:
        raise EvaluationError("it was stored without a trace")
    return {
        **dict.fromkeys(query_ids, TracedWay()),
        **_read(*trace.whole(evaluation, path), query_ids),
    }


def _read(path: Path, held: bytes, query_ids: Collection[str]) -> dict[str, TracedWay]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        file = trace.opened(held)
        lacking = [name for name in _KINDS if name not in file.schema_arrow.names]
        if lacking:
            raise EvaluationError(
                f"{path} lacks {', '.join(lacking)}: an earlier version wrote it; evaluate again "
                "with --out"
            )
        table = file.read(columns=_columns(file.schema_arrow.names))
        table = table.cast(_schema(table.column_names))
        asked = pa.array(sorted(query_ids), type=pa.string())
        table = table.filter(pc.is_in(table["query_id"], value_set=asked))
        gaps = [name for name in _ALWAYS if table[name].null_count]
        if gaps:
            raise EvaluationError(f"{path} has gaps in {', '.join(gaps)}")
        rows = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise EvaluationError(
            f"{path} is not a trace ({printable(str(error), limit=120)})"
        ) from error
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["query_id"], []).append(row)
    return {
        query_id: TracedWay(sorted(mine, key=lambda row: row["place"]))
        for query_id, mine in found.items()
    }


def _columns(there: Collection[str]) -> list[str]:
    return [*_KINDS, *(f"{lane}_rank" for lane in LANES if f"{lane}_rank" in there)]


def _schema(names: Sequence[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(_KINDS.get(name, "int64"))) for name in names])
