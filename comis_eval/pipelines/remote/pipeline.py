"""A live system as a pipeline: the same queries, the same metrics, another machine's answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.errors import RemoteError
from comis_eval.pipelines.remote import jsonrpc, mcp_tool
from comis_eval.pipelines.remote.answers import Answer, Answers
from comis_eval.pipelines.remote.asking import Call, ask
from comis_eval.pipelines.remote.transport import Connect, Connection
from comis_eval.pipelines.retrieval import Progress
from comis_eval.stages.formulate import formulate
from comis_eval.stages.recall_tool.view import moment
from comis_eval.store.loading import key_of
from comis_eval.types import Query

_PLACEHOLDER = re.compile(r"(\{(?:query|tenantId|agentId|now)\})")


@dataclass(frozen=True, eq=False)
class Remote:
    """Asks a live system. Where it is and how it is asked stands in ``harness.remote``.

    A live system promises nothing that this side could enforce: what leaks is reported.

    Attributes:
        dataset: What its answers are held against; it says nothing of where to ask.
        config: The configuration.
        seed: Of the waits between attempts.
        progress: Told of each query that is done.
    """

    dataset: Dataset
    config: Config
    seed: int = 0
    progress: Progress | None = None
    name: str = "remote"
    enforces: tuple[str, ...] = ()

    def answers(self, queries: Sequence[Query]) -> Answers:
        """Ask every query.

        Raises:
            RemoteError: If the system cannot be reached at all, or the settings do not say
                where it is.
        """
        try:
            import anyio
        except ImportError as error:
            raise RemoteError(
                "asking a live system needs the extra mcp: pip install 'comis_eval[mcp]'"
            ) from error
        settings = self.config.harness.remote
        calls = [Call(query.id, self.arguments(query)) for query in queries]

        async def run() -> Answers:
            return await ask(
                calls, self._connect(), settings, seed=self.seed, tell=self._tell(len(calls))
            )

        return anyio.run(run)

    def arguments(self, query: Query) -> dict[str, Any]:
        """The arguments of one call.

        What the system takes by itself comes first, then the query's own filters, then the
        configured arguments, of which later ones win.
        """
        settings, rag = self.config.harness.remote, self.config.rag
        over_rpc = settings.transport == "jsonrpc"
        turns = self.config.semantics.query_context_turns if over_rpc else 0
        text = formulate(query.text, query.turns, context_turns=turns)
        filled: dict[str, Any] = {settings.query_argument: text}
        if over_rpc:
            filled["limit"] = rag.max_results
            filled["minScore"] = rag.min_score
            filled["trustLevels"] = list(rag.include_trust_levels)
        if settings.send_filters:
            filled |= _jsonable(query.filters.parameters)
            if query.filters.tags:
                filled["tags"] = list(query.filters.tags)
        known = {
            "{query}": text,
            "{tenantId}": query.tenancy.tenant_id,
            "{agentId}": query.tenancy.named.agent_id or "",
            "{now}": str(moment(query.now)),
        }
        return filled | {name: _filled(value, known) for name, value in settings.arguments.items()}

    def rows(self, queries: Sequence[Query], answers: Answers) -> NDArray[np.int32]:
        """Memory rows of each answer, shape (q, longest), -1 behind its end.

        An id that the dataset does not hold is -1 as well, within the answer's length; a key
        that two memories of the tenant share names the one of the query's own agent, else
        the newest.
        """
        lists = [
            [self._row(query, one) for one in answer.ids] if isinstance(answer, Answer) else []
            for query, answer in zip(queries, answers.of, strict=True)
        ]
        table = np.full((len(lists), max(map(len, lists), default=0)), -1, dtype=np.int32)
        for position, found in enumerate(lists):
            table[position, : len(found)] = found
        return table

    def _row(self, query: Query, named: str) -> int:
        if self.config.harness.remote.match == "id":
            return self.dataset.row_of.get(named, -1)
        rows = self._by_key.get((query.tenancy.tenant_id, named), ())
        mine = query.tenancy.named
        memories = self.dataset.memories
        return max(
            rows,
            key=lambda row: (memories[row].tenancy == mine, memories[row].created_at, -row),
            default=-1,
        )

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for row, memory in enumerate(self.dataset.memories):
            key = memory.key or key_of(memory.id)
            found.setdefault((memory.tenancy.tenant_id, key), []).append(row)
        return found

    def _connect(self) -> Connect:
        settings = self.config.harness.remote
        if settings.transport is None:
            raise RemoteError(
                "harness.remote.transport is not set: say stdio (with harness.remote.command), "
                "http or jsonrpc (with harness.remote.url)"
            )
        way = jsonrpc.connect if settings.transport == "jsonrpc" else mcp_tool.connect

        def connect() -> AbstractAsyncContextManager[Connection]:
            return way(settings)

        return connect

    def _tell(self, total: int) -> Callable[[int], None]:
        def tell(done: int) -> None:
            if self.progress is not None:
                self.progress("ask", done, total)

        return tell


def _jsonable(parameters: Any) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }


def _filled(value: Any, known: dict[str, str]) -> Any:
    """Fill the placeholders of a template, each once: what is filled in is not looked at again."""
    if isinstance(value, dict):
        return {name: _filled(inner, known) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, known) for inner in value]
    if not isinstance(value, str):
        return value
    parts = _PLACEHOLDER.split(value)
    return "".join(known.get(part, part) for part in parts)
