"""One query's way through the stages, told by a ranking or by a stored trace."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Rankings
from comis_eval.evaluation import trace
from comis_eval.stages.rerank import Outcome, Reason

Ids = tuple[str, ...]


class Reranked(NamedTuple):
    """What a reranker made of one query.

    Attributes:
        outcome: How it ended, in lower case: ``ran``, ``skipped``, ...
        reason: Why it did not run; ``none`` when it did.
        answers: The pool with its scores (none counts as 0), best first, then by id.
    """

    outcome: str
    reason: str
    answers: tuple[tuple[str, float], ...]


class Way(Protocol):
    """What each stage left of one query, as ids of memories."""

    def lane(self, name: str) -> Ids:
        """What a lane returned, best first; empty when it did not run."""

    def fused(self) -> Ids:
        """The list after fusion and its floor."""

    def reranked(self) -> Reranked:
        """What the reranker answered."""

    def scored(self) -> Ids:
        """The list as scoring left it."""

    def filtered(self) -> Ids:
        """What the trust filter took, in scored order."""

    def ranking(self) -> Ids:
        """The survivors of trust filter and dedup, best first."""

    def context(self) -> Ids:
        """What was injected, best first."""


class RankedWay(NamedTuple):
    """The way of one query of a ranking.

    Attributes:
        rankings: What a pipeline answered.
        query: Position of the query.
    """

    rankings: Rankings
    query: int

    def lane(self, name: str) -> Ids:
        """See :class:`Way`."""
        return lane_ids(self.rankings, self.query, name)

    def fused(self) -> Ids:
        """See :class:`Way`."""
        present, order = self.rankings.presence["fuse"], self.rankings.fused_order
        return self._ids(_listed(present[self.query], order[self.query]))

    def reranked(self) -> Reranked:
        """See :class:`Way`."""
        rankings, query = self.rankings, self.query
        columns = np.flatnonzero(rankings.rerank_pool[query])
        scores = np.nan_to_num(rankings.reranker[query, columns], nan=0.0).tolist()
        return Reranked(
            Outcome(rankings.rerank_outcome[query]).name.lower(),
            Reason(rankings.rerank_reason[query]).name.lower(),
            best_first(zip(self._ids(columns), scores, strict=True)),
        )

    def scored(self) -> Ids:
        """See :class:`Way`."""
        return self._ids(scored_order(self.rankings, self.query))

    def filtered(self) -> Ids:
        """See :class:`Way`."""
        columns = scored_order(self.rankings, self.query)
        return self._ids(columns[~self.rankings.presence["trust"][self.query, columns]])

    def ranking(self) -> Ids:
        """See :class:`Way`."""
        return ranking_ids(self.rankings, self.query)

    def context(self) -> Ids:
        """See :class:`Way`."""
        return context_ids(self.rankings, self.query)

    def inline(self) -> Ids:
        """Memories placed beside the user message."""
        return self._ids(np.flatnonzero(self.rankings.inline[self.query]))

    def _ids(self, columns: NDArray[np.integer]) -> Ids:
        return _ids(self.rankings, self.query, columns)


def best_first(answers: zip[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Order a reranker's answers by falling score, then by id."""
    return tuple(sorted(answers, key=lambda answer: (-answer[1], answer[0])))


def context_ids(rankings: Rankings, query: int) -> Ids:
    """Ids of the memories in a context, best first."""
    return _ids(rankings, query, _listed(rankings.included[query], rankings.order[query]))


def ranking_ids(rankings: Rankings, query: int) -> Ids:
    """Ids of a ranking (the survivors of trust filter and dedup), best first."""
    return _ids(rankings, query, rankings.order[query, : int(rankings.length[query])])


def lane_ids(rankings: Rankings, query: int, lane: str) -> Ids:
    """Ids that a lane returned, best first; empty when it did not run."""
    if lane not in rankings.ranks:
        return ()
    ranks = rankings.ranks[lane][query]
    columns = np.argsort(ranks, kind="stable")
    return _ids(rankings, query, columns[ranks[columns] > 0])


def scored_order(rankings: Rankings, query: int) -> NDArray[np.intp]:
    """Columns of a query as scoring left them, before trust filter, diversity and dedup."""
    order = trace.scored_order(rankings, slice(query, query + 1))[0]
    return _listed(rankings.presence["score"][query], order)


def _listed(wanted: NDArray[np.bool_], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """The wanted ones of a query's columns, in an order of its columns."""
    columns: NDArray[np.intp] = order[wanted[order]]
    return columns


def _ids(rankings: Rankings, query: int, columns: NDArray[np.integer]) -> Ids:
    memories, rows = rankings.table.corpus.memories, rankings.table.rows[query, columns]
    return tuple(memories[row].id for row in rows.tolist())
