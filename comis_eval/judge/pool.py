"""Pools: what any of several pipelines ranks high, put together without saying which did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from comis_eval.candidates import Rankings
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.errors import JudgeError
from comis_eval.evaluation import PLAIN
from comis_eval.judge.journal import Pair
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.text import close_matches, printable

_LANE_ALONE: Mapping[str, tuple[str, ...]] = {"keyword": ("fts",), "vector": ("vector",)}
PIPELINES = (*_LANE_ALONE, "fused", "reranked", "recall-tool")
"""What can be pooled by name: either lane alone, the configuration as it is, the same with its
reranker on, and the recall tool."""


class Pooled(NamedTuple):
    """One source of a pool: a name for messages, and what it ranks for the whole query set."""

    name: str
    rank: Callable[[], Rankings]


def default_pipelines(dataset: Dataset) -> tuple[str, ...]:
    """Every pipeline, the recall tool only where some memory has the fields it answers from."""
    kept = any(m.key is not None or m.scope is not None for m in dataset.memories)
    return PIPELINES if kept else tuple(name for name in PIPELINES if name != "recall-tool")


def pooled(name: str, retriever: Retriever, config: Config) -> Pooled:
    """The source that a name stands for.

    Args:
        name: One of PIPELINES.
        retriever: The dataset made searchable.
        config: The configuration, which ``fused`` takes as it is.

    Raises:
        JudgeError: If there is no such name.
    """
    queries = retriever.dataset.queries
    if name == "recall-tool":
        return Pooled(name, lambda: RecallTool(retriever, config).rank(queries))
    changes: dict[str, Any]
    if name in _LANE_ALONE:
        changes = {**PLAIN, "harness.lanes": _LANE_ALONE[name]}
    elif name == "reranked":
        changes = {"rag.rerank.enabled": True}
    elif name == "fused":
        changes = {}
    else:
        hint = close_matches(name, PIPELINES)
        raise JudgeError(
            f"--pipelines: '{printable(name, limit=80)}' is neither a configuration file nor one "
            f"of {', '.join(PIPELINES)}{f'; {hint}' if hint else ''}"
        )
    changed = config.evolve(**changes)
    return Pooled(name, lambda: MemoryRecall(retriever, changed).rank(queries))


def pool(dataset: Dataset, sources: Sequence[Pooled], *, depth: int) -> list[Pair]:
    """The first memories of every source's rankings, each pair once.

    What the trust filter or dedup of a pipeline takes is not in its ranking, so it comes in
    only when another source, such as the recall tool, lets it through.

    Args:
        dataset: Its queries are those the sources ranked.
        sources: At least one.
        depth: To which rank each ranking counts, >= 1.

    Returns:
        The pairs, in file order of queries, then of memories: nothing of who found what is left.

    Raises:
        ComisEvalError: If a source cannot answer.
    """
    found: set[tuple[int, int]] = set()
    for source in sources:
        rows = source.rank().ranked_rows(depth)
        found |= {
            (query, row) for query, ranked in enumerate(rows.tolist()) for row in ranked if row >= 0
        }
    return [
        Pair(dataset.queries[query].id, dataset.memories[row].id) for query, row in sorted(found)
    ]
