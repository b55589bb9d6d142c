"""MemoryRecall: the pipeline of the agent platform Comis, in both semantics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comis_eval.candidates import Candidates, Rankings
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.pipelines.explain import random_delimiter, result
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Query, RecallResult

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class MemoryRecall:
    """Search, fuse, rerank, score, filter by trust, drop duplicates, fit, present.

    Example::

        recall = MemoryRecall.over(load_dataset("datasets/starter"))
        print(recall.recall(query).section)

    Attributes:
        retriever: The memories, made searchable.
        config: Every knob and switch.
        clock: Seconds, for the reranker's timeout in a single recall.
        delimiter: Where the safety markers' random part comes from.
    """

    retriever: Retriever
    config: Config = Config()
    clock: Callable[[], float] = field(default=time.monotonic)
    delimiter: Callable[[], str] = field(default=random_delimiter)
    name: str = "memory-recall"
    enforces: tuple[str, ...] = ("trust", "scope")

    @classmethod
    def over(cls, dataset: Dataset, config: Config | None = None) -> MemoryRecall:
        """The pipeline over a dataset, with the packaged models."""
        return cls(Retriever(dataset), config or Config())

    def candidates(self, queries: Sequence[Query]) -> Candidates:
        """Everything an index or a model has to be asked for, for a whole query set."""
        table = self.retriever.candidates(queries, self.config)
        return self.retriever.rerank(table, self.config)

    def rank(self, queries: Sequence[Query]) -> Rankings:
        """Answer a whole query set; a reranker's time is the cost model's.

        Raises:
            LaneError: If a lane could not search.
            ModelError: If a model that is asked for is missing.
        """
        return rank(self.candidates(queries), self.config)

    def recall(self, query: Query) -> RecallResult:
        """Answer one query as the live system would: a batch of one, by a real clock.

        Raises:
            LaneError: If a lane could not search. A reranker's fault is never raised; it
                stands in the result.
        """
        return result(self.live(query), 0, delimiter=self.delimiter)

    def explain(self, query: Query) -> pd.DataFrame:
        """Why each candidate ranks where it does; see :func:`comis_eval.types.explained`.

        Raises:
            LaneError: If a lane could not search.
        """
        return self.recall(query).explain()

    def live(self, query: Query) -> Rankings:
        """What :meth:`recall` is told from: every stage of the one answer."""
        table = self.retriever.candidates([query], self.config)
        table = self.retriever.rerank_live(table, self.config, clock=self.clock)
        return rank(table, self.config)
