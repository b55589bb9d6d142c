"""Questions asked where nobody knows: for a set whose every query has an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import DatasetError
from experiments.common.scene import Scene

EVERY = 4
"""Each so-manieth query of the headline categories is asked elsewhere as well."""


def with_unanswerable(scene: Scene) -> Scene:
    """The set itself when it has unanswerable queries, else with some asked elsewhere."""
    if any(not query.answerable for query in scene.dataset.queries):
        return scene
    return scene.kept("elsewhere", lambda: Scene(_asked_elsewhere(scene.dataset), scene.retriever))


def _asked_elsewhere(dataset: Dataset) -> Dataset:
    """Add queries in the tenancy after their own, where nothing answers them.

    Raises:
        DatasetError: If there is no other tenancy.
    """
    tenancies = sorted({query.tenancy for query in dataset.queries}, key=lambda one: one.named)
    if len(tenancies) < 2:
        raise DatasetError(
            f"{dataset.name}: no query is unanswerable, and there is one tenancy alone, so none "
            "can be asked elsewhere; take a larger part (--limit), or add unanswerable queries"
        )
    after = dict(zip(tenancies, [*tenancies[1:], tenancies[0]], strict=True))
    headline = [query for query in dataset.queries if dataset.headline(query.category)]
    elsewhere = tuple(
        replace(
            query,
            id=f"{query.id}-elsewhere",
            group=f"{query.group or query.id}-elsewhere",
            tenancy=after[query.tenancy],
            category="elsewhere",
            answerable=False,
            superseded=None,
        )
        for query in headline[::EVERY]
    )
    judged = dataset.judgments
    triples = np.stack((judged.queries, judged.rows, judged.grades), axis=1).astype(np.int64)
    queries = (*dataset.queries, *elsewhere)
    return replace(
        dataset, queries=queries, judgments=Judgments.of(triples, n_queries=len(queries))
    )
