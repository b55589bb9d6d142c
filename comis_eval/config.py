"""The configuration: one file with three parts.

``rag`` is what users have under ``agents.<name>.rag`` and can be exported; ``semantics``
holds the switches in which the documented and the shipped system differ; ``harness`` is
how this package runs them. Every model is frozen, refuses unknown keys and knows its
bounds. Keys are camelCase in files and snake_case in Python. Reading and writing files is
:mod:`comis_eval.config_file`'s work.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from comis_eval.types import TrustLevel

MAX_INTEGER = 2**53 - 1
"""Largest integer a configuration may hold: beyond it JSON numbers lose exactness."""

PositiveInt = Annotated[int, Field(gt=0, le=MAX_INTEGER)]
NonNegativeInt = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]

LANES = ("fts", "vector", "entity", "temporal", "causal")
"""Every lane, in the order in which ties between them are settled."""


class Settings(BaseModel):
    """Base of all parts: immutable, no unknown keys, no coercion, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class RerankConfig(Settings):
    """Whether and how a second model re-scores the head of the fused list."""

    enabled: bool = False
    max_candidates: PositiveInt = Field(40, description="how many fused candidates it scores")
    min_results: NonNegativeInt = Field(1, description="fewer fused candidates: not attempted")
    timeout_ms: PositiveInt = Field(800, description="past this the fused order is kept")


class ScoringConfig(Settings):
    """How far each signal may move a score: a factor is 1 + alpha x (signal - 0.5)."""

    recency_alpha: Share = 0.2
    temporal_alpha: Share = 0.2
    proof_alpha: Share = 0.1
    trust_alpha: Share = 0.1
    usefulness_alpha: Share = Field(0.1, description="neutral without a usefulness signal")


class EntityLaneConfig(Settings):
    """The lane of memories that share entities with the best hits of the others."""

    enabled: bool = False
    seed_count: PositiveInt = Field(5, description="how many hits the spread lanes start from")
    per_entity_cap: PositiveInt = Field(200, description="how many rows the lane returns at most")
    weight: Weight = 1.0


class SearchLaneConfig(Settings):
    """A search lane's weight in the fusion; None takes the weight of the semantics."""

    weight: Weight | None = None


class TemporalLaneConfig(Settings):
    """The lane of memories that happened near the best hits."""

    enabled: bool = False
    weight: Weight = 1.0
    window_days: PositiveInt = 7


class CausalLaneConfig(Settings):
    """The lane of memories one cause or effect away from the best hits."""

    enabled: bool = False
    weight: Weight = 1.0


class LanesConfig(Settings):
    """Knobs of later versions: search lane weights and two more spread lanes."""

    fts: SearchLaneConfig = SearchLaneConfig()
    vector: SearchLaneConfig = SearchLaneConfig()
    temporal: TemporalLaneConfig = TemporalLaneConfig()
    causal: CausalLaneConfig = CausalLaneConfig()


class MmrConfig(Settings):
    """Diversity by maximal marginal relevance, after the trust filter."""

    enabled: bool = False
    lambda_: Share = Field(0.7, alias="lambda", description="1: relevance alone")


class FeedbackConfig(Settings):
    """Whether recorded used / ignored signals move the score."""

    enabled: bool = False


class RagConfig(Settings):
    """The recall knobs, as users have them under ``agents.<name>.rag``."""

    enabled: bool = True
    max_results: PositiveInt = 5
    max_context_chars: PositiveInt = 4000
    min_score: Share = 0.1
    include_trust_levels: tuple[TrustLevel, ...] = (TrustLevel.SYSTEM, TrustLevel.LEARNED)
    rerank: RerankConfig = RerankConfig()
    scoring: ScoringConfig = ScoringConfig()
    entity_lane: EntityLaneConfig = EntityLaneConfig()
    lanes: LanesConfig = LanesConfig()
    mmr: MmrConfig = MmrConfig()
    feedback: FeedbackConfig = FeedbackConfig()


class LaneWeights(Settings):
    """What a preset weighs the lanes with; an explicit ``rag.lanes.*.weight`` beats it."""

    fts: Weight = 1.0
    vector: Weight = 1.0
    entity: Weight | None = Field(
        None, description="None: rag.entityLane.weight, 1.0 in both presets"
    )


class Semantics(Settings):
    """The switches in which the documented and the shipped system differ.

    ``preset`` names the row of values that switches not given take; the defaults below
    are the documented ones. Source: specification of MemoryRecall, section 12.
    """

    preset: Literal["documented", "production"] = "documented"
    query_context_turns: NonNegativeInt = 2
    keyword_statistics: Literal["scope", "table"] = "scope"
    lane_depth: PositiveInt | Literal["limit"] = 100
    scope_filter: Literal["in_lane", "after_fusion"] = "in_lane"
    fusion: Literal["flat", "nested"] = "flat"
    lane_weights: LaneWeights = LaneWeights()
    min_score_on: Literal["fused", "final"] = "fused"
    min_score_exempts_entity: bool = False
    entity_seeds_reenter: bool = False
    trust_refill: bool = True
    dedup_keep: Literal["best", "newest"] = "best"
    dedup_units: Literal["code_points", "utf16"] = "code_points"
    trim_to_max_results: bool = True
    budget_overflow: Literal["skip", "stop"] = "skip"
    length_units: Literal["code_points", "utf16"] = "code_points"
    wrap: Literal["external", "non_system"] = "external"
    line_format: Literal["full", "short"] = "full"
    inline_min_score: Share | None = Field(None, description="None: never inline")

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("preset") == "production":
            names = {to_camel(name): name for name in PRODUCTION}
            spelled = {names.get(key, key) for key in given}
            rest = {name: value for name, value in PRODUCTION.items() if name not in spelled}
            return {**rest, **given}
        return given


PRODUCTION: dict[str, Any] = {
    "query_context_turns": 0,
    "keyword_statistics": "table",
    "lane_depth": "limit",
    "scope_filter": "after_fusion",
    "fusion": "nested",
    "lane_weights": {"fts": 1.0, "vector": 1.5},
    "min_score_on": "fused",
    "min_score_exempts_entity": True,
    "entity_seeds_reenter": True,
    "trust_refill": False,
    "dedup_keep": "newest",
    "dedup_units": "utf16",
    "trim_to_max_results": False,
    "budget_overflow": "stop",
    "length_units": "utf16",
    "wrap": "non_system",
    "line_format": "short",
    "inline_min_score": 0.7,
}
"""What the shipped system does, switch by switch; the other preset is the defaults."""


class FusionConfig(Settings):
    """What-ifs of the fusion that the product does not have."""

    k: PositiveInt = Field(60, description="rank offset; larger flattens the top ranks")
    kind: Literal["rrf", "convex"] = "rrf"


class RerankerConfig(Settings):
    """Which second model, and what it is taken to cost in evaluation and replay."""

    kind: Literal["late_interaction", "cross_encoder"] = "late_interaction"
    path: str | None = None
    fixed_ms: float = Field(20.0, ge=0)
    ms_per_candidate: float = Field(5.0, ge=0)


class UtilityConfig(Settings):
    """The constants of the default objective; see docs on metrics."""

    cost: float = Field(0.2, ge=0, description="of a full context of irrelevant characters")
    unanswerable_weight: Share = 0.1
    k0: PositiveInt | None = Field(None, description="None: the configuration's maxResults")
    c0: PositiveInt | None = Field(None, description="None: its maxContextChars")


class RemoteConfig(Settings):
    """A live system to evaluate; never read from a dataset."""

    transport: Literal["stdio", "http", "jsonrpc"] | None = None
    command: tuple[str, ...] = ()
    url: str | None = None
    tool: str = "recall"
    arguments: dict[str, Any] = {}
    id_field: str = "id"


class HarnessConfig(Settings):
    """How this package runs the pipeline; never exported to the product."""

    keyword_backend: Literal["fts5", "rank_bm25"] = "fts5"
    embedder: str = Field("minilm", description="minilm, or a folder with an ONNX model")
    pooling: Literal["mean", "cls"] = "mean"
    lanes: tuple[Literal["fts", "vector"], ...] = Field(
        ("fts", "vector"), description="which search lanes run"
    )
    reranker: RerankerConfig = RerankerConfig()
    fusion: FusionConfig = FusionConfig()
    utility: UtilityConfig = UtilityConfig()
    remote: RemoteConfig = RemoteConfig()


class Config(Settings):
    """A whole configuration file."""

    rag: RagConfig = RagConfig()
    semantics: Semantics = Semantics()
    harness: HarnessConfig = HarnessConfig()

    def lane_weight(self, lane: str) -> float:
        """The weight a lane enters the fusion with; an explicit rag weight beats the preset's."""
        rag, semantics = self.rag, self.semantics
        explicit = {
            "fts": rag.lanes.fts.weight,
            "vector": rag.lanes.vector.weight,
            "entity": semantics.lane_weights.entity,
            "temporal": rag.lanes.temporal.weight,
            "causal": rag.lanes.causal.weight,
        }[lane]
        if explicit is not None:
            return explicit
        return {
            "fts": semantics.lane_weights.fts,
            "vector": semantics.lane_weights.vector,
            "entity": rag.entity_lane.weight,
        }[lane]

    @property
    def limit(self) -> int:
        """How many search hits production asks for, before any filter of its own."""
        rerank = self.rag.rerank
        if rerank.enabled:
            return max(self.rag.max_results, rerank.max_candidates)
        return self.rag.max_results

    @property
    def lane_depth(self) -> int:
        """To which rank the search lanes are read."""
        depth = self.semantics.lane_depth
        return 2 * self.limit if depth == "limit" else depth

    def evolve(self, **parts: Any) -> Self:
        """Return a checked copy with some values replaced, by dotted snake_case path.

        Example: ``config.evolve(**{"rag.min_score": 0.0, "semantics.fusion": "nested"})``
        """
        tree = self.model_dump()
        for path, value in parts.items():
            *parents, leaf = path.split(".")
            node = tree
            for parent in parents:
                node = node[parent]
            if leaf not in node:
                raise KeyError(path)
            node[leaf] = value
        return type(self).model_validate(tree)


def preset(name: Literal["documented", "production"]) -> Semantics:
    """One of the two presets, every switch spelled out."""
    return Semantics.model_validate({"preset": name})
