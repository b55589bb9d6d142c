"""What a metric is, and the rules that hold for every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import MetricError
from comis_eval.metrics.lists import Inputs, Ranked, Values, given

Formula = Callable[[Ranked, Inputs, int], Values]
Cut = Literal["required", "optional", "none"]
On = Literal["ranking", "context", "queries"]
Queries = Literal["all", "answerable", "relevant", "unanswerable", "attacked", "superseded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a metric is, apart from the rank it is cut at.

    Attributes:
        name: Without its cut-off.
        formula: (list, inputs, k) to one value a query. The list is None for ``queries``;
            k is the list's depth for a metric without a cut-off.
        on: Which list is scored; ``queries``: neither, but sizes or the trace.
        cut: Whether the name takes ``@k``; ``optional``: without it the whole list counts.
        queries: For which it is defined: ``answerable`` have a memory of grade >= 1,
            ``relevant`` one at the relevance level, ``attacked`` planted memories,
            ``superseded`` an outdated and a current answer.
        higher_is_better: Which way is up.
        when_failed: What a query the pipeline failed on scores; NaN: left out.
        reduce: How the figure of a set is made: mean of the defined values, their total,
            or the weighted sum of ``utility_weights``.
        headline_only: Whether ``all`` leaves out queries of other categories. False for
            what must be 0 everywhere.
        judgments: Whether an unjudged memory gains nothing, so that judged@k belongs beside.
        gain: How grades gain, for nDCG.
    """

    name: str
    formula: Formula
    on: On
    cut: Cut = "none"
    queries: Queries = "all"
    higher_is_better: bool
    when_failed: float
    reduce: Literal["mean", "total", "utility"] = "mean"
    headline_only: bool = True
    judgments: bool = False
    gain: Literal["linear", "exponential"] | None = None

    @property
    def pattern(self) -> str:
        """How its name is written: ``ndcg@k``, ``mrr[@k]``, ``map``."""
        return self.name + {"required": "@k", "optional": "[@k]", "none": ""}[self.cut]


@dataclass(frozen=True, slots=True)
class Metric:
    """A definition and the rank it is cut at: what a name such as ``ndcg@10`` means."""

    definition: Definition
    k: int | None = None

    @property
    def name(self) -> str:
        """As it is typed and printed."""
        return self.definition.name if self.k is None else f"{self.definition.name}@{self.k}"

    def __call__(self, inputs: Inputs) -> Values:
        """Score every query.

        Returns:
            One value a query, shape (q,), float64; NaN where the metric is undefined.

        Raises:
            MetricError: If the inputs lack something it needs; names the metric.
        """
        try:
            return self._score(inputs)
        except MetricError as error:
            raise MetricError(f"{self.name}: {error}") from error

    def beyond_depth(self, inputs: Inputs) -> bool:
        """Tell whether k exceeds the longest list, so that a smaller k says the same."""
        listed = self._list(inputs)
        return self.k is not None and listed is not None and self.k > listed.depth

    def _score(self, inputs: Inputs) -> Values:
        asked = defined_for(self.definition.queries, inputs)
        listed = self._list(inputs)
        k = self.k or (0 if listed is None else listed.depth)
        # `on` says whether the formula gets a list; the type of a dispatch table cannot
        values = self.definition.formula(listed, inputs, k)  # type: ignore[arg-type]
        values = np.where(inputs.failed, self.definition.when_failed, values)
        return np.where(asked, values, np.nan)

    def _list(self, inputs: Inputs) -> Ranked | None:
        if self.definition.on == "queries":
            return None
        if self.definition.on == "ranking":
            return given(inputs.ranking, "the ranking")
        return given(inputs.context, "the context")


def defined_for(queries: Queries, inputs: Inputs) -> NDArray[np.bool_]:
    """Tell for which queries a metric is asked at all, shape (q,)."""
    if queries == "all":
        return np.ones(len(inputs), dtype=bool)
    if queries == "answerable":
        return inputs.ideal.answerable
    if queries == "unanswerable":
        return ~inputs.ideal.answerable
    if queries == "relevant":
        return inputs.relevant_total > 0
    if queries == "attacked":
        return given(inputs.poison_total, "how many planted memories aim at each query") > 0
    superseded = given(inputs.superseded, "the superseded memory of each query")
    return (superseded >= 0) & (inputs.relevant_total > 0)
