"""A query set with everything that is searched for it, found once and ranked by every arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Candidates, Rankings, Retrieval
from comis_eval.config import Config
from comis_eval.datasets import Dataset, load_dataset
from comis_eval.datasets.importers import import_locomo
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.metrics import ALL, Inputs, Values, means, parse, weights
from comis_eval.pipelines.coverage import Coverage
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from experiments.common.reduced import reduced

Made = TypeVar("Made")

LOCOMO = "locomo10.json"
"""How LoCoMo is named: CC BY-NC 4.0, no part of this project; only ids and figures are kept."""


class Scored(NamedTuple):
    """One metric of one arm.

    Attributes:
        values: Per query, NaN where undefined, shape (q,).
        weights: What each query weighs in the figure, shape (q,).
        figure: Of the headline categories; NaN where undefined.
    """

    values: Values
    weights: Values
    figure: float


@dataclass(frozen=True, eq=False)
class Scene:
    """A query set, and what its memories are searched with.

    Attributes:
        dataset: Queries and labels.
        retriever: Over the same memories.
    """

    dataset: Dataset
    retriever: Retriever
    _kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset) -> Scene:
        """A dataset with indexes of its own."""
        return cls(dataset, Retriever(dataset))

    @classmethod
    def opened(cls, path: Path, *, limit: int | None = None, seed: int = 0) -> Scene:
        """Read a dataset folder, or LoCoMo's file, and keep about so many of its queries."""
        dataset = import_locomo(path)[0] if path.suffix == ".json" else load_dataset(path)
        return cls.of(dataset if limit is None else reduced(dataset, limit, seed))

    @property
    def name(self) -> str:
        """The dataset's."""
        return self.dataset.name

    @cached_property
    def judge(self) -> Judge:
        """Its labels."""
        return Judge(self.dataset)

    @cached_property
    def groups(self) -> list[str]:
        """Group of each query."""
        return [query.group or query.id for query in self.dataset.queries]

    @cached_property
    def strata(self) -> list[str]:
        """Category of each query."""
        return [query.category for query in self.dataset.queries]

    def part(self, positions: Sequence[int] | NDArray[np.integer]) -> Scene:
        """Some of the queries over the same memories."""
        return Scene(self.dataset.subset(positions), self.retriever)

    def kept(self, key: object, make: Callable[[], Made]) -> Made:
        """What is made once for this query set; asked again, the same."""
        if key not in self._kept:
            self._kept[key] = make()
        made: Made = self._kept[key]
        return made

    def rankings(self, config: Config) -> Rankings:
        """What recall answers with a configuration, from candidates found once."""
        reach = _reach(config)
        key = ("table", Retrieval.of(config)._replace(depth=reach.depth), reach)

        def find() -> Candidates:
            return self.retriever.covering(self.dataset.queries, config, reach)

        return rank(self.kept(key, find), config)

    def inputs(self, config: Config, current: Config = Config()) -> Inputs:
        """The same as metrics see it; utility's constants are the current configuration's."""
        return self.judge.inputs(self.rankings(config), objective_of(current))

    def tool_inputs(self, config: Config) -> Inputs:
        """What the recall tool answers, as metrics see it."""

        def find() -> Any:
            return RecallTool(self.retriever, config).rank(self.dataset.queries)

        return self.judge.inputs(self.kept(("tool", config), find), objective_of(config))


def scored(inputs: Inputs, name: str) -> Scored:
    """One metric of what an arm answered."""
    metric = parse(name)
    values = metric(inputs)
    figure = means({metric: values}, inputs)[ALL][name].value
    return Scored(values, weights(metric, values, inputs), figure)


def among(values: Values, members: NDArray[np.bool_]) -> Scored:
    """A value of some of the queries, each weighing the same; undefined for the others."""
    counted = members & ~np.isnan(values)
    count = int(counted.sum())
    return Scored(
        np.where(counted, values, np.nan),
        counted / max(count, 1),
        float(values[counted].mean()) if count else np.nan,
    )


def _reach(config: Config) -> Coverage:
    """What a table must hold for a configuration; lanes are read deep enough for most others."""
    rag = config.rag
    return Coverage(
        depth=max(config.lane_depth, Config().lane_depth),
        rerank=rag.rerank.enabled,
        entity=rag.entity_lane.enabled,
        window_days=rag.lanes.temporal.window_days if rag.lanes.temporal.enabled else 0,
        causal=rag.lanes.causal.enabled,
    )
