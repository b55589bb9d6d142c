"""What the arms find under every setting that a search may try: read once, ranked many times.

Two settings decide which memories the arms may see, and with them how words weigh: the
least importance and whether replaced rows count, each by default or by a profile. So there
is one table per profile and value of the two, made when it is first asked for; everything
else only ranks those tables again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates import Facts
from comis_eval.config import Config, RecallToolConfig
from comis_eval.errors import CoverageError
from comis_eval.pipelines.recall_tool.arms import corpus_of, request_for, search
from comis_eval.pipelines.recall_tool.pages import Paged
from comis_eval.pipelines.recall_tool.rank import rank
from comis_eval.pipelines.recall_tool.table import ToolFacts, ToolTable
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stages.recall_tool.profile import first_said, preset
from comis_eval.types import Query

_CELLS = 4_000_000
"""How many candidates are kept in tables at a time; the least lately used go first."""

_FIXED = ("default_expiry", "index_tags", "chunk_chars")
"""Settings of the tool that change what the arms search."""


class Sight(NamedTuple):
    """What settings let the arms see for queries of a profile that do not say themselves."""

    min_importance: float
    superseded: bool

    @classmethod
    def of(cls, profile: str, settings: RecallToolConfig) -> Sight:
        """What a profile's queries see under some settings."""
        fill = preset(profile, settings)
        least = first_said(fill.min_importance, settings.min_importance)
        return cls(least or 0.0, fill.include_superseded)


@dataclass(frozen=True, eq=False)
class ToolTables:
    """Answers a query set under any settings that search the same indexes.

    Attributes:
        retriever: The memories, made searchable.
        queries: What is asked, in this order.
        config: Whose indexes, models and arms they are.
        depth: To which rank the arms are read.
        whole: The tables that these are a part of; None: they are all.
        positions: Which queries of the whole, shape (q,).
    """

    retriever: Retriever
    queries: tuple[Query, ...]
    config: Config
    depth: int
    whole: ToolTables | None = None
    positions: NDArray[np.int64] | None = None
    _held: OrderedDict[tuple[str, Sight], ToolTable] = field(default_factory=OrderedDict)

    @property
    def facts(self) -> Facts:
        """What metrics need of each memory."""
        return self.whole.facts if self.whole is not None else self._facts

    @cached_property
    def _facts(self) -> Facts:
        return ToolFacts(corpus_of(self.retriever, self.config))

    def subset(self, positions: NDArray[np.integer]) -> ToolTables:
        """The same for some of the queries, in the order given; nothing is searched again."""
        kept = np.asarray(positions, dtype=np.int64)
        own = tuple(self.queries[i] for i in kept)
        if self.whole is None or self.positions is None:
            return ToolTables(self.retriever, own, self.config, self.depth, self, kept)
        return ToolTables(
            self.retriever, own, self.config, self.depth, self.whole, self.positions[kept]
        )

    def paged(self, config: Config) -> Iterator[tuple[NDArray[np.intp], Paged]]:
        """Answer all queries under a configuration, part by part.

        Returns:
            Positions of some queries, and what these are answered; each query comes once.

        Raises:
            CoverageError: If the configuration searches other indexes, or deeper.
        """
        self._check(config)
        settings = config.harness.recall_tool
        for profile, positions in self._of_profile.items():
            table = self._table(profile, Sight.of(profile, settings))
            asked = tuple(request_for(self.queries[i], config) for i in positions)
            yield positions, rank(table.asked(asked), config)

    @cached_property
    def _of_profile(self) -> dict[str, NDArray[np.intp]]:
        """Positions of the queries of each profile, which no setting changes."""
        profiles = np.array([request_for(q, self.config).profile for q in self.queries])
        return {name: np.flatnonzero(profiles == name) for name in dict.fromkeys(profiles.tolist())}

    def _table(self, profile: str, sight: Sight) -> ToolTable:
        held, key = self._held, (profile, sight)
        if key not in held:
            held[key] = self._made(profile, sight)
            while len(held) > 1 and sum(t.candidates.rows.size for t in held.values()) > _CELLS:
                held.popitem(last=False)
        held.move_to_end(key)
        return held[key]

    def _made(self, profile: str, sight: Sight) -> ToolTable:
        mine = self._of_profile[profile]
        if self.whole is not None and self.positions is not None:
            theirs = self.whole._of_profile[profile]
            table = self.whole._table(profile, sight)
            return table.subset(np.searchsorted(theirs, self.positions[mine]))
        queries = [self.queries[i] for i in mine]
        config = self.config.evolve(**_seeing(profile, sight, self.depth))
        vectors = None if self._vectors is None else self._vectors[mine]
        table = search(self.retriever, queries, config, vectors=vectors)
        _ = table.boost  # worked out once, for all the parts that will be taken of it
        return table

    @cached_property
    def _vectors(self) -> NDArray[np.float32] | None:
        if "vector" not in self.config.harness.lanes:
            return None
        texts = tuple(query.text for query in self.queries)
        return self.retriever.query_vectors(self.queries, texts, self.config)

    def _check(self, config: Config) -> None:
        for name, have, want in (
            *_pairs(self.config.harness, config.harness, "lanes", "embedder", "pooling"),
            *_pairs(self.config.harness.recall_tool, config.harness.recall_tool, *_FIXED),
        ):
            if have != want:
                raise CoverageError(
                    f"the arms were read with {name} {have!r} and cannot answer for {want!r}; "
                    "search again"
                )


def _pairs(one: Any, two: Any, *names: str) -> list[tuple[str, Any, Any]]:
    return [(name, getattr(one, name), getattr(two, name)) for name in names]


def _seeing(profile: str, sight: Sight, depth: int) -> dict[str, Any]:
    """Changes to a configuration that give the queries of a profile a sight."""
    above = "harness.recall_tool"
    changes: dict[str, Any] = {f"{above}.arm_depth": depth}
    if profile == "default":
        return changes | {f"{above}.min_importance": sight.min_importance}
    part = f"{above}.profiles.{profile.replace('-', '_')}"
    return changes | {
        f"{part}.min_importance": sight.min_importance,
        f"{part}.include_superseded": sight.superseded,
    }
