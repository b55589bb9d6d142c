"""Evaluations, traces and studies so small that every figure can be worked on paper."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from comis_eval.config import Config
from comis_eval.evaluation import Evaluation
from comis_eval.metrics import Mean

NAN = float("nan")
FACTORS = ("recency", "temporal", "proof", "trust", "usefulness")


def evaluation(
    values: Mapping[str, Sequence[float]],
    *,
    categories: Sequence[str] = ("x", "x", "y", "y"),
    groups: Sequence[str] | None = None,
    references: Mapping[str, Mapping[str, float]] | None = None,
    means: Mapping[str, float] | None = None,
    **fields: Any,
) -> Evaluation:
    """An evaluation whose figures are plain means of its values, of every category."""
    columns = {name: np.array(column, dtype=np.float64) for name, column in values.items()}
    labels = np.array(categories, dtype=object)
    masks = {"all": np.ones(len(labels), dtype=bool)}
    masks |= {name: labels == name for name in dict.fromkeys(categories)}

    def figure(name: str, column: Any, mask: Any) -> Mean:
        mine = column[mask & ~np.isnan(column)]
        total = name in ("laundered", "resurrected") or name.startswith("unwanted_after_")
        if not len(mine):
            return Mean(NAN, 0)
        return Mean(float(mine.sum() if total else mine.mean()), len(mine))

    found = {c: {n: figure(n, v, mask) for n, v in columns.items()} for c, mask in masks.items()}
    found["all"] |= {name: Mean(value, len(labels)) for name, value in (means or {}).items()}
    fields.setdefault("lanes", {"fts": len(labels)})
    fields.setdefault("leaks", ())
    ids = tuple(f"q{number}" for number in range(1, len(labels) + 1))
    return Evaluation(
        dataset={"name": "tiny", "version": "1", "fingerprint": "f" * 64, "split": "all"},
        pipeline="memory-recall",
        enforces=("trust", "scope"),
        config=Config().to_tree(),
        config_hash="c" * 64,
        versions={"python": "3"},
        seed=0,
        counts={
            "queries": len(ids), "scored": len(ids), "unanswerable": 0, "failed": 0,
            "unknown_ids": 0,
        },
        latency_ms=None,
        settings={
            "k": [10], "gain": "linear", "relevance_level": 1, "k0": 5, "c0": 4000,
            "headline": list(dict.fromkeys(categories)),
            "utility": {"cost": 0.2, "unanswerableWeight": 0.1},
        },
        query_ids=ids,
        groups=tuple(groups or ids),
        categories=tuple(categories),
        values=columns,
        means=found,
        references={
            name: {metric: Mean(value, len(ids)) for metric, value in row.items()}
            for name, row in (references or {}).items()
        },
        bounds={},
        **fields,
    )  # fmt: skip


def candidate(query_id: str, memory_id: str, place: int, **fields: Any) -> dict[str, Any]:
    """A row of a trace; what is not said moves nothing."""
    neutral = {
        "query_id": query_id, "memory_id": memory_id, "place": place, "fts_rank": place,
        "fused": 1.0 / place, "fused_place": place, "rerank": "skipped",
        "rerank_reason": "disabled", "in_pool": False, "reranker": None, "base": 1.0 / place,
        **dict.fromkeys(FACTORS, 1.0), "final": 1.0 / place, "scored_place": place,
        "fate": "included", "deduped_by": None,
    }  # fmt: skip
    return {**neutral, **fields}


def write_trace(rows: Sequence[Mapping[str, Any]], path: Path, **types: Any) -> dict[str, str]:
    """Write rows as a trace; what an evaluation says of it comes back."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = {
        "fts_rank": pa.int32(), "place": pa.int32(), "reranker": pa.float64(),
        "deduped_by": pa.string(), "fused_place": pa.int32(), "scored_place": pa.int32(), **types,
    }  # fmt: skip
    columns = {
        name: pa.array([row[name] for row in rows], type=known.get(name))
        for name in (rows[0] if rows else {})
    }
    pq.write_table(pa.table(columns), path)
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


SPACE = [
    {"path": "rag.maxResults", "kind": "int", "low": 1, "high": 11},
    {"path": "rag.minScore", "kind": "float", "low": 0.01, "high": 1.0, "log": True},
    {
        "path": "rag.rerank.enabled",
        "kind": "bool",
        "low": 0.0,
        "high": 0.0,
        "choices": [False, True],
    },
]
TRIALS: dict[str, list[Any]] = {
    "number": [0, 1, 2, 3, 4],
    "state": ["complete", "complete", "complete", "failed", "complete"],
    "duplicate_of": [None, None, None, None, 1],
    "feasible": [True, True, False, False, True],
    "ms": [1.0, 1.0, 1.0, 1.0, 0.0],
    "reason": [None, None, None, "no figure", None],
    "rag.maxResults": [5, 3, 9, 1, 3],
    "rag.minScore": [0.1, 0.1, 0.02, 0.5, 0.1],
    "rag.rerank.enabled": [False, True, False, None, True],
    "utility": [0.5, 0.6, 0.9, None, 0.6],
    "context_chars": [900.0, 500.0, 2000.0, None, 500.0],
    "constraint:silence": [0.0, 0.0, 0.1, None, 0.0],
}
RESULT: dict[str, Any] = {
    "format": 1,
    "study": "tiny-1",
    "dataset": {"name": "tiny", "version": "1", "fingerprint": "f" * 64},
    "current": {},
    "space": SPACE,
    "objectives": ["utility", "context_chars"],
    "seed": 0,
    "sampler": "nsga2",
    "counts": {"planned": 5, "run": 5, "distinct": 4, "duplicate": 1},
    "best": {"number": 1, "values": {"rag.maxResults": 3}, "figures": {"utility": 0.6}},
    "winner": {
        "number": 1,
        "values": {"rag.maxResults": 3, "rag.minScore": 0.1, "rag.rerank.enabled": True},
        "figures": {},
        "rag": "rag:\n  maxResults: 3\n",
    },
    "pareto": [1],
    "floor": {"mean": 0.01, "percentile_95": 0.05, "n_trials": 4, "n_groups": 9},
    "confirmation": {
        "kind": "folds", "mean": 0.08, "low": 0.02, "high": 0.14, "p": 0.004, "p_t": 0.006,
        "n_queries": 40, "n_groups": 20, "mdd": 0.05,
    },
    "decision": {"outcome": "adopt", "reasons": ["gains +0.0800 on held-out queries"]},
    "per_category": {
        "x": {"current": 0.5, "winner": 0.7, "low": 0.1, "high": 0.3, "n": 10},
        "y": {"current": 0.5, "winner": 0.4, "low": -0.3, "high": 0.1, "n": 10},
    },
    "importances": {"rag.minScore": 0.25, "rag.maxResults": 0.75},
    "flat": {"rag.maxResults": [2, 6], "rag.minScore": [0.01, 0.1], "rag.rerank.enabled": [True]},
    "references": {"current": {"utility": 0.5}, "oracle": {"utility": None, "ndcg@10": 0.9}},
    "notes": ["a note"],
}  # fmt: skip


def study(
    folder: Path, *, trials: Mapping[str, Sequence[Any]] | None = TRIALS, **changes: Any
) -> Path:
    """Write a study folder; a change to None takes the part away."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    told = {key: value for key, value in {**RESULT, **changes}.items() if value is not None}
    (folder / "result.json").write_text(json.dumps(told), encoding="utf-8")
    if trials is not None:
        types = {"duplicate_of": pa.int64(), "reason": pa.string()}
        columns = {name: pa.array(column, types.get(name)) for name, column in trials.items()}
        pq.write_table(pa.table(columns), folder / "trials.parquet")
    return folder
