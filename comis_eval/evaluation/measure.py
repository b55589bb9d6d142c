"""pipeline x queries x metrics -> Evaluation."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from comis_eval.candidates import Candidates, Rankings
from comis_eval.config import Config, config_hash
from comis_eval.datasets import Dataset
from comis_eval.errors import EvaluationError, ModelError
from comis_eval.evaluation.evaluation import Evaluation
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.evaluation.live import Answered, remote
from comis_eval.metrics import (
    ALL,
    Inputs,
    Mean,
    Metric,
    Objective,
    Values,
    judged_beside,
    leaks,
    means,
    parse,
    upper_bound,
)
from comis_eval.metrics.lists import given
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Progress, Retriever
from comis_eval.types import Query

DEFAULT_METRICS = (
    "ndcg@10",
    "recall@5",
    "recall@10",
    "hit@5",
    "mrr@10",
    "map",
    "precision@5",
    "context_recall",
    "context_precision",
    "context_ndcg",
    "context_chars",
    "context_fill",
    "redundancy",
    "abstention",
    "noise",
    "utility",
    "stale@5",
    "trust_inversion@5",
    "policy_leak",
    "scope_leak",
    "laundered",
    "resurrected",
    "over_block",
    "untrusted_share@5",
    "unwanted_after_search",
    "unwanted_after_fuse",
    "unwanted_after_rerank",
    "unwanted_after_score",
    "unwanted_after_trust",
    "unwanted_after_dedup",
    "unwanted_after_budget",
)
"""What an evaluation scores when it is not told otherwise."""

LOCAL = ("memory-recall", "recall-tool")
"""Pipelines of this process: they can be swept, ablated and looked into."""

PIPELINES = (*LOCAL, "remote")
"""What can be evaluated."""

PLAIN: Mapping[str, Any] = {
    "rag.min_score": 0.0,
    "rag.rerank.enabled": False,
    "rag.entity_lane.enabled": False,
    "rag.lanes.temporal.enabled": False,
    "rag.lanes.causal.enabled": False,
    "rag.mmr.enabled": False,
    "rag.scoring.recency_alpha": 0.0,
    "rag.scoring.temporal_alpha": 0.0,
    "rag.scoring.proof_alpha": 0.0,
    "rag.scoring.trust_alpha": 0.0,
    "rag.scoring.usefulness_alpha": 0.0,
}
"""What a reference row of one lane switches off: every boost, floor and second model."""

_PLAIN_TOOL: Mapping[str, Any] = {
    "harness.recall_tool.gate.noise": 0.0,
    "harness.recall_tool.gate.floor": 0.0,
    "harness.recall_tool.graph.enabled": False,
}
"""What a reference row of one arm of the recall tool switches off."""

_KEYWORD_ROW = {"fts5": "fts", "rank_bm25": "rank_bm25"}
_BOUNDED = ("policy_leak", "scope_leak")
_DISTRIBUTIONS = (
    "comis_eval", "numpy", "faiss-cpu", "onnxruntime", "tokenizers", "rank-bm25",
)  # fmt: skip


def evaluate(
    dataset: Dataset,
    config: Config | None = None,
    *,
    pipeline: str = "memory-recall",
    split: str = "all",
    seed: int = 0,
    metrics: Sequence[str] = DEFAULT_METRICS,
    relevance_level: int = 1,
    references: bool = True,
    retriever: Retriever | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Run a pipeline over a dataset's queries and score the rankings and contexts.

    Args:
        dataset: What to recall from and what is right.
        config: Every knob and switch; the documented defaults when left out.
        pipeline: What answers: one of PIPELINES.
        split: tune, select, test or all.
        seed: Of the split and of the random reference.
        metrics: Names such as ``ndcg@10``; judged@k is added beside those that need it.
        relevance_level: Lowest grade that counts as relevant, 1..3.
        references: Whether to add the reference rows.
        retriever: Indexes and models over the same memories, when they are at hand.
        progress: Told of long steps.

    Raises:
        ComisEvalError: If the dataset, a model, a lane or a metric's name cannot be used.
    """
    config = config or Config()
    if pipeline not in PIPELINES:
        raise EvaluationError(f"pipeline is {pipeline!r}; there are {', '.join(PIPELINES)}")
    objective = objective_of(config)
    asked = [parse(name) for name in dict.fromkeys(metrics)]
    asked += [m for m in judged_beside(asked, k0=objective.k0) if m not in asked]
    dataset.check_labelled()
    chosen = dataset.select(split, seed=seed)
    retriever = retriever or Retriever(dataset, progress=progress)
    judge = Judge(chosen)
    if pipeline == "remote":
        answered = remote(judge, config, objective, asked, relevance_level, seed, progress)
        asked = list(answered.metrics)
    else:
        check_serves(retriever, dataset, config)
        answer = _recall_tool if pipeline == "recall-tool" else _memory_recall
        answered = answer(judge, retriever, config, objective, asked, relevance_level)
    inputs = answered.inputs
    values = {metric: metric(inputs) for metric in asked}
    notes = answered.notes
    rows: dict[str, dict[str, Mean]] = {}
    if references and given(inputs.ranking, "the ranking").depth:
        for name, alone in answered.alone():
            rows[name] = _figures(judge, alone, inputs, asked)
        lacking = sorted({"fts", "vector"} - set(rows)) if answered.lanes else ()
        notes += tuple(f"no {lane} reference: the lane is off (--lanes)" for lane in lacking)
        rows |= _reordered(inputs, asked, seed)

    queries = chosen.queries
    return Evaluation(
        dataset={
            "name": dataset.name,
            "version": dataset.version,
            "fingerprint": dataset.fingerprint,
            "split": split,
        },
        pipeline=answered.name,
        enforces=answered.enforces,
        config=config.to_tree(),
        config_hash=config_hash(config),
        versions=versions(),
        seed=seed,
        counts={
            "queries": len(queries),
            "scored": int(inputs.ideal.answerable.sum()),
            "unanswerable": int((~inputs.ideal.answerable).sum()),
            "failed": int(inputs.failed.sum()),
            "unknown_ids": answered.unknown_ids,
        },
        lanes=answered.lanes,
        latency_ms=answered.latency_ms,
        settings={
            "k": sorted({metric.k for metric in asked if metric.k is not None}),
            "gain": "linear",
            "relevance_level": relevance_level,
            "k0": objective.k0,
            "c0": objective.c0,
            "headline": [
                name
                for name in dict.fromkeys(query.category for query in queries)
                if dataset.headline(name)
            ],
            "utility": {
                "cost": objective.cost,
                "unanswerableWeight": objective.unanswerable_weight,
            },
        },
        query_ids=tuple(query.id for query in queries),
        groups=tuple(query.group or query.id for query in queries),
        categories=tuple(query.category for query in queries),
        values={metric.name: column for metric, column in values.items()},
        means=means(values, inputs),
        references=rows,
        bounds=_bounds(values),
        leaks=_listed_leaks(chosen, inputs),
        notes=notes,
        rankings=answered.rankings,
    )


def versions() -> dict[str, str]:
    """Versions of everything a figure can depend on."""
    found = {name: version(name) for name in _DISTRIBUTIONS}
    return {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, **found}


def check_serves(retriever: Retriever, dataset: Dataset, config: Config) -> None:
    """Refuse what would give a figure that says nothing about the dataset or the product."""
    if retriever.dataset.memories != dataset.memories:
        raise EvaluationError(
            f"the retriever searches the memories of {retriever.dataset.name!r}, which are not "
            f"those of {dataset.name!r}; make one over this dataset, or leave it out"
        )
    model = retriever.embedder_in_use(config)
    if model is not None and not model.reportable:
        raise ModelError(
            f"embedder {model.name!r} is for unit tests, a figure it serves says nothing; use "
            "minilm, a folder with an ONNX model (--embedder PATH), the dataset's own embeddings, "
            "or no vectors (--lanes fts)"
        )


def ranked(
    pipeline: str, retriever: Retriever, config: Config, queries: Sequence[Query]
) -> Rankings:
    """What a pipeline answers a query set.

    Args:
        pipeline: One of LOCAL.
        retriever: The memories, made searchable.
        config: Every knob and switch.
        queries: What is asked.

    Raises:
        ComisEvalError: If a model, a lane or a query's parameters cannot be used.
    """
    made = RecallTool if pipeline == RecallTool.name else MemoryRecall
    return made(retriever, config).rank(queries)


def _memory_recall(
    judge: Judge,
    retriever: Retriever,
    config: Config,
    objective: Objective,
    metrics: Sequence[Metric],
    level: int,
) -> Answered:
    pipeline = MemoryRecall(retriever, config)
    table = pipeline.candidates(judge.dataset.queries)
    rankings = rank(table, config)
    return Answered(
        pipeline.name,
        pipeline.enforces,
        judge.inputs(rankings, objective, relevance_level=level),
        tuple(metrics),
        _depth_notes(metrics, config),
        rankings.lane_counts(),
        rankings,
        lambda: _single_lanes(retriever, table, config) if rankings.ranks else iter(()),
    )


def _single_lanes(
    retriever: Retriever, table: Candidates, config: Config
) -> Iterator[tuple[str, Rankings]]:
    """Rank by each search lane alone, and by the other keyword search.

    They go through the same trust filter, dedup and budget, with every boost and floor off.
    """
    plain = config.evolve(**PLAIN)
    backend = config.harness.keyword_backend
    other = "rank_bm25" if backend == "fts5" else "fts5"
    found: dict[str, Candidates] = {}
    for lane in table.lanes:
        found[_KEYWORD_ROW[backend] if lane == "fts" else lane] = table.restricted(lane)
    if "fts" in table.lanes:
        swapped = plain.evolve(**{"harness.lanes": ("fts",), "harness.keyword_backend": other})
        found[_KEYWORD_ROW[other]] = retriever.candidates(table.queries, swapped)
    for name, alone in found.items():
        settings = plain.evolve(
            **{
                "harness.lanes": alone.retrieval.lanes,
                "harness.keyword_backend": alone.retrieval.keyword_backend,
            }
        )
        yield name, rank(alone, settings)


def _recall_tool(
    judge: Judge,
    retriever: Retriever,
    config: Config,
    objective: Objective,
    metrics: Sequence[Metric],
    level: int,
) -> Answered:
    tool, queries = RecallTool(retriever, config), judge.dataset.queries
    rankings = tool.rank(queries)
    return Answered(
        tool.name,
        tool.enforces,
        judge.inputs(rankings, objective, relevance_level=level),
        tuple(metrics),
        _tool_notes(tool, queries, metrics),
        rankings.lane_counts(),
        rankings,
        lambda: _single_arms(tool, queries) if rankings.ranks else iter(()),
    )


def _single_arms(tool: RecallTool, queries: Sequence[Query]) -> Iterator[tuple[str, Rankings]]:
    """Answer by each arm alone, nothing withheld and no neighbours let in."""
    plain = tool.config.evolve(**_PLAIN_TOOL)
    for lane in plain.harness.lanes:
        alone = plain.evolve(**{"harness.lanes": (lane,)})
        yield lane, replace(tool, config=alone).rank(queries)


def _tool_notes(
    tool: RecallTool, queries: Sequence[Query], metrics: Sequence[Metric]
) -> tuple[str, ...]:
    notes = _too_deep(metrics, tool.config.harness.recall_tool.arm_depth, "to which an arm is read")
    left_out = tool.left_out
    if left_out:
        first, why = next(iter(left_out.items()))
        notes += (f"{len(left_out)} memories are not stored; {first!r}: {why}",)
    unasked = [q.id for q in queries if q.filters.memory_type or q.filters.trust_level]
    if unasked:
        notes += (
            f"{len(unasked)} queries filter by memoryType or trustLevel, which the recall tool "
            f"has not; they were asked without, {unasked[0]!r} first",
        )
    return notes


def _reordered(inputs: Inputs, metrics: Sequence[Metric], seed: int) -> dict[str, dict[str, Mean]]:
    """What random order and the oracle score: they reorder the evaluated ranking.

    So only metrics of the ranking have a figure.
    """
    ranking = given(inputs.ranking, "the ranking")
    keys = np.random.default_rng(seed).random(ranking.grade.shape)
    keys[~ranking.within(ranking.depth)] = np.inf
    shuffled = ranking.reordered(np.argsort(keys, axis=1, kind="stable"))
    only = [metric for metric in metrics if metric.definition.on == "ranking"]
    rows = {}
    for name, reordered in (("random", shuffled), ("oracle", ranking.oracle())):
        again = replace(inputs, ranking=reordered)
        rows[name] = means({metric: metric(again) for metric in only}, again)[ALL]
    return rows


def _figures(
    judge: Judge, rankings: Rankings, like: Inputs, metrics: Sequence[Metric]
) -> dict[str, Mean]:
    inputs = judge.inputs(
        rankings, given(like.objective, "an objective"), relevance_level=like.relevance_level
    )
    return means({metric: metric(inputs) for metric in metrics}, inputs)[ALL]


def _depth_notes(metrics: Sequence[Metric], config: Config) -> tuple[str, ...]:
    # Without refill, production's limit cuts the list that the lanes made.
    shallow = not config.semantics.trust_refill and config.limit < config.lane_depth
    depth = config.limit if shallow else config.lane_depth
    cut = "at which the searched list is cut" if shallow else "to which a lane is read"
    return _too_deep(metrics, depth, cut)


def _too_deep(metrics: Sequence[Metric], depth: int, cut: str) -> tuple[str, ...]:
    deep = [m.name for m in metrics if m.k is not None and m.k > depth]
    if not deep:
        return ()
    return (f"{', '.join(deep)}: beyond the depth {cut} ({depth}); what lies below was not ranked",)


def _bounds(values: Mapping[Metric, Values]) -> dict[str, float]:
    """Exact upper bounds of the leak rates: none seen does not mean none there."""
    bounds = {}
    for metric, column in values.items():
        if metric.name in _BOUNDED:
            defined = column[~np.isnan(column)]
            bounds[metric.name] = upper_bound(int((defined > 0).sum()), len(defined))
    return bounds


def _listed_leaks(dataset: Dataset, inputs: Inputs) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "query_id": dataset.queries[leak.query].id,
            "memory_id": None if leak.row is None else dataset.memories[leak.row].id,
            "stage": leak.stage,
            "why": leak.why,
        }
        for leak in leaks(inputs)
    )
