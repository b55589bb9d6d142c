"""The memories of the recall tool as columns, and who may be shown which of them.

Lanes group by ``scope``: here that is the workspace a memory belongs to. Everything else
that a call asks for is one mask over all memories, made before any arm ranks, so that an
arm is never filled with rows that fall out later. Source: specification of the recall
tool, sections 0, 3.5 and 3.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from comis_eval.stages.recall_tool.fade import freshness
from comis_eval.stages.recall_tool.request import Request
from comis_eval.stages.recall_tool.words import lowered
from comis_eval.store.corpus import Corpus, Entities
from comis_eval.store.loading import load
from comis_eval.types import Memory, Tenancy

Mask = NDArray[np.bool_]

PINNED_TAG = "kind:pinned"


class Caller(NamedTuple):
    """Who asks, and when.

    Attributes:
        tenancy: Whose connection it is.
        now: The moment, ms.
    """

    tenancy: Tenancy
    now: int


@dataclass(frozen=True, eq=False)
class ToolCorpus(Corpus):
    """Memories with every field of the recall tool, grouped by workspace.

    Attributes:
        by_agent: Whether an agent's tenancy is a workspace of its own; else a tenant is one.
        left_out: Why a row is never shown, by row.
    """

    by_agent: bool
    left_out: dict[int, str]

    @classmethod
    def of(
        cls, memories: Sequence[Memory], *, by_agent: bool = False, default_expiry: bool = True
    ) -> Self:
        """Return the columns of memories, written as ``remember`` would.

        Raises:
            StoreError: If a row of agent scope has no author.
        """

        def workspace(tenancy: Tenancy) -> Tenancy:
            return _workspace(tenancy, by_agent)

        kept, left_out = load(memories, workspace, default_expiry=default_expiry)
        nobody = np.empty(0, dtype=np.int32)
        return cls(
            kept,
            Entities(nobody, nobody, ()),
            tuple(dict.fromkeys(workspace(memory.tenancy) for memory in kept)),
            by_agent,
            left_out,
        )

    def workspace(self, tenancy: Tenancy) -> Tenancy:
        """Return the workspace a tenancy belongs to."""
        return _workspace(tenancy, self.by_agent)

    @cached_property
    def scope(self) -> NDArray[np.int32]:
        """Number of each memory's workspace, shape (m,)."""
        numbers = [self.scope_of[self.workspace(m.tenancy)] for m in self.memories]
        return np.array(numbers, dtype=np.int32)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Each memory's key in lower case."""
        return tuple(lowered(memory.key or "") for memory in self.memories)

    @cached_property
    def key_rank(self) -> NDArray[np.int32]:
        """Place of each memory by key, then by id, shape (m,): what settles ties at last."""
        order = sorted(
            range(len(self)), key=lambda row: (self.memories[row].key or "", self.memories[row].id)
        )
        ranks = np.empty(len(self), dtype=np.int32)
        ranks[order] = np.arange(len(self), dtype=np.int32)
        return ranks

    @cached_property
    def importance(self) -> NDArray[np.float32]:
        """Shape (m,), in [0, 1]."""
        return np.array([m.importance for m in self.memories], dtype=np.float32)

    @cached_property
    def relevance(self) -> NDArray[np.float32]:
        """The stored relevance, whatever the query, shape (m,), in [0, 1]."""
        return np.array([m.relevance for m in self.memories], dtype=np.float32)

    @cached_property
    def freshness(self) -> NDArray[np.float64]:
        """What each memory's status leaves of its score, shape (m,)."""
        return np.array([freshness(m.status) for m in self.memories], dtype=np.float64)

    @cached_property
    def updated_at(self) -> NDArray[np.int64]:
        """When each memory was last written, ms, shape (m,)."""
        return np.array([m.updated_at for m in self.memories], dtype=np.int64)

    def visible(self, caller: Caller, request: Request) -> Mask:
        """Tell which memories a call may be answered from, shape (m,).

        ``relevance_min`` is not asked here unless it is the stored one's: the query's is
        known only after fusion.
        """
        ok = self._askable(caller, request)
        if request.project_id is not None:
            ok &= self._projects(request.project_id)
        # 0.3 is stored as a 32-bit float, and has to pass a bound of 0.3.
        ok &= self.importance >= np.float32(request.min_importance)
        return ok

    def pinned(self, caller: Caller, request: Request) -> NDArray[np.int64]:
        """Return the rows that lead a call's first page, the most important first.

        Pinned are rows of the workspace, and of the project that is asked for; never those
        of one agent. They need no importance, and the workspace's no project.
        """
        if PINNED_TAG not in self.tagged:
            return np.empty(0, dtype=np.int64)
        ok = self._askable(caller, request) & self.tagged[PINNED_TAG]
        here = self._scopes("workspace")
        if request.project_id is not None:
            here = here | self._projects(request.project_id)
        rows = np.flatnonzero(ok & here)
        keys = (self.key_rank[rows], -self.updated_at[rows], -self.importance[rows])
        return rows[np.lexsort(keys)]

    def _askable(self, caller: Caller, request: Request) -> Mask:
        """Rows of the workspace that live, are not somebody else's, and pass the filters."""
        workspace = self.scope_of.get(self.workspace(caller.tenancy.named), -1)
        ok: Mask = (self.scope == workspace) & self._shown
        ok &= ~self._scopes("agent") | self._authors(caller.tenancy.named.agent_id or "")
        if not request.include_expired:
            ok &= self.expires_at > caller.now
        if not request.include_archived:
            ok &= ~self._archived
        if not request.include_superseded:
            ok &= ~self._superseded
        if request.scope is not None:
            ok &= self._scopes(request.scope)
        if request.created_by is not None:
            ok &= self._authors(request.created_by)
        if request.since is not None:
            ok &= self.created_at >= request.since
        if request.until is not None:
            ok &= self.created_at <= request.until
        for tag in request.tags:
            ok &= self.tagged.get(tag, False)
        if request.tags_any:
            some = np.zeros(len(self), dtype=bool)
            for tag in request.tags_any:
                some |= self.tagged.get(tag, False)
            ok &= some
        return ok

    @cached_property
    def _shown(self) -> Mask:
        shown = np.ones(len(self), dtype=bool)
        shown[list(self.left_out)] = False
        return shown

    @cached_property
    def _archived(self) -> Mask:
        found = [m.archived or m.status == "archived" for m in self.memories]
        return np.array(found, dtype=bool)

    @cached_property
    def _superseded(self) -> Mask:
        return np.array([m.status == "superseded" for m in self.memories], dtype=bool)

    def _scopes(self, scope: str) -> Mask:
        return self._having("scope", scope)

    def _authors(self, author: str) -> Mask:
        return self._having("created_by", author)

    def _projects(self, project: str) -> Mask:
        return self._having("project_id", project)

    def _having(self, field: str, value: str) -> Mask:
        """Tell which memories have a value in a field."""
        if field not in self._columns:
            values = [getattr(memory, field) for memory in self.memories]
            numbers = {each: number for number, each in enumerate(dict.fromkeys(values))}
            self._columns[field] = numbers, np.array([numbers[v] for v in values], dtype=np.int32)
        numbers, column = self._columns[field]
        having: Mask = column == numbers.get(value, -1)
        return having

    @cached_property
    def _columns(self) -> dict[str, tuple[dict[str | None, int], NDArray[np.int32]]]:
        return {}


class Views(NamedTuple):
    """What each query of a set may be answered from; ``allow`` is a batch's ``allowed``.

    Attributes:
        masks: One a distinct view, shape (d, m).
        which: Each query's view, shape (q,).
    """

    masks: Mask
    which: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: ToolCorpus, callers: Sequence[Caller], requests: Sequence[Request]) -> Self:
        """Work out the views of some calls; calls that ask alike share one."""
        numbers: dict[tuple[Caller, Request], int] = {}
        masks: list[Mask] = []
        which: list[int] = []
        for caller, request in zip(callers, requests, strict=True):
            number = numbers.setdefault((caller, seen(request)), len(numbers))
            if number == len(masks):
                masks.append(corpus.visible(caller, request))
            which.append(number)
        planes = np.array(masks, dtype=bool).reshape(len(masks), len(corpus))
        return cls(planes, np.array(which, dtype=np.int64))

    def row(self, query: int) -> Mask:
        """Return what one query may be answered from, shape (m,)."""
        row: Mask = self.masks[self.which[query]]
        return row

    def allow(self, queries: NDArray[np.int64], rows: NDArray[np.int64]) -> Mask:
        """Tell which pairs may meet, both of one shape."""
        pairs: Mask = self.masks[self.which[queries], rows]
        return pairs


def seen(request: Request) -> Request:
    """Return a call without what does not say which memories it may be answered from."""
    return replace(
        request,
        query="",
        limit=1,
        offset=0,
        full=False,
        relevance_min=0.0,
        order_by=None,
        profile="",
        decay=False,
    )


def _workspace(tenancy: Tenancy, by_agent: bool) -> Tenancy:
    return tenancy.named if by_agent else Tenancy(tenancy.tenant_id, None)
