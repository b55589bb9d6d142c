"""The tools that agents call, over the memories of a dataset or a database.

Nothing here knows the protocol. Answers are those of
:class:`~comis_eval.pipelines.recall_tool.RecallTool`; there is no other implementation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments, Policy, ScopeRule
from comis_eval.models.base import Embedder
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.recall_tool.answer import stored
from comis_eval.pipelines.recall_tool.arms import corpus_of
from comis_eval.pipelines.recall_tool.lookup import get_memory, get_project_knowledge
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.serve.vectors import KeptVectors
from comis_eval.stages.recall_tool.request import request_of
from comis_eval.store import Store, Writer
from comis_eval.store.tool_corpus import Caller, ToolCorpus
from comis_eval.types import Filters, Query, Tenancy

Arguments = Mapping[str, object]
Answer = dict[str, Any]


def by_the_clock() -> int:
    """Return this moment in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How memories are served.

    Attributes:
        config: ``harness.recallTool`` holds the tool's settings, ``harness.lanes`` its arms.
        now: The moment of every call, ms.
        writable: Whether ``remember`` is a tool.
        projects: Project ids by the slugs that ``project:`` tags name.
        cache: Folder of the embeddings on disk; None keeps none.
        embedder: Stands in for the configured one; tests pass theirs.
    """

    config: Config = Config()
    now: Callable[[], int] = by_the_clock
    writable: bool = False
    projects: Mapping[str, str] = field(default_factory=dict)
    cache: Path | None = None
    embedder: Embedder | None = None


class ServedMemories:
    """Memories, and what may be asked of them. Belongs to the thread that opened it.

    A reading call answers from one unchanging state, the memories as the last finished write
    left them.
    """

    def __init__(self, dataset: Dataset, setup: Setup, store: Store | None) -> None:
        self._dataset = dataset
        self._setup = setup
        self._store = store
        self._tool: RecallTool | None = None
        self._stamp: tuple[int, int] | None = None
        self._embedder = setup.embedder or KeptVectors(self._loaded)

    @classmethod
    def of_dataset(cls, dataset: Dataset, setup: Setup) -> ServedMemories:
        """Serve a dataset. It is never written: what is remembered is gone at the end."""
        # Vectors that came along are of the dataset's queries alone, not of what is asked here.
        bare = replace(dataset, folder=None, embeddings={})
        if not setup.writable:
            return cls(bare, setup, None)
        store = Store.open(None)
        store.add(dataset.memories)
        return cls(bare, setup, store)

    @classmethod
    def of_database(cls, path: Path, setup: Setup) -> ServedMemories:
        """Serve a store's file: what is remembered is written to it, when writable.

        Else it is read once, and neither the file nor its folder's other files change.

        Raises:
            StoreError: If it is no store, or cannot be opened.
        """
        if setup.writable:
            return cls(_empty(path), setup, Store.open(path))
        with Store.copied(path) as store:
            memories = store.corpus().memories
        return cls(replace(_empty(path), memories=memories), setup, None)

    def close(self) -> None:
        """Close the store behind it."""
        if self._store is not None:
            self._store.close()

    def recall(self, tenancy: Tenancy, arguments: Arguments) -> Answer:
        """Answer a search.

        Raises:
            RequestError: If an argument is not allowed.
        """
        request_of(arguments, self._setup.config.harness.recall_tool)
        parameters = {name: value for name, value in arguments.items() if name != "query"}
        query = Query(
            id="call",
            text=str(arguments["query"]),
            now=self._setup.now(),
            tenancy=tenancy,
            filters=Filters(parameters=parameters),
        )
        return self._current().recall(query)

    def get_memory(self, tenancy: Tenancy, arguments: Arguments) -> Answer:
        """Return one memory whole; see :mod:`comis_eval.pipelines.recall_tool.lookup`.

        Raises:
            RequestError: If an argument is not allowed, or there is none.
        """
        return get_memory(self._corpus(), self._caller(tenancy), arguments)

    def get_project_knowledge(self, tenancy: Tenancy, arguments: Arguments) -> Answer:
        """Return a project's memories in short.

        Raises:
            RequestError: If an argument is not allowed.
        """
        return get_project_knowledge(self._corpus(), self._caller(tenancy), arguments)

    def remember(self, tenancy: Tenancy, arguments: Arguments) -> Answer:
        """Write a memory; the next call of anybody sees it.

        Raises:
            RequestError: If an argument is not allowed.
            StoreError: If the write is refused.
        """
        if self._store is None:
            raise TypeError("remember needs memories that were opened writable")
        writer = Writer(
            tenancy=tenancy,
            now=self._setup.now(),
            by_agent=self._dataset.policy.scope is ScopeRule.TENANCY,
            projects=self._setup.projects,
        )
        done = self._store.remember(arguments, writer)
        alone = ToolCorpus.of([done.memory], default_expiry=False)
        answer: Answer = {"memory": stored(alone, 0), "outcome": done.outcome}
        if done.near_dup_key is not None:
            answer["near_dup_key"] = done.near_dup_key
        return answer

    def _caller(self, tenancy: Tenancy) -> Caller:
        return Caller(tenancy, self._setup.now())

    def _corpus(self) -> ToolCorpus:
        return corpus_of(self._current().retriever, self._setup.config)

    def _current(self) -> RecallTool:
        """The tool over the memories as they are now; made anew after a write."""
        stamp = None if self._store is None else self._store.stamp()
        if self._tool is None or stamp != self._stamp:
            dataset = self._dataset
            if self._store is not None:
                dataset = replace(dataset, memories=self._store.corpus().memories)
            retriever = Retriever(dataset, embedder=self._embedder, cache=None)
            self._tool, self._stamp = RecallTool(retriever, self._setup.config), stamp
        return self._tool

    def _loaded(self) -> Embedder:
        return Retriever(self._dataset, cache=self._setup.cache).embedder_for(self._setup.config)


def _empty(path: Path) -> Dataset:
    """A dataset as a database has none: no queries, a tenant is a workspace."""
    return Dataset(
        name=path.name,
        memories=(),
        queries=(),
        judgments=Judgments.of([], n_queries=0),
        policy=Policy(scope=ScopeRule.TENANT),
    )
