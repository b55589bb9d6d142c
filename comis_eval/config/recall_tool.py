"""The settings of the recall tool: what its description leaves to whoever runs it.

Parameters of a call are no settings; they come with each query. Source: specification of
the recall tool, sections 0 (decisions), 3 (arms, fusion), 4 (profiles, gate) and 5 (graph).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from comis_eval.config.base import PositiveInt, Settings, Share, Weight

ORDERS = ("created_at:desc", "created_at:asc", "relevance:desc", "decayed_relevance:desc")
"""The orders a caller or a profile may ask for."""

MAX_LIMIT = 50
"""No answer of the tool is longer."""

Order = Literal["created_at:desc", "created_at:asc", "relevance:desc", "decayed_relevance:desc"]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class ToolFusionConfig(Settings):
    """How the two arms become one list: weighted reciprocal ranks."""

    k: PositiveInt = Field(60, description="rank offset; larger flattens the top ranks")
    text_weight: Weight = Field(0.3, description="weight of the text arm; 0: it adds no score")
    vector_weight: Weight = Field(0.7, description="weight of the vector arm; 0: no score")


class GateConfig(Settings):
    """When an answer is withheld, with an explanation, instead of shown."""

    noise: Share = Field(
        0.73,
        description="share of the most both arms can give; below it some query word must occur",
    )
    floor: Share = Field(0.0, description="best score below which nothing is shown; 0: never")


class GraphConfig(Settings):
    """The tail slots that neighbours in the knowledge graph may take."""

    enabled: bool = Field(False, description="let neighbours of the best rows take tail slots")
    share: Share = Field(0.25, description="share of the limit they may take; at least one of two")
    seeds: PositiveInt = Field(10, description="how many of the best rows the walk starts from")
    hops: Annotated[int, Field(ge=1, le=5)] = Field(2, description="edges the walk may follow")
    min_weight: Share = Field(0.1, description="edges below this weight are not followed")
    edges_per_hop: PositiveInt = Field(200, description="edges looked at in each hop, best first")
    min_importance: Share = Field(
        0.0, description="neighbours need it, as well as the caller's min_importance"
    )


class ProfileConfig(Settings):
    """What a profile fills in where the caller said nothing; null: it leaves it open."""

    min_importance: Share | None = Field(None, description="unless the caller gives one")
    order_by: Order | None = Field(None, description="unless the caller gives one")
    limit: Limit | None = Field(None, description="unless the caller gives one")
    include_superseded: bool = Field(False, description="rows that were replaced count too")


class MultiSessionConfig(ProfileConfig):
    """What is filled in for questions of a development over time."""

    min_importance: Share | None = Field(0.2, description="unless the caller gives one")
    limit: Limit | None = Field(20, description="unless the caller gives one")
    include_superseded: bool = Field(True, description="rows that were replaced count too")


class FactualConfig(ProfileConfig):
    """What is filled in for look-ups."""

    min_importance: Share | None = Field(0.5, description="unless the caller gives one")
    order_by: Order | None = Field("relevance:desc", description="unless the caller gives one")


class ProfilesConfig(Settings):
    """The profiles besides ``default``, which fills in nothing.

    Each has its own defaults: a file that sets one value of a profile leaves the others.
    """

    multi_session: MultiSessionConfig = MultiSessionConfig()
    factual: FactualConfig = FactualConfig()


class RecallToolConfig(Settings):
    """Everything about the recall tool that is not a parameter of its calls."""

    arm_depth: PositiveInt = Field(200, description="rank to which each arm is read")
    default_expiry: bool = Field(
        True, description="rows that name no expiry get the one their scope and tags give"
    )
    index_tags: bool = Field(False, description="the text arm searches tags as well")
    chunk_chars: PositiveInt = Field(
        1000, description="characters of a memory that are embedded together"
    )
    fusion: ToolFusionConfig = ToolFusionConfig()
    relevance_source: Literal["query", "stored"] = Field(
        "query", description="what relevance_min and order_by=relevance look at"
    )
    rerank_scope: Literal["list", "page"] = Field(
        "list", description="key matches and bands reorder all survivors, or a page of them"
    )
    band: Share = Field(0.061, description="scores this near the band's first order by importance")
    min_importance: Share = Field(0.3, description="unless the caller or a profile gives one")
    decay_base: Share = Field(0.95, description="what a day leaves of a score, with decay on")
    gate: GateConfig = GateConfig()
    graph: GraphConfig = GraphConfig()
    profiles: ProfilesConfig = ProfilesConfig()
