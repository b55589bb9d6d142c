"""Every candidate's way through a recall as a columnar file: ids, ranks, scores, fates, no text."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES, Rankings
from comis_eval.config import LANES
from comis_eval.errors import EvaluationError
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.files import replacing
from comis_eval.pipelines.scoring import alphas_of
from comis_eval.stages import score
from comis_eval.stages.rerank import Outcome, Reason
from comis_eval.text import printable

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAX_BYTES = 1 << 32
"""How large a trace may be that is read back."""

MAX_ROWS = 10_000_000
"""So many candidates of all queries together."""


def columns(rankings: Rankings) -> dict[str, Any]:
    """One row a (query, candidate) pair, in the order of the ranking's trace.

    Returns:
        Columns by name: query_id, memory_id, place (in that order, from 1), the rank in
        each lane (null where it is lacking), fused, fused_place (after fusion and its
        floor; null: no longer there), rerank and rerank_reason (the query's), in_pool,
        reranker, base, a factor a signal, final, scored_place (as scoring left them; null:
        no longer there), fate, deduped_by.
    """
    table = rankings.table
    listed = np.take_along_axis(rankings.fate, rankings.order, axis=1) >= 0
    queries, places = np.nonzero(listed)
    cells = (queries, rankings.order[queries, places])
    ids = np.array([memory.id for memory in table.corpus.memories] + [""], dtype=object)
    query_ids = np.array([query.id for query in table.queries] + [""], dtype=object)
    first = np.searchsorted(queries, np.arange(len(table.queries)))
    factors = score.factors(table.signals, alphas_of(rankings.config))
    told: dict[str, Any] = {
        "query_id": query_ids[queries],
        "memory_id": ids[table.rows[cells]],
        "place": (np.arange(len(queries)) - first[queries] + 1).astype(np.int32),
    }
    for lane in LANES:
        if lane in rankings.ranks:
            ranks = rankings.ranks[lane][cells]
            told[f"{lane}_rank"] = np.ma.masked_equal(ranks, 0)
    told["fused"] = rankings.fused[cells]
    fused_place = _places(rankings.fused_order, rankings.presence["fuse"])[cells]
    told["fused_place"] = np.ma.masked_equal(fused_place, 0)
    told["rerank"] = _names(Outcome)[rankings.rerank_outcome[queries]]
    told["rerank_reason"] = _names(Reason)[rankings.rerank_reason[queries]]
    told["in_pool"] = rankings.rerank_pool[cells]
    told["reranker"] = np.ma.masked_invalid(rankings.reranker[cells])
    told["base"] = rankings.base[cells]
    for name, plane in zip(score.Signals._fields, factors, strict=True):
        told[name] = plane[cells]
    told["final"] = rankings.final[cells]
    scored_place = _places(scored_order(rankings), rankings.presence["score"])[cells]
    told["scored_place"] = np.ma.masked_equal(scored_place, 0)
    told["fate"] = np.array([str(fate) for fate in FATES], dtype=object)[rankings.fate[cells]]
    by = rankings.deduped_by[cells]
    keeper = ids[table.rows[queries, np.maximum(by, 0)]]
    told["deduped_by"] = np.ma.masked_array(keeper, mask=by < 0)
    return told


def scored_order(rankings: Rankings, queries: slice = slice(None)) -> NDArray[np.intp]:
    """Columns as scoring ordered them, before trust filter, diversity and dedup.

    Returns:
        Shape (k, c) for k queries; who was in the fused list comes first.
    """
    listed = rankings.fused_order[queries]

    def along(plane: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(plane[queries], listed, axis=1)

    reranked = rankings.rerank_outcome[queries] == Outcome.RAN
    order = score.order(
        along(rankings.final),
        along(rankings.table.trust),
        ~along(rankings.rerank_pool) & reranked[:, None],
        along(rankings.presence["fuse"]),
    )
    return np.take_along_axis(listed, order, axis=1)


def _places(order: NDArray[np.intp], present: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Where each column that is present stands in an order, from 1; 0 for the others."""
    listed = np.take_along_axis(present, order, axis=1)
    places = np.zeros(order.shape, dtype=np.int32)
    counted = np.where(listed, listed.cumsum(axis=1), 0).astype(np.int32)
    np.put_along_axis(places, order, counted, axis=1)
    return places


def _names(kind: type[Outcome] | type[Reason]) -> NDArray[np.object_]:
    return np.array([member.name.lower() for member in kind], dtype=object)


def write(rankings: Rankings, path: Path) -> None:
    """Write the trace as Parquet, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, column in columns(rankings).items():
        masked = isinstance(column, np.ma.MaskedArray)
        arrays[name] = pa.array(
            np.ma.getdata(column) if masked else column,
            mask=np.ma.getmaskarray(column) if masked else None,
        )
    with replacing(path) as partial:
        pq.write_table(pa.table(arrays), partial, compression="zstd")


def opened(held: bytes) -> pq.ParquetFile:
    """A trace's bytes as Parquet.

    Raises:
        ValueError: If it has a column twice or more than MAX_ROWS rows: a few bytes of
            Parquet can say a number of rows that fills the memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(held))
    if file.metadata.num_rows > MAX_ROWS:
        raise ValueError(f"{file.metadata.num_rows} rows, a trace has at most {MAX_ROWS}")
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise ValueError("a column stands in it twice")
    return file


def beside(evaluation: Evaluation, path: Path) -> Path:
    """Where the trace of an evaluation lies, by what the evaluation's file says.

    Raises:
        EvaluationError: If it names no file of the same folder: the name is somebody's text.
    """
    name = (evaluation.trace or {}).get("file")
    if (
        not isinstance(name, str)
        or name != Path(name).name
        or name in ("", ".", "..")
        or "\0" in name
    ):
        raise EvaluationError(
            f"trace.file of {path} is no file name: '{printable(str(name), limit=60)}'"
        )
    return path.with_name(name)


def whole(evaluation: Evaluation, path: Path) -> tuple[Path, bytes]:
    """Read the trace that an evaluation names, if it is the one.

    Args:
        evaluation: As it was read.
        path: The file it was read from.

    Raises:
        EvaluationError: If it cannot be read, or is not the one it was written with.
    """
    place = beside(evaluation, path)
    try:
        if place.stat().st_size > MAX_BYTES:
            raise EvaluationError(f"{place} is larger than {MAX_BYTES >> 30} GiB")
        held = place.read_bytes()
    except OSError as error:
        raise EvaluationError(f"{place} cannot be read: {error.strerror}") from error
    if hashlib.sha256(held).hexdigest() != (evaluation.trace or {}).get("sha256"):
        raise EvaluationError(
            f"{place} is not the trace that {path.name} was written with; keep the two files "
            "together, or evaluate again with --out"
        )
    return place, held
