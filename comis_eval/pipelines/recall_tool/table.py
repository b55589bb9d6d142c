"""What the arms of the recall tool found for a query set, and what ranking needs beside it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates, Facts
from comis_eval.errors import CoverageError
from comis_eval.stages.recall_tool import gate, key_match
from comis_eval.stages.recall_tool.graph import Edges
from comis_eval.stages.recall_tool.request import Request
from comis_eval.stages.recall_tool.words import lowered
from comis_eval.stages.score import NEUTRAL, Signals
from comis_eval.store.tool_corpus import Caller, ToolCorpus, Views, seen

Mask = NDArray[np.bool_]


class ToolFacts(Facts):
    """Facts of a corpus whose memories no boost moves: the tool has none."""

    def signals(self, now: NDArray[np.int64], rows: NDArray[np.int32]) -> Signals:  # noqa: ARG002
        """Return neutral signals, so that a trace shows factors of 1."""
        return Signals(*(np.full(len(rows), NEUTRAL) for _ in Signals._fields))


@dataclass(frozen=True, eq=False)
class ToolTable:
    """The candidates of a query set with the calls they are for.

    Attributes:
        candidates: Per query and memory the rank in each arm.
        corpus: The memories.
        callers: Who asks each query, and when.
        requests: What each call asks for.
        views: What each may be answered from.
        edges: The knowledge graph, by row.
        words: Words of memories that were looked at, by row; tables of one corpus share them.
        lengths: What items take as JSON but for their numbers; see ``answer.line_lengths``.
    """

    candidates: Candidates
    corpus: ToolCorpus
    callers: tuple[Caller, ...]
    requests: tuple[Request, ...]
    views: Views
    edges: Edges
    words: dict[int, frozenset[str]] = field(default_factory=dict)
    lengths: dict[tuple[int, bool], int] = field(default_factory=dict)

    def asked(self, requests: tuple[Request, ...]) -> Self:
        """The same table for calls that may see the same memories, page and order as they will.

        Raises:
            CoverageError: If a call may see others than the arms were read for.
        """
        for query, old, new in zip(self.candidates.queries, self.requests, requests, strict=True):
            if seen(old) != seen(new):
                raise CoverageError(
                    f"query {query.id!r}: the arms were read for {_told(old)}, now it asks for "
                    f"{_told(new)}; search again"
                )
        again = replace(self, requests=requests)
        if "boost" in vars(self):  # it depends on keys and query texts, which stay
            vars(again)["boost"] = self.boost
        return again

    def subset(self, positions: NDArray[np.integer]) -> Self:
        """The same table for some of its queries, in the order given."""
        kept = np.asarray(positions, dtype=np.int64)
        again = replace(
            self,
            candidates=self.candidates.subset(kept),
            callers=tuple(self.callers[i] for i in kept),
            requests=tuple(self.requests[i] for i in kept),
            views=self.views._replace(which=self.views.which[kept]),
        )
        if "boost" in vars(self):
            vars(again)["boost"] = self.boost[kept]
        return again

    @cached_property
    def boost(self) -> NDArray[np.int64]:
        """How well each candidate's key answers the query, in [0, 3], shape (q, c)."""
        plane = np.zeros(self.candidates.rows.shape, dtype=np.int64)
        for query, request in enumerate(self.requests):
            asked = lowered(request.query)
            rows = self.candidates.rows[query]
            for column in np.flatnonzero(rows >= 0).tolist():
                plane[query, column] = key_match.boost(self.corpus.keys[rows[column]], asked)
        return plane

    def overlaps(self, query: int, alive: Mask) -> bool:
        """Tell whether a word of a query occurs in any of its candidates, shape (c,)."""
        wanted = gate.query_words(self.requests[query].query)
        rows = self.candidates.rows[query, alive].tolist()
        return not wanted or any(not wanted.isdisjoint(self._words(row)) for row in rows)

    def _words(self, row: int) -> frozenset[str]:
        if row not in self.words:
            memory = self.corpus.memories[row]
            texts = " ".join((memory.key or "", memory.content, *memory.tags))
            self.words[row] = gate.query_words(texts)
        return self.words[row]


def _told(request: Request) -> str:
    """What of a call settings decide and the arms depend on."""
    superseded = "with" if request.include_superseded else "without"
    return f"importance {request.min_importance:g} and more, {superseded} replaced rows"
