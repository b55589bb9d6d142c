"""Every candidate's way through a recall as a columnar file: ids, ranks, scores, fates, no text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from comis_eval.candidates import FATES, Rankings
from comis_eval.config import LANES
from comis_eval.pipelines.rank import alphas_of
from comis_eval.stages import score


def columns(rankings: Rankings) -> dict[str, Any]:
    """One row a (query, candidate) pair, in the order of the ranking's trace.

    Returns:
        Columns by name: query_id, memory_id, place (in that order, from 1), the rank in
        each lane (null where it is lacking), fused, reranker, base, a factor a signal,
        final, fate, deduped_by.
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
    told["reranker"] = np.ma.masked_invalid(rankings.reranker[cells])
    told["base"] = rankings.base[cells]
    for name, plane in zip(score.Signals._fields, factors, strict=True):
        told[name] = plane[cells]
    told["final"] = rankings.final[cells]
    told["fate"] = np.array([str(fate) for fate in FATES], dtype=object)[rankings.fate[cells]]
    by = rankings.deduped_by[cells]
    keeper = ids[table.rows[queries, np.maximum(by, 0)]]
    told["deduped_by"] = np.ma.masked_array(keeper, mask=by < 0)
    return told


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
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(pa.table(arrays), partial, compression="zstd")
    partial.replace(path)
