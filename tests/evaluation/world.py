"""A labelled world so small that every figure can be worked on paper.

Vectors are given by hand and every boost is off, so the list is always the same:
alpha, beta, web, gamma, by falling cosine with any query.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.evaluation import Evaluation, evaluate
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Memory, Query, Tenancy, TrustLevel
from tests.builders import memory, query

COSINES = {"other": 0.95, "alpha": 0.9, "beta": 0.8, "web": 0.7, "gamma": 0.6}

ALPHA = memory("a", "alpha")
BETA = memory("b", "beta", trust_level=TrustLevel.SYSTEM)
WEB = memory("w", "web", trust_level=TrustLevel.EXTERNAL)
GAMMA = memory("c", "gamma")
OTHER = memory("o", "other", tenancy=Tenancy("somebody else"))
MEMORIES = (ALPHA, BETA, WEB, GAMMA, OTHER)

QUERIES = (
    query("first", "q1", category="x"),
    query("second", "q2", category="y"),
    query("third", "q3", category="z", answerable=False),
)
GRADES = {("q1", "b"): 2, ("q1", "c"): 1, ("q2", "a"): 1, ("q2", "w"): 1}

PLAIN = {f"{name}Alpha": 0.0 for name in ("recency", "temporal", "proof", "trust", "usefulness")}


class HandEmbedder:
    """Knows the vector of each text; any other text is a query and points along the first axis."""

    name = "by hand"
    fingerprint = "0" * 64
    dim = 2

    def __init__(self, *, reportable: bool = True) -> None:
        self.reportable = reportable
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        cosines = [COSINES.get(text.strip(), 1.0) for text in texts]
        return np.array([[c, sqrt(1 - c * c)] for c in cosines], dtype=np.float32).reshape(-1, 2)


def world(
    memories: Sequence[Memory] = MEMORIES,
    queries: Sequence[Query] = QUERIES,
    grades: dict[tuple[str, str], int] | None = None,
    **fields: Any,
) -> Dataset:
    rows = {one.id: row for row, one in enumerate(memories)}
    places = {one.id: place for place, one in enumerate(queries)}
    triples = [
        (places[asked], rows[held], grade)
        for (asked, held), grade in (GRADES if grades is None else grades).items()
    ]
    return Dataset(
        name="world",
        version="1",
        memories=tuple(memories),
        queries=tuple(queries),
        judgments=Judgments.of(triples, n_queries=len(queries)),
        **fields,
    )


def settings(rag: dict[str, Any] | None = None, **parts: Any) -> Config:
    parts.setdefault("harness", {"lanes": ["vector"]})
    return Config.model_validate(
        {"rag": {"scoring": PLAIN, "minScore": 0.0, **(rag or {})}, **parts}
    )


def measured(dataset: Dataset, config: Config | None = None, **options: Any) -> Evaluation:
    options.setdefault("retriever", Retriever(dataset, embedder=HandEmbedder(), cache=None))
    return evaluate(dataset, config or settings(), **options)
