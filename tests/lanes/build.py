"""Corpora and query batches for the lanes."""

import numpy as np

from comis_eval.store.corpus import Corpus, QueryBatch
from comis_eval.types import Filters, Tenancy
from tests.builders import NOW, memory

HERE = Tenancy()
THERE = Tenancy("other", "default")


def corpus_of(*contents, tenancy=HERE, prefix="m"):
    made = [memory(f"{prefix}{i}", text, tenancy=tenancy) for i, text in enumerate(contents)]
    return Corpus.from_memories(made)


def batch_of(corpus, texts, *, tenancies=None, now=NOW, filters=None, vectors=None):
    tenancies = tenancies or [HERE] * len(texts)
    return QueryBatch(
        texts=tuple(texts),
        tenancies=tuple(tenancies),
        scope=np.array([corpus.scope_of.get(t, -1) for t in tenancies], dtype=np.int32),
        now=np.full(len(texts), now, dtype=np.int64),
        filters=tuple(filters or [Filters()] * len(texts)),
        vectors=None if vectors is None else np.asarray(vectors, dtype=np.float32),
    )


def single(batch, query):
    """One query of a batch, as a batch of its own."""
    one = slice(query, query + 1)
    return QueryBatch(
        batch.texts[one],
        batch.tenancies[one],
        batch.scope[one],
        batch.now[one],
        batch.filters[one],
        None if batch.vectors is None else batch.vectors[one],
    )


def ids(corpus, hits, query=0):
    return [corpus.memories[row].id for row in hits.of(query)]


def listed(corpus, hits, query=0):
    """Ids with their scores."""
    start, end = hits.offsets[query : query + 2]
    return list(zip(ids(corpus, hits, query), hits.scores[start:end].tolist(), strict=True))


def everyone(queries, rows):
    return np.ones(len(rows), dtype=bool)
