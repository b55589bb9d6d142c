"""The recall tool as a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from comis_eval.candidates import Rankings
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.pipelines.recall_tool.answer import envelope
from comis_eval.pipelines.recall_tool.arms import corpus_of, search
from comis_eval.pipelines.recall_tool.pages import Paged
from comis_eval.pipelines.recall_tool.rank import rank
from comis_eval.pipelines.recall_tool.table import ToolTable
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.store.loading import near_duplicates
from comis_eval.types import Query


@dataclass(frozen=True, eq=False)
class RecallTool:
    """Two arms under the caller's filters, fused, gated, ordered, cut into pages.

    Example::

        tool = RecallTool.over(load_dataset("datasets/starter"))
        print(tool.recall(query)["items"])

    Attributes:
        retriever: The memories, made searchable.
        config: ``harness.recallTool`` holds the tool's settings, ``harness.lanes`` its arms.
    """

    retriever: Retriever
    config: Config = Config()
    name: str = "recall-tool"
    enforces: tuple[str, ...] = ("scope",)

    @classmethod
    def over(cls, dataset: Dataset, config: Config | None = None) -> RecallTool:
        """The tool over a dataset, with the packaged models."""
        return cls(Retriever(dataset), config or Config())

    @property
    def left_out(self) -> dict[str, str]:
        """Which memories the tool would not have stored, by id, and why."""
        corpus = corpus_of(self.retriever, self.config)
        return {corpus.memories[row].id: why for row, why in sorted(corpus.left_out.items())}

    @property
    def near_duplicates(self) -> dict[str, str]:
        """Which memories say nearly what an older one says, by id: the older one's key."""
        corpus = corpus_of(self.retriever, self.config)
        found = near_duplicates(corpus.memories, corpus.workspace)
        return {
            corpus.memories[row].id: corpus.memories[older].key or ""
            for row, older in sorted(found.items())
        }

    def table(self, queries: Sequence[Query]) -> ToolTable:
        """What the arms find for a whole query set.

        Raises:
            RequestError: If a query's parameters are not allowed, naming the query.
            LaneError: If an arm could not search.
            ModelError: If a model that is asked for is missing.
        """
        return search(self.retriever, queries, self.config)

    def paged(self, queries: Sequence[Query]) -> Paged:
        """Answer a whole query set, told list by list.

        Raises:
            RequestError, LaneError, ModelError: As :meth:`table` does.
        """
        return rank(self.table(queries), self.config)

    def rank(self, queries: Sequence[Query]) -> Rankings:
        """Answer a whole query set. The ranking is the whole list, the context the page.

        Raises:
            RequestError, LaneError, ModelError: As :meth:`table` does.
        """
        return self.paged(queries).rankings

    def recall(self, query: Query) -> dict[str, Any]:
        """Answer one call as the live tool would: without an embedder, by text alone.

        Returns:
            The JSON object that a caller gets.

        Raises:
            RequestError: If a parameter is not allowed.
            LaneError: If an arm could not search.
        """
        return envelope(self.live(query), 0)

    def live(self, query: Query) -> Paged:
        """Answer one call as :meth:`recall` does, told stage by stage.

        Raises:
            RequestError, LaneError: As :meth:`recall` does.
        """
        table = search(self.retriever, [query], self.config, live=True)
        return rank(table, self.config)
