"""The SQLite store: schema as numbered migrations, writing rules, columnar reads."""

from comis_eval.store.corpus import Corpus, Entities, QueryBatch

__all__ = ["Corpus", "Entities", "QueryBatch"]
