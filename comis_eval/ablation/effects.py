"""What each single thing is worth to a metric, with intervals and corrected p."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from comis_eval.ablation.measure import measure
from comis_eval.ablation.tool_variants import tool_not_ablated
from comis_eval.ablation.variants import Kind, not_ablated
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.gating.render import finite
from comis_eval.pipelines.retrieval import Progress, Retriever
from comis_eval.stats import Comparison, compare, max_t


@dataclass(frozen=True, slots=True)
class Effect:
    """What one variant does to the metric.

    Attributes:
        name, kind, said: The variant's.
        figures: Of variant minus current per query, turned so that higher is better.
        p_adjusted: Corrected over all variants by MaxT.
        changed: Queries whose value changed.
        leaking: Queries whose context holds a memory that the policy keeps out.
    """

    name: str
    kind: Kind
    said: str
    figures: Comparison
    p_adjusted: float
    changed: int
    leaking: int


@dataclass(frozen=True, slots=True)
class Ablation:
    """What every single thing is worth.

    Attributes:
        metric: Which was looked at.
        current: Its figure for the current configuration.
        level: Significance level; intervals hold 1 - level.
        effects: The largest first, whichever way it goes.
        off: What could not be turned off, and why.
    """

    metric: str
    current: float
    level: float
    effects: tuple[Effect, ...]
    off: tuple[str, ...]


def ablate(
    dataset: Dataset,
    config: Config | None = None,
    *,
    metric: str = "utility",
    pipeline: str = "memory-recall",
    level: float = 0.05,
    resamples: int = 10_000,
    seed: int = 0,
    retriever: Retriever | None = None,
    progress: Progress | None = None,
) -> Ablation:
    """Change one thing at a time and measure what it does.

    Args:
        dataset: With the queries to ask.
        config: The current configuration; the documented defaults when left out.
        metric: Which figure.
        pipeline: What answers.
        level: Two-sided significance level, in (0, 1).
        resamples: Flips and bootstrap samples.
        seed: Of both.
        retriever: Indexes and models over the same memories, when they are at hand.
        progress: Told of each variant.

    Raises:
        ConfigError: If ``rag.enabled`` is false.
        ComisEvalError: If a model, a lane or the metric cannot be used.
    """
    config = config or Config()
    measured = measure(
        dataset, config, metric=metric, pipeline=pipeline, retriever=retriever, progress=progress
    )
    differences, groups, shares = measured.differences, measured.groups, measured.weights
    figures = compare(
        differences, groups, shares, measured.categories,
        level=level, resamples=resamples, seed=seed,
    )  # fmt: skip
    adjusted = max_t(differences, groups, shares, flips=resamples, seed=seed)
    moved = (np.nan_to_num(differences) != 0).sum(axis=0)
    effects = [
        Effect(
            variant.name,
            variant.kind,
            variant.said,
            figures[column],
            float(adjusted[column]),
            int(moved[column]),
            int(measured.leaking[column]),
        )
        for column, variant in enumerate(measured.variants)
    ]
    off = tool_not_ablated if pipeline == "recall-tool" else not_ablated
    effects.sort(key=lambda effect: (-abs(np.nan_to_num(effect.figures.mean)), effect.name))
    return Ablation(metric, measured.current, level, tuple(effects), tuple(off(config)))


def as_document(ablation: Ablation) -> dict[str, Any]:
    """An ablation as JSON has it; undefined figures are null."""
    return {
        "metric": ablation.metric,
        "current": finite(ablation.current),
        "level": ablation.level,
        "effects": [_flat(effect) for effect in ablation.effects],
        "not_ablated": list(ablation.off),
    }


def _flat(effect: Effect) -> dict[str, Any]:
    told = asdict(effect)
    figures = told.pop("figures")
    return dict(finite({**told, **figures}))
