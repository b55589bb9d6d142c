"""The SQLite store: schema as numbered migrations, writing rules, columnar reads."""

from comis_eval.store.corpus import Corpus, Entities, QueryBatch
from comis_eval.store.database import Store
from comis_eval.store.upsert import Remembered, Writer

__all__ = ["Corpus", "Entities", "QueryBatch", "Remembered", "Store", "Writer"]
