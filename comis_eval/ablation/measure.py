"""A metric of every variant, query by query, on as few tables of candidates as can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from comis_eval.ablation.tool_variants import tool_variants
from comis_eval.ablation.variants import Variant, variants
from comis_eval.candidates import Candidates, Rankings, Retrieval
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.errors import ConfigError
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.metrics import Inputs, Metric, Values, parse, weights
from comis_eval.pipelines.coverage import Coverage
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Progress, Retriever


@dataclass(frozen=True, eq=False)
class Measured:
    """A metric of every variant, query by query.

    Attributes:
        variants: One a column.
        differences: Variant minus current, turned so that higher is better, shape (q, v).
        groups: Group of each query.
        categories: Category of each query.
        weights: What each query weighs in the figure, shape (q,).
        current: The current configuration's figure.
        leaking: By variant, queries that leak, shape (v,).
    """

    variants: tuple[Variant, ...]
    differences: NDArray[np.float64]
    groups: tuple[str, ...]
    categories: tuple[str, ...]
    weights: Values
    current: float
    leaking: NDArray[np.int64]


def measure(
    dataset: Dataset,
    config: Config,
    *,
    metric: str,
    pipeline: str = "memory-recall",
    retriever: Retriever | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Score every variant on every query; see :func:`ablate`."""
    scored = parse(metric)
    retriever = retriever or Retriever(dataset, progress=progress)
    if pipeline == RecallTool.name:
        found = tuple(tool_variants(config))
        answer: Callable[[Config], Rankings] = _Calls(retriever, dataset)
        promised = RecallTool.enforces
    else:
        if not config.rag.enabled:
            raise ConfigError(
                "rag.enabled is false: nothing is recalled, so nothing can be ablated"
            )
        found = tuple(variants(config))
        deepest = max(config.lane_depth, *(variant.config.lane_depth for variant in found))
        answer = _Tables(retriever, dataset, config, deepest)
        promised = MemoryRecall.enforces
    scorer = _Scorer(Judge(dataset), scored, config, promised)
    inputs, before, _ = scorer.scores(answer(config))
    columns = np.full((len(dataset.queries), len(found)), np.nan)
    leaking = np.zeros(len(found), dtype=np.int64)
    for number, variant in enumerate(found):
        _, after, leaking[number] = scorer.scores(answer(variant.config))
        gain = after - before if scored.definition.higher_is_better else before - after
        columns[:, number] = gain
        if progress is not None:
            progress("ablate", number + 1, len(found))
    shares = weights(scored, before, inputs)
    counted = shares > 0
    return Measured(
        found,
        columns,
        tuple(query.group or query.id for query in dataset.queries),
        tuple(query.category for query in dataset.queries),
        shares,
        float(shares[counted] @ before[counted]) if counted.any() else np.nan,
        leaking,
    )


@dataclass(frozen=True, eq=False)
class _Scorer:
    """Scores answers, with the current configuration's constants."""

    judge: Judge
    metric: Metric
    current: Config
    promised: tuple[str, ...]

    def scores(self, rankings: Rankings) -> tuple[Inputs, Values, int]:
        """What the metric saw, its values, and how many queries leak what must not."""
        inputs = self.judge.inputs(rankings, objective_of(self.current))
        leaking = parse("policy_leak" if "trust" in self.promised else "scope_leak")(inputs)
        return inputs, self.metric(inputs), int((leaking > 0).sum())


@dataclass(frozen=True, eq=False)
class _Calls:
    """Answers of the recall tool; indexes and models are the retriever's to keep."""

    retriever: Retriever
    dataset: Dataset

    def __call__(self, config: Config) -> Rankings:
        return RecallTool(self.retriever, config).rank(self.dataset.queries)


@dataclass(frozen=True, eq=False)
class _Tables:
    """Candidates for every variant, each table made once."""

    retriever: Retriever
    dataset: Dataset
    current: Config
    depth: int
    made: dict[Retrieval, Candidates] = field(default_factory=dict)

    def __call__(self, config: Config) -> Rankings:
        return rank(self.of(config), config)

    def of(self, config: Config) -> Candidates:
        """A table that covers a configuration, by as many lanes as it asks for."""
        asked = Retrieval.of(config)
        whole = config.evolve(**{"harness.lanes": self.current.harness.lanes})
        key = Retrieval.of(whole)._replace(depth=self.depth)
        if key not in self.made:
            self.made[key] = self.retriever.covering(self.dataset.queries, whole, self._coverage())
        table = self.made[key]
        return table if asked.lanes == table.retrieval.lanes else table.restricted(*asked.lanes)

    def _coverage(self) -> Coverage:
        rag = self.current.rag
        return Coverage(
            depth=self.depth,
            rerank=rag.rerank.enabled,
            entity=rag.entity_lane.enabled,
            window_days=rag.lanes.temporal.window_days if rag.lanes.temporal.enabled else 0,
            causal=rag.lanes.causal.enabled,
        )
