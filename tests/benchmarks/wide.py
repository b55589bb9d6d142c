"""A large table by hand: many queries, many candidates, nothing searched."""

import numpy as np

from comis_eval.candidates import Candidates, Facts, Retrieval
from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.lanes.base import LaneHits
from comis_eval.store.corpus import Corpus, QueryBatch
from comis_eval.types import Filters, Memory, Query, Tenancy, TrustLevel
from tests.builders import DAY, NOW

LEVELS = (TrustLevel.SYSTEM, TrustLevel.LEARNED, TrustLevel.EXTERNAL)


def dataset(queries: int, memories: int, *, seed: int = 0, judged: int = 3) -> Dataset:
    """Memories of every kind and judged queries, one tenancy."""
    rng = np.random.default_rng(seed)
    levels = rng.choice(3, memories, p=[0.1, 0.7, 0.2])
    ages = rng.integers(0, 400 * DAY, memories)
    known = rng.random((3, memories)) < np.array([[0.5], [0.3], [0.3]])
    rows = tuple(
        Memory(
            id=f"m{i}",
            content=f"memory number {i} " + "x" * int(20 + i % 280),
            trust_level=LEVELS[levels[i]],
            created_at=NOW - int(ages[i]),
            proof_count=1 + i % 30 if known[0, i] else None,
            confidence=(i % 10) / 10 if known[1, i] else None,
            occurred_at=NOW - int(ages[i]) - DAY if known[2, i] else None,
        )
        for i in range(memories)
    )
    asked = tuple(
        Query(id=f"q{i}", text="x", now=NOW, category=f"c{i % 5}", group=f"g{i // 2}")
        for i in range(queries)
    )
    pairs = {(q, int(r)) for q in range(queries) for r in rng.integers(0, memories, judged)}
    triples = np.array([(q, r, 1 + (q + r) % 3) for q, r in sorted(pairs)])
    return Dataset(
        name="wide",
        memories=rows,
        queries=asked,
        judgments=Judgments.of(triples, n_queries=queries),
    )


def table(data: Dataset, config: Config, *, width: int, seed: int = 0) -> Candidates:
    """Two lanes that agree on some of ``width`` candidates a query, judged ones among them."""
    rng = np.random.default_rng(seed)
    queries, memories = len(data.queries), len(data.memories)
    near = rng.integers(0, memories - width, (queries, 1)) + np.arange(width)
    first = data.judgments.starts[:-1]
    near[:, 0] = data.judgments.rows[np.minimum(first, len(data.judgments) - 1)]
    near[:, 0] = np.where((near[:, 1:] == near[:, :1]).any(axis=1), near[:, 1], near[:, 0])
    depth = int(width * 0.62)
    tenancy = Tenancy()
    corpus = Corpus.from_memories(data.memories)
    batch = QueryBatch(
        tuple("x" for _ in data.queries),
        tuple(tenancy for _ in data.queries),
        np.zeros(queries, np.int32),
        np.full(queries, NOW),
        tuple(Filters() for _ in data.queries),
    )

    def lane() -> LaneHits:
        picked = np.argsort(rng.random(near.shape), axis=1)[:, :depth]
        rows = np.take_along_axis(near, picked, axis=1)
        rows.sort(axis=1)
        again = np.zeros(rows.shape, dtype=bool)
        again[:, 1:] = rows[:, 1:] == rows[:, :-1]
        order = np.argsort(rng.random(rows.shape), axis=1)
        rows, again = np.take_along_axis(rows, order, 1), np.take_along_axis(again, order, 1)
        lengths = (~again).sum(axis=1)
        flat = rows[~again].astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return LaneHits(offsets, flat, rng.random(len(flat)), np.ones(queries, dtype=bool))

    lanes = {"fts": lane(), "vector": lane()}
    return Candidates.assemble(Facts(corpus), data.queries, batch, Retrieval.of(config), lanes)
