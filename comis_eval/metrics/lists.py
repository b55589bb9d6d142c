"""What every metric is computed from: the lists of a whole query set, as padded columns.

A query is a position on the first axis of every array, a rank is a column. Formulas
therefore run once for the whole set, and a set of one query is the same code.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from comis_eval.datasets.judgments import Judgments
from comis_eval.errors import MetricError
from comis_eval.metrics.judgments import Ideal
from comis_eval.metrics.stage_trace import StageTrace

Values = NDArray[np.float64]
"""One number a query, shape (q,); NaN where the metric is undefined."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranked:
    """One list a query, best first: the ranking, or the context that is injected.

    Every array but ``length`` has shape (q, r), r being the longest list. What stands in
    columns past a query's length is padding and never read, save that ``grade`` is -1
    there. A plane that is None was not given; a metric that needs it says so.

    Attributes:
        grade: Judged grade, 0..127; -1 unjudged or padding.
        length: Memories in each list, shape (q,).
        row: The memory's row in the corpus; -1 for an id the corpus does not hold.
        trust: Trust rank: 2 system, 1 learned, 0 external.
        disallowed: The dataset's policy for the query disallows its trust level.
        foreign: It belongs to a tenant, agent or agent scope outside the policy.
        laundered: It claims more trust than the least trusted of its sources.
        poison: The dataset labels it as planted for this query; None: no such labels.
        twin: Number of its labelled cluster of duplicates, -1 for none; None: no labels.
        simhash: 64-bit similarity hash of its text.
        chars: Length of its line in the section.
    """

    grade: NDArray[np.int8]
    length: NDArray[np.int64]
    row: NDArray[np.int32] | None = None
    trust: NDArray[np.int8] | None = None
    disallowed: NDArray[np.bool_] | None = None
    foreign: NDArray[np.bool_] | None = None
    laundered: NDArray[np.bool_] | None = None
    poison: NDArray[np.bool_] | None = None
    twin: NDArray[np.int32] | None = None
    simhash: NDArray[np.uint64] | None = None
    chars: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.grade.ndim != 2 or self.length.shape != self.grade.shape[:1]:
            raise MetricError(
                "a list needs grades of shape (queries, ranks) and one length a query, "
                f"got {self.grade.shape} and {self.length.shape}"
            )
        for name, plane in self._planes().items():
            if plane.shape != self.grade.shape:
                raise MetricError(f"{name} has shape {plane.shape}, grade {self.grade.shape}")
        if len(self) and not 0 <= self.length.min() <= self.length.max() <= self.depth:
            raise MetricError(
                f"list lengths must lie in [0, {self.depth}], "
                f"got {self.length.min()} to {self.length.max()}"
            )

    def __len__(self) -> int:
        return len(self.length)

    @classmethod
    def of_rows(
        cls, rows: NDArray[np.int32], length: NDArray[np.int64], judgments: Judgments
    ) -> Self:
        """Make a list from memory rows; planes are added with :func:`dataclasses.replace`.

        Args:
            rows: Memory rows, shape (q, r); -1 as padding or for an unknown memory.
            length: Memories in each list, shape (q,).
            judgments: What was judged; its queries are these queries, in this order.
        """
        known = np.where(np.arange(rows.shape[1]) < length[:, None], rows, -1)
        grade = judgments.grade(np.arange(len(rows))[:, None], known)
        return cls(grade=grade, length=length, row=known)

    @property
    def depth(self) -> int:
        """The longest list's length: a cut-off beyond it was never put to the test."""
        return int(self.grade.shape[1])

    def within(self, k: int) -> NDArray[np.bool_]:
        """Tell which of the first k columns hold a memory, shape (q, min(k, depth))."""
        return np.arange(min(k, self.depth)) < self.length[:, None]

    def relevant(self, k: int, *, level: int) -> NDArray[np.bool_]:
        """Tell which of the first k memories reach a grade, shape (q, min(k, depth))."""
        return self.grade[:, :k] >= level

    def reordered(self, order: NDArray[np.intp]) -> Self:
        """Return the same lists in another order.

        Args:
            order: For every rank the column it takes from, shape (q, r); padding stays last.
        """
        moved = {
            name: np.take_along_axis(plane, order, axis=1) for name, plane in self._planes().items()
        }
        return replace(self, grade=np.take_along_axis(self.grade, order, axis=1), **moved)

    def oracle(self) -> Self:
        """Return the best re-ranking of these same memories: highest grade first.

        What it scores above the given order is the headroom of everything after search.
        """
        # padding gains as little as the irrelevant, and a stable sort leaves it behind them
        loss = -np.maximum(self.grade, 0)
        return self.reordered(np.argsort(loss, axis=1, kind="stable"))

    def _planes(self) -> dict[str, NDArray[Any]]:
        named = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {
            name: plane
            for name, plane in named
            if plane is not None and name not in ("grade", "length")
        }


class Objective(NamedTuple):
    """The constants of context_ndcg, noise and utility, fixed for a whole sweep.

    Attributes:
        k0: Rank to which the context is scored, >= 1.
        c0: Characters that stand for a full context, >= 1.
        cost: What a full context of irrelevant characters costs, >= 0.
        unanswerable_weight: Share of utility that unanswerable queries decide, in [0, 1].
    """

    k0: int = 5
    c0: int = 4000
    cost: float = 0.2
    unanswerable_weight: float = 0.1


class Categories(NamedTuple):
    """Which category each query belongs to.

    Attributes:
        codes: Index into ``names``, shape (q,).
        names: Every category.
        headline: Per category: whether its queries count in ``all``, shape (len(names),).
    """

    codes: NDArray[np.intp]
    names: tuple[str, ...]
    headline: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs:
    """All that the metrics of one evaluation are computed from; parts may be missing.

    Attributes:
        ideal: Grades of all judged memories of each query.
        ranking: All candidates in final order, after trust filter and dedup, before
            maxResults and the budget.
        context: What is injected.
        failed: Queries the pipeline failed on, shape (q,); their lists are empty.
        relevance_level: Lowest grade that counts as relevant, 1..127.
        context_chars: Characters of the whole injected section, shape (q,).
        max_context_chars: The evaluated configuration's own limit.
        objective: Constants of context_ndcg, noise and utility.
        categories: None: one headline category.
        superseded: Memory row of the outdated answer, shape (q,), -1 for none.
        poison_total: Planted memories that aim at each query, shape (q,), 0 for none.
        trace: What was present after each stage.
    """

    ideal: Ideal
    ranking: Ranked | None = None
    context: Ranked | None = None
    failed: NDArray[np.bool_]
    relevance_level: int = 1
    context_chars: NDArray[np.int64] | None = None
    max_context_chars: int | None = None
    objective: Objective | None = None
    categories: Categories | None = None
    superseded: NDArray[np.int32] | None = None
    poison_total: NDArray[np.int64] | None = None
    trace: StageTrace | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.relevance_level <= 127:
            raise MetricError(f"relevance_level must lie in 1..127, got {self.relevance_level}")
        counted = {f.name: getattr(self, f.name) for f in fields(self)}
        counted["categories"] = self.categories and self.categories.codes
        for name in self._PER_QUERY:
            part = counted[name]
            if part is not None and len(part) != len(self):
                raise MetricError(f"{name} is of {len(part)} queries, ideal of {len(self)}")
        for listed in (self.ranking, self.context):
            if listed is not None and listed.length[self.failed].any():
                raise MetricError("a query the pipeline failed on must have empty lists")
        self._check_constants()

    _PER_QUERY = (
        *("ranking", "context", "failed", "context_chars", "categories"),
        *("superseded", "poison_total", "trace"),
    )

    def __len__(self) -> int:
        return len(self.ideal)

    @cached_property
    def relevant_total(self) -> NDArray[np.int64]:
        """Judged memories at or above the relevance level, shape (q,)."""
        return self.ideal.relevant(self.relevance_level)

    @cached_property
    def headline(self) -> NDArray[np.bool_]:
        """Queries of a headline category, shape (q,)."""
        if self.categories is None:
            return np.ones(len(self), dtype=bool)
        return self.categories.headline[self.categories.codes]

    def _check_constants(self) -> None:
        limit, objective = self.max_context_chars, self.objective
        if limit is not None and not limit >= 1:
            raise MetricError(f"max_context_chars must be at least 1, got {limit}")
        if objective is None:
            return
        if not (objective.k0 >= 1 and objective.c0 >= 1 and objective.cost >= 0):
            raise MetricError(f"k0 and c0 must be at least 1 and cost at least 0, got {objective}")
        if not 0 <= objective.unanswerable_weight <= 1:
            raise MetricError(f"unanswerable_weight must lie in [0, 1], got {objective}")


def given(part: T | None, what: str) -> T:
    """Return a part of the inputs, or say what is missing.

    Raises:
        MetricError: If the part was not given.
    """
    if part is None:
        raise MetricError(f"needs {what}, which these inputs do not hold")
    return part
