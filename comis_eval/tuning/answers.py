"""What a configuration answers on tables that were filled before, for either pipeline.

This is all of a sweep that knows which pipeline is searched: what is retrieved once, how it
is ranked again, what the pipeline promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.evaluation.inputs import Shown
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recall_tool import RecallTool, ToolTables
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning.reach import coverage_of, deepest
from comis_eval.tuning.space import Space

Table = Candidates | ToolTables
"""What is ranked again and again."""


class Answers(NamedTuple):
    """What a query set is answered.

    Attributes:
        shown: The lists and contexts.
        chars: Length of what stands for each memory in the contexts; None: as in a section.
        latencies: Modelled ms of each query, shape (q,).
    """

    shown: Shown
    chars: NDArray[np.int64] | None
    latencies: NDArray[np.float64]


def retrieved(
    retriever: Retriever, dataset: Dataset, current: Config, space: Space, pipeline: str
) -> Table:
    """Retrieve what answers for every point of a space by a pipeline.

    Raises:
        ComisEvalError: If a model is missing, or a lane cannot search.
    """
    if pipeline == RecallTool.name:
        return ToolTables(retriever, dataset.queries, current, deepest(space, current))
    return retriever.covering(dataset.queries, current, coverage_of(space, current))


def enforces(table: Table) -> tuple[str, ...]:
    """Kinds of leak that the pipeline promises to prevent."""
    return RecallTool.enforces if isinstance(table, ToolTables) else MemoryRecall.enforces


def answers(parts: Sequence[Candidates] | ToolTables, config: Config, depth: int | None) -> Answers:
    """Answer all queries under a configuration.

    Args:
        parts: A table, or one in parts that follow one another.
        config: Every setting.
        depth: How far down rankings are looked at; None: to their ends.

    Raises:
        CoverageError: If the configuration reaches outside the tables.
    """
    if isinstance(parts, ToolTables):
        return _by_the_tool(parts, config, depth)
    shown, pools = [], []
    for part in parts:
        rankings = rank(part, config)
        shown.append(
            Shown(rankings.ranked_rows(depth), rankings.context_rows(), rankings.context_chars)
        )
        pools.append(rankings.rerank_pool.sum(axis=1))
    whole = Shown(
        _stacked([part.ranking for part in shown]),
        _stacked([part.context for part in shown]),
        np.concatenate([part.context_chars for part in shown]),
    )
    return Answers(whole, None, modelled_latencies(np.concatenate(pools), config))


def _by_the_tool(tables: ToolTables, config: Config, depth: int | None) -> Answers:
    count = len(tables.queries)
    found = [(where, paged.rankings) for where, paged in tables.paged(config)]
    chars = np.zeros(count, dtype=np.int64)
    for where, rankings in found:
        chars[where] = rankings.context_chars
    order = np.concatenate([where for where, _ in found]) if found else np.empty(0, np.intp)
    back = np.argsort(order)
    shown = Shown(
        _stacked([rankings.ranked_rows(depth) for _, rankings in found])[back],
        _stacked([rankings.context_rows() for _, rankings in found])[back],
        chars,
    )
    lines = [rankings.context_lines() for _, rankings in found]
    lengths = _stacked([part for part in lines if part is not None], 0)[back].astype(np.int64)
    return Answers(shown, lengths, np.zeros(count))  # the tool asks no reranker


def modelled_latencies(pools: NDArray[np.int64], config: Config) -> NDArray[np.float64]:
    """What the cost model says a rerank takes, ms, shape (q,); 0 where none was attempted.

    Args:
        pools: How many memories of each query were put to the reranker, shape (q,).
        config: Whose ``harness.reranker`` says what it costs.
    """
    cost = config.harness.reranker
    return np.where(pools > 0, cost.fixed_ms + cost.ms_per_candidate * pools, 0.0)


def _stacked(lists: Sequence[NDArray[np.integer]], padding: int = -1) -> NDArray[np.int32]:
    """Lists of several widths as one array, padded."""
    width = max((part.shape[1] for part in lists), default=0)
    padded = [
        np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=padding)
        for part in lists
    ]
    stacked: NDArray[np.int32] = np.concatenate(padded)
    return stacked
