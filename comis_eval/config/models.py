"""The configuration: one file with three parts.

``rag`` is what users have under ``agents.<name>.rag`` and can be exported; ``semantics``
holds the switches in which the documented and the shipped system differ; ``harness`` is
how this package runs them. Every model is frozen, refuses unknown keys and knows its
bounds. Keys are camelCase in files and snake_case in Python. Reading and writing files is
:mod:`comis_eval.config_file`'s work.

Example: ``Config().evolve(**{"rag.min_score": 0.0}).rag.min_score`` is ``0.0``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from comis_eval.config.base import NonNegativeInt, PositiveInt, Settings, Share, Weight
from comis_eval.config.recall_tool import RecallToolConfig
from comis_eval.errors import ConfigError
from comis_eval.text import is_secret_name, mask_credentials, sha256_text
from comis_eval.types import TrustLevel


def _as_tuple(given: object) -> object:
    return tuple(given) if isinstance(given, list) else given


def _without_repeats(given: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(given)) < len(given):
        raise ValueError("names a lane twice")
    return given


Trust = Annotated[TrustLevel, Field(strict=False)]
"""A trust level, by name too: files have no enumerations."""

LANES = ("fts", "vector", "entity", "temporal", "causal")
"""Every lane, in the order in which ties between them are settled."""


class RerankConfig(Settings):
    """Whether and how a second model re-scores the head of the fused list."""

    enabled: bool = Field(False, description="re-score the head of the fused list")
    max_candidates: PositiveInt = Field(40, description="how many fused candidates it scores")
    min_results: NonNegativeInt = Field(
        1, description="with fewer fused candidates it is not attempted"
    )
    timeout_ms: PositiveInt = Field(
        800, description="milliseconds; past them the fused order is kept"
    )


class ScoringConfig(Settings):
    """How far each signal may move a score: a factor is 1 + alpha x (signal - 0.5).

    Every signal lies in [0, 1], so a factor lies in [1 - alpha / 2, 1 + alpha / 2].
    """

    recency_alpha: Share = Field(0.2, description="pull of age since writing; 0: none")
    temporal_alpha: Share = Field(0.2, description="pull of age since the event; 0: none")
    proof_alpha: Share = Field(0.1, description="pull of the number of observations; 0: none")
    trust_alpha: Share = Field(0.1, description="pull of the trust level; 0: ties only")
    usefulness_alpha: Share = Field(
        0.1, description="pull of used / ignored signals; neutral without feedback"
    )


class EntityLaneConfig(Settings):
    """The lane of memories that share entities with the best hits of the others."""

    enabled: bool = Field(False, description="run the entity lane")
    seed_count: PositiveInt = Field(5, description="how many hits the spread lanes start from")
    per_entity_cap: PositiveInt = Field(200, description="how many rows the lane returns at most")
    weight: Weight = Field(1.0, description="the lane's weight in the fusion; 0: it adds nothing")


class SearchLaneConfig(Settings):
    """A search lane's weight in the fusion; None takes the weight of the semantics."""

    weight: Weight | None = Field(
        None, description="the lane's weight in the fusion; null: semantics.laneWeights"
    )


class TemporalLaneConfig(Settings):
    """The lane of memories that happened near the best hits."""

    enabled: bool = Field(False, description="run the temporal lane")
    weight: Weight = Field(1.0, description="the lane's weight in the fusion")
    window_days: PositiveInt = Field(7, description="days around a seed's event time")


class CausalLaneConfig(Settings):
    """The lane of memories one cause or effect away from the best hits."""

    enabled: bool = Field(False, description="run the causal lane")
    weight: Weight = Field(1.0, description="the lane's weight in the fusion")


class LanesConfig(Settings):
    """Knobs of later versions: search lane weights and two more spread lanes."""

    fts: SearchLaneConfig = SearchLaneConfig()
    vector: SearchLaneConfig = SearchLaneConfig()
    temporal: TemporalLaneConfig = TemporalLaneConfig()
    causal: CausalLaneConfig = CausalLaneConfig()


class MmrConfig(Settings):
    """Diversity by maximal marginal relevance, after the trust filter."""

    enabled: bool = Field(False, description="spread the list over different memories")
    lambda_: Share = Field(0.7, alias="lambda", description="1: score alone; 0: difference alone")


class FeedbackConfig(Settings):
    """Whether recorded used / ignored signals move the score."""

    enabled: bool = Field(False, description="let used / ignored signals move the score")


class RagConfig(Settings):
    """The recall knobs, as users have them under ``agents.<name>.rag``.

    Source: specification of MemoryRecall, section 1.
    """

    enabled: bool = Field(True, description="false: nothing is searched, the section is empty")
    max_results: PositiveInt = Field(5, description="how many memories the section holds at most")
    max_context_chars: PositiveInt = Field(
        4000, description="characters of the whole section, header and newlines included"
    )
    min_score: Share = Field(0.1, description="fused scores below it are dropped, equal ones stay")
    include_trust_levels: Annotated[tuple[Trust, ...], BeforeValidator(_as_tuple)] = Field(
        (TrustLevel.SYSTEM, TrustLevel.LEARNED), description="memories of other levels are dropped"
    )
    rerank: RerankConfig = RerankConfig()
    scoring: ScoringConfig = ScoringConfig()
    entity_lane: EntityLaneConfig = EntityLaneConfig()
    lanes: LanesConfig = LanesConfig()
    mmr: MmrConfig = MmrConfig()
    feedback: FeedbackConfig = FeedbackConfig()


class LaneWeights(Settings):
    """What a preset weighs the lanes with; an explicit ``rag.lanes.*.weight`` beats it."""

    fts: Weight = Field(1.0, description="unless rag.lanes.fts.weight is set")
    vector: Weight = Field(1.0, description="unless rag.lanes.vector.weight is set")
    entity: Weight | None = Field(
        None, description="null: rag.entityLane.weight, 1.0 in both presets"
    )


class Semantics(Settings):
    """The switches in which the documented and the shipped system differ.

    ``preset`` names the row of values that switches not given take; the defaults below
    are the documented ones. Source: specification of MemoryRecall, section 12.
    """

    preset: Literal["documented", "production"] = Field(
        "documented", description="the row of values for every switch not given"
    )
    query_context_turns: NonNegativeInt = Field(
        2, description="how many earlier user turns join the query"
    )
    keyword_statistics: Literal["scope", "table"] = Field(
        "scope", description="bm25 statistics over the query's tenant and agent, or all rows"
    )
    lane_depth: PositiveInt | Literal["limit"] = Field(
        100, description="rank to which the search lanes are read; limit: twice the search limit"
    )
    scope_filter: Literal["in_lane", "after_fusion"] = Field(
        "in_lane", description="where tenant, agent, expiry and type are enforced"
    )
    fusion: Literal["flat", "nested"] = Field(
        "flat", description="all lanes at once, or the search lanes first"
    )
    lane_weights: LaneWeights = LaneWeights()
    min_score_on: Literal["fused", "final"] = Field(
        "fused", description="the score that rag.minScore is compared with"
    )
    min_score_exempts_entity: bool = Field(
        False, description="hits of the entity lane alone escape rag.minScore"
    )
    entity_seeds_reenter: bool = Field(
        False, description="the entity lane may return one of its seeds"
    )
    trust_refill: bool = Field(
        True, description="memories of excluded levels are replaced by the next ones"
    )
    dedup_keep: Literal["best", "newest"] = Field(
        "best", description="which of equal memories stays"
    )
    dedup_units: Literal["code_points", "utf16"] = Field(
        "code_points", description="what the 200 characters of a fingerprint are counted in"
    )
    trim_to_max_results: bool = Field(True, description="never more than rag.maxResults memories")
    budget_overflow: Literal["skip", "stop"] = Field(
        "skip", description="after a memory that does not fit: try the next, or end"
    )
    length_units: Literal["code_points", "utf16"] = Field(
        "code_points", description="what rag.maxContextChars is counted in"
    )
    wrap: Literal["external", "non_system"] = Field(
        "external", description="which memories stand between safety markers"
    )
    line_format: Literal["full", "short"] = Field(
        "full", description="how much a line tells besides the memory's text"
    )
    inline_min_score: Share | None = Field(
        None, description="final score from which the top hit joins the message; null: never"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or given.get("preset") != "production":
            return given
        filled = dict(given)
        for name, value in PRODUCTION.items():
            alias = to_camel(name)
            spelled = name if name in filled else alias
            if spelled not in filled:
                filled[alias] = value
            elif isinstance(value, dict) and isinstance(filled[spelled], Mapping):
                filled[spelled] = {**value, **filled[spelled]}
        return filled


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
    kind: Literal["rrf", "convex"] = Field(
        "rrf", description="reciprocal ranks, or a weighted mean of the lanes' own scores"
    )


class RerankerConfig(Settings):
    """Which second model, and what it is taken to cost in evaluation and replay."""

    kind: Literal["late_interaction", "cross_encoder"] = Field(
        "late_interaction", description="the packaged MiniLM's tokens, or a folder's cross-encoder"
    )
    path: str | None = Field(None, description="folder with model.onnx and tokenizer.json")
    fixed_ms: float = Field(20.0, ge=0, description="assumed milliseconds per call")
    ms_per_candidate: float = Field(5.0, ge=0, description="assumed milliseconds per candidate")


class UtilityConfig(Settings):
    """The constants of the default objective; see docs on metrics."""

    cost: float = Field(
        0.2, ge=0, description="utility lost to a full context of irrelevant characters"
    )
    unanswerable_weight: Share = Field(0.1, description="share of unanswerable queries in utility")
    k0: PositiveInt | None = Field(
        None, description="rank to which utility counts; null: rag.maxResults"
    )
    c0: PositiveInt | None = Field(
        None, description="characters of a full context; null: rag.maxContextChars"
    )


class RemoteConfig(Settings):
    """A live system to evaluate; never read from a dataset."""

    transport: Literal["stdio", "http", "jsonrpc"] | None = Field(
        None, description="how the live system is reached; null: there is none"
    )
    command: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = Field(
        (), description="program and arguments, for stdio"
    )
    url: str | None = Field(None, description="address, for http and jsonrpc")
    tool: str | None = Field(
        None, description="tool or method to call; null: recall, over jsonrpc memory.search"
    )
    query_argument: str = Field("query", min_length=1, description="argument that takes the query")
    arguments: dict[str, JsonValue] = Field(
        {},
        description="further arguments of each call; {query}, {tenantId}, {agentId} and {now} in "
        "their texts are filled in",
    )
    send_filters: bool = Field(True, description="whether a query's own filters become arguments")
    results_field: str | None = Field(
        None, description="dotted path of the list in an answer; null: the only list there is"
    )
    id_field: str = Field(
        "id", min_length=1, description="dotted path, in a result, of which memory it is"
    )
    match: Literal["id", "key"] = Field(
        "id", description="what it says: a memory's id, or its key within the query's tenant"
    )
    concurrency: Annotated[int, Field(ge=1, le=64)] = Field(
        4, description="calls that are open at a time"
    )
    timeout_ms: PositiveInt = Field(10_000, description="milliseconds that one call may take")
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        2, description="further attempts after a fault that may pass"
    )
    backoff_ms: NonNegativeInt = Field(
        200, description="milliseconds before the first further attempt; doubled for each next"
    )

    def __hash__(self) -> int:  # the generated one fails on the dict
        return hash((self.transport, self.command, self.url, self.tool, self.id_field))


class HarnessConfig(Settings):
    """How this package runs the pipeline; never exported to the product."""

    keyword_backend: Literal["fts5", "rank_bm25"] = Field(
        "fts5", description="what the fts lane searches with"
    )
    embedder: str = Field("minilm", description="minilm, or a folder with an ONNX model")
    pooling: Literal["mean", "cls"] = Field(
        "mean", description="how token vectors become one, for a folder's model"
    )
    lanes: Annotated[
        tuple[Literal["fts", "vector"], ...],
        Field(min_length=1),
        AfterValidator(_without_repeats),
        BeforeValidator(_as_tuple),
    ] = Field(("fts", "vector"), description="which search lanes run")
    reranker: RerankerConfig = RerankerConfig()
    fusion: FusionConfig = FusionConfig()
    utility: UtilityConfig = UtilityConfig()
    recall_tool: RecallToolConfig = RecallToolConfig()
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

        A new ``semantics.preset`` moves the switches that stand at the old preset's value;
        those that differ from it stay.

        Example: ``config.evolve(**{"rag.min_score": 0.0, "semantics.fusion": "nested"})``

        Raises:
            ConfigError: If a path is unknown; or if values are not allowed, all of them at once.
        """
        # Paths and faults are told from these very models, so they cannot be imported first.
        from comis_eval.config.faults import faults
        from comis_eval.config.knobs import differences, find_knob, put

        tree = self.model_dump()
        if "semantics.preset" in parts:
            row = preset(self.semantics.preset).model_dump()
            tree["semantics"] = differences(tree["semantics"], row)
        for path, value in parts.items():
            names = tuple(knob.name for knob in find_knob(path))
            put(tree, names, value.model_dump() if isinstance(value, Settings) else value)
        try:
            return type(self).model_validate(tree)
        except ValidationError as error:
            found = (f"{fault.path}: {fault.text}" for fault in faults(error))
            raise ConfigError("; ".join(found)) from error

    def to_tree(self) -> dict[str, Any]:
        """Every value as JSON has it, keys in camelCase, credentials in addresses masked."""
        tree = _masked(self.model_dump(mode="json", by_alias=True))
        return dict(tree)


def preset(name: Literal["documented", "production"]) -> Semantics:
    """One of the two presets, every switch spelled out."""
    return Semantics.model_validate({"preset": name})


def config_hash(config: Config) -> str:
    """SHA-256, in hex, of all values of a configuration; equal values, equal hash.

    Taken over what :meth:`Config.to_tree` gives, so it says nothing about a password.
    """
    canonical = json.dumps(config.to_tree(), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256_text(canonical)


def _masked(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _masked(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    if isinstance(value, str):
        return "***" if is_secret_name(name) else mask_credentials(value)
    return value
