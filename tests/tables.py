"""Candidates tables by hand: what the lanes returned is written down, nothing is searched."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from comis_eval.candidates import Candidates, Facts, RerankScores, Retrieval
from comis_eval.config import Config
from comis_eval.lanes.base import LaneHits
from comis_eval.store import Store
from comis_eval.store.corpus import Corpus, QueryBatch
from comis_eval.types import Memory, Query
from tests.builders import query


def corpus_of(memories: Sequence[Memory]) -> Corpus:
    """The memories through the store's writing rules."""
    store = Store.open(None)
    store.add(memories)
    corpus = store.corpus()
    store.close()
    return corpus


def batch_of(corpus: Corpus, queries: Sequence[Query]) -> QueryBatch:
    return QueryBatch(
        tuple(q.text for q in queries),
        tuple(q.tenancy for q in queries),
        np.array([corpus.scope_of.get(q.tenancy.named, -1) for q in queries], dtype=np.int32),
        np.array([q.now for q in queries], dtype=np.int64),
        tuple(q.filters for q in queries),
    )


def hits(corpus: Corpus, lists: Sequence[Sequence[str]]) -> LaneHits:
    """Lane hits from ids, one list a query, best first."""
    rows = [corpus.row_of[id_] for ids in lists for id_ in ids]
    lengths = [len(ids) for ids in lists]
    return LaneHits(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array(rows, dtype=np.int32),
        np.array([1.0 / (1 + i) for n in lengths for i in range(n)]),
        np.ones(len(lists), dtype=bool),
    )


def table(
    memories: Sequence[Memory],
    config: Config,
    *,
    fts: Sequence[str] = (),
    vector: Sequence[str] = (),
    asked: Query | None = None,
    rerank: Mapping[str, float] | None = None,
    **fields: Any,
) -> Candidates:
    """A table of one query."""
    corpus = corpus_of(memories)
    asked = asked or query("anything")
    made = Candidates.assemble(
        Facts(corpus, fields.pop("usefulness", {})),
        [asked],
        batch_of(corpus, [asked]),
        Retrieval.of(config),
        {"fts": hits(corpus, [fts]), "vector": hits(corpus, [vector])},
    )
    if rerank is not None:
        rows = sorted((corpus.row_of[id_], value) for id_, value in rerank.items())
        fields["rerank"] = RerankScores(
            np.array([row for row, _ in rows], dtype=np.int64),
            np.array([value for _, value in rows], dtype=np.float64),
        )
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
