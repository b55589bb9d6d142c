"""What metrics need to know of rankings: judgments, policy and labels, looked up in arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import FATES, Facts, Rankings
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.metrics import (
    BLOCKING,
    Categories,
    Ideal,
    Inputs,
    Objective,
    Ranked,
    StageTrace,
)
from comis_eval.pipelines.injecting import style_of
from comis_eval.text import simhash
from comis_eval.types import TrustLevel

Mask = NDArray[np.bool_]


class Shown(NamedTuple):
    """What a query set was answered with.

    Attributes:
        ranking: Memory rows in final order, shape (q, r), -1 behind the end.
        context: Memory rows of what is injected, shape (q, r'), -1 behind the end.
        context_chars: Characters injected, shape (q,).
    """

    ranking: NDArray[np.int32]
    context: NDArray[np.int32]
    context_chars: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Judge:
    """A dataset's answers to every question a metric asks; made once, used for any ranking.

    Attributes:
        dataset: Its queries are those that are ranked, in the same order; its memories are
            the corpus, row for row.
    """

    dataset: Dataset

    def __post_init__(self) -> None:
        self.dataset.check_labelled()

    def inputs(
        self,
        rankings: Rankings,
        constants: Objective,
        *,
        relevance_level: int = 1,
    ) -> Inputs:
        """Everything the metrics of one evaluation are computed from.

        Args:
            rankings: What a pipeline answered.
            constants: Of context_ndcg, noise and utility.
            relevance_level: Lowest grade that counts as relevant.
        """
        shown = Shown(rankings.ranked_rows(), rankings.context_rows(), rankings.context_chars)
        inputs = self.shown_inputs(
            shown,
            rankings.table.facts,
            rankings.config,
            constants,
            relevance_level,
            chars=rankings.context_lines(),
        )
        return replace(inputs, trace=self._trace(rankings, relevance_level))

    def shown_inputs(
        self,
        shown: Shown,
        facts: Facts | None,
        config: Config,
        constants: Objective,
        relevance_level: int = 1,
        *,
        chars: NDArray[np.int64] | None = None,
        lengths: NDArray[np.int64] | None = None,
        failed: Mask | None = None,
    ) -> Inputs:
        """The same without the way through the stages, from the lists alone.

        Args:
            shown: What was ranked and injected.
            facts: Of the memories.
            config: The configuration that answered.
            constants: Of context_ndcg, noise and utility.
            relevance_level: Lowest grade that counts as relevant.
            chars: Length of each line of the context; None: of a section's.
            lengths: Memories in each list, unknown ones counted; None: all are known.
            failed: Queries that have no answer, shape (q,); None: all have one.
        """
        if chars is None:
            if facts is None:
                raise ValueError("without facts the lengths of lines must be given")
            chars = facts.line_lengths(style_of(config), shown.context)
        return Inputs(
            ideal=self.ideal,
            ranking=self.listed(shown.ranking, lengths=lengths),
            context=self.listed(shown.context, chars=chars, lengths=lengths),
            failed=np.zeros(len(self.dataset.queries), dtype=bool) if failed is None else failed,
            relevance_level=relevance_level,
            context_chars=shown.context_chars,
            max_context_chars=config.rag.max_context_chars,
            objective=constants,
            categories=self.categories,
            superseded=self.superseded_at(relevance_level),
            poison_total=self.poison_total,
        )

    def listed(
        self,
        rows: NDArray[np.int32],
        chars: NDArray[np.int64] | None = None,
        lengths: NDArray[np.int64] | None = None,
    ) -> Ranked:
        """A list with all that the labels and the policy say of its memories.

        Args:
            rows: Memory rows, shape (q, r), -1 as padding or for a memory that is not of
                the dataset, which nobody vouches for: it is trusted least.
            chars: Length of each line, same shape; None for a list that is not injected.
            lengths: Memories in each list, shape (q,); None: -1 is padding everywhere.
        """
        there, injected = rows >= 0, chars is not None
        return Ranked(
            grade=self.grades(rows),
            length=there.sum(axis=1) if lengths is None else lengths,
            row=rows,
            trust=np.where(there, self._trust[rows], np.int8(0)),
            disallowed=there & self._disallowed[rows],
            foreign=self._foreign(rows),
            laundered=there & self._laundered[rows],
            poison=self._poison(rows),
            twin=None if self._twins is None else np.where(there, self._twins[rows], -1),
            simhash=self._simhashes(rows) if injected and self._twins is None else None,
            chars=chars,
        )

    def grades(self, rows: NDArray[np.int32]) -> NDArray[np.int8]:
        """Grades of the listed memories, -1 where nobody judged, shape (q, r)."""
        return self.dataset.judgments.grade(np.arange(len(rows))[:, None], rows)

    @cached_property
    def ideal(self) -> Ideal:
        """The grades a perfect list would show."""
        return Ideal.of(self.dataset.judgments)

    @cached_property
    def categories(self) -> Categories:
        """Which category each query belongs to, and which of them are headline."""
        names = tuple(dict.fromkeys(query.category for query in self.dataset.queries))
        numbers = {name: number for number, name in enumerate(names)}
        return Categories(
            np.array([numbers[query.category] for query in self.dataset.queries], dtype=np.intp),
            names,
            np.array([self.dataset.headline(name) for name in names], dtype=bool),
        )

    def superseded_at(self, level: int) -> NDArray[np.int32]:
        """Row of the outdated answer of each query, shape (q,).

        -1 where there is none, or no other memory reaches the level: then there is no current
        answer that it could stand above.
        """
        rows = self._superseded
        own = self.grades(rows[:, None])[:, 0] >= level
        return np.where(self.ideal.relevant(level) - own > 0, rows, -1).astype(np.int32)

    @cached_property
    def _superseded(self) -> NDArray[np.int32]:
        row_of = self.dataset.row_of
        rows = [-1 if q.superseded is None else row_of[q.superseded] for q in self.dataset.queries]
        return np.array(rows, dtype=np.int32)

    @cached_property
    def poison_total(self) -> NDArray[np.int64]:
        """How many planted memories aim at each query, shape (q,)."""
        if not len(self._poison_keys):
            return np.zeros(len(self.dataset.queries), dtype=np.int64)
        return np.bincount(
            self._poison_keys // len(self.dataset.memories), minlength=len(self.dataset.queries)
        )

    @cached_property
    def _poison_keys(self) -> NDArray[np.int64]:
        size, row_of = len(self.dataset.memories), self.dataset.row_of
        position = self.dataset.position_of
        keys = {
            position[attack.query_id] * size + row_of[poison]
            for attack in self.dataset.attacks
            for poison in attack.poison_ids
        }
        return np.array(sorted(keys), dtype=np.int64)

    def _poison(self, rows: NDArray[np.int32]) -> Mask:
        if not len(self._poison_keys):
            return np.zeros(rows.shape, dtype=bool)
        keys = np.arange(len(rows))[:, None] * len(self.dataset.memories) + rows
        return (rows >= 0) & np.isin(keys, self._poison_keys)

    @cached_property
    def _trust(self) -> NDArray[np.int8]:
        return np.array([m.trust_level.rank for m in self.dataset.memories], dtype=np.int8)

    @cached_property
    def _disallowed(self) -> Mask:
        allowed = np.zeros(len(TrustLevel), dtype=bool)
        allowed[[level.rank for level in self.dataset.policy.trust_levels]] = True
        return ~allowed[self._trust]

    @cached_property
    def _laundered(self) -> Mask:
        """Memories that claim more trust than the least trusted of their sources."""
        row_of, trust = self.dataset.row_of, self._trust
        return np.array(
            [
                bool(m.source_ids)
                and m.trust_level.rank > min(int(trust[row_of[s]]) for s in m.source_ids)
                for m in self.dataset.memories
            ],
            dtype=bool,
        )

    @cached_property
    def _twins(self) -> NDArray[np.int32] | None:
        """Number of each memory's labelled cluster of duplicates, -1 for none; None: no labels."""
        if not any(memory.duplicate_of for memory in self.dataset.memories):
            return None
        row_of = self.dataset.row_of
        root = list(range(len(self.dataset.memories)))

        def find(row: int) -> int:
            while root[row] != row:
                root[row] = root[root[row]]
                row = root[row]
            return row

        for row, memory in enumerate(self.dataset.memories):
            if memory.duplicate_of is not None:
                root[find(row)] = find(row_of[memory.duplicate_of])
        roots = np.array([find(row) for row in root], dtype=np.int32)
        lonely = np.bincount(roots, minlength=len(root))[roots] == 1
        return np.where(lonely, -1, roots).astype(np.int32)

    def _simhashes(self, rows: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Similarity hashes of the listed memories; only those met are ever computed."""
        hashes, known = self._simhash_of
        for row in np.unique(rows[~known[rows]]).tolist():
            hashes[row] = np.int64(simhash(self.dataset.memories[row].content)).view(np.uint64)
            known[row] = True
        return hashes[rows]

    @cached_property
    def _simhash_of(self) -> tuple[NDArray[np.uint64], Mask]:
        """The hash of each memory, and whether it was computed; padding's -1 comes last."""
        size = len(self.dataset.memories) + 1
        known = np.zeros(size, dtype=bool)
        known[-1] = True
        return np.zeros(size, dtype=np.uint64), known

    def _foreign(self, rows: NDArray[np.int32]) -> Mask:
        """Memories outside the scope that the policy shows to each query."""
        sees, which = self._visible
        return (rows >= 0) & ~sees[which[:, None], self._kind[0][rows]]

    @cached_property
    def _kind(self) -> tuple[NDArray[np.int32], tuple[int, ...]]:
        """What the policy looks at in each memory, numbered; and a memory of each number."""
        numbers: dict[object, int] = {}
        kinds: list[int] = []
        examples: list[int] = []
        for row, memory in enumerate(self.dataset.memories):
            author = memory.created_by if memory.scope == "agent" else None
            looked_at = (memory.tenancy, memory.scope == "agent", author)
            number = numbers.setdefault(looked_at, len(numbers))
            if number == len(examples):
                examples.append(row)
            kinds.append(number)
        return np.array(kinds, dtype=np.int32), tuple(examples)

    @cached_property
    def _visible(self) -> tuple[Mask, NDArray[np.intp]]:
        """Per tenancy of a query and kind of memory whether it may be seen; each query's row."""
        numbers: dict[object, int] = {}
        rows: list[list[bool]] = []
        which: list[int] = []
        for query in self.dataset.queries:
            number = numbers.setdefault(query.tenancy, len(numbers))
            if number == len(rows):
                rows.append(
                    [
                        self.dataset.policy.shows(self.dataset.memories[row], query)
                        for row in self._kind[1]
                    ]
                )
            which.append(number)
        sees = np.array(rows, dtype=bool).reshape(len(rows), len(self._kind[1]))
        return sees, np.array(which, dtype=np.intp)

    def _trace(self, rankings: Rankings, level: int) -> StageTrace:
        rows = np.where(rankings.presence["search"], rankings.table.rows, -1)
        there = rows >= 0
        unwanted = (there & self._disallowed[rows]) | self._foreign(rows) | self._poison(rows)
        relevant = self.grades(rows) >= level
        blocking = np.array([fate in BLOCKING for fate in FATES])
        return StageTrace(
            row=rows,
            present=rankings.presence,
            blocked=(rankings.fate >= 0) & blocking[rankings.fate],
            relevant_allowed=relevant & ~unwanted,
            unwanted=unwanted,
        )


def objective_of(config: Config) -> Objective:
    """The constants of utility: the harness's, by default the configuration's own."""
    utility, rag = config.harness.utility, config.rag
    return Objective(
        k0=utility.k0 or rag.max_results,
        c0=utility.c0 or rag.max_context_chars,
        cost=utility.cost,
        unanswerable_weight=utility.unanswerable_weight,
    )
