"""The records everything speaks in. None of them can change after it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from comis_eval import text


class TrustLevel(StrEnum):
    """How far a memory may be believed, from configured fact to text of unknown origin."""

    SYSTEM = "system"
    LEARNED = "learned"
    EXTERNAL = "external"

    @property
    def rank(self) -> int:
        """2 for system, 1 for learned, 0 for external: a higher number is trusted more."""
        return _TRUST_RANKS[self]


_TRUST_RANKS = {TrustLevel.SYSTEM: 2, TrustLevel.LEARNED: 1, TrustLevel.EXTERNAL: 0}


class MemoryType(StrEnum):
    """What kind of memory a row is."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class Tenancy(NamedTuple):
    """Whose memories are searched: one tenant's, and within it one agent's.

    A memory always names its agent. A query may name none (``None``): every lane then
    takes agent ``default``, while the shipped system's own scope filter lets any pass.
    """

    tenant_id: str = "default"
    agent_id: str | None = "default"

    @property
    def named(self) -> Tenancy:
        """The tenancy that lanes and policies take: agent ``default`` where none is named."""
        return self if self.agent_id is not None else Tenancy(self.tenant_id)


class Source(NamedTuple):
    """Where a memory came from, as far as it is known."""

    who: str | None = None
    channel: str | None = None
    session_key: str | None = None


class Scope(NamedTuple):
    """Where the recall tool may show a memory: a workspace, a project, or one agent."""

    workspace: str | None = None
    project: str | None = None
    agent: str | None = None


class Turn(NamedTuple):
    """One earlier turn of the conversation a query belongs to."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing an agent may recall.

    Times are integer milliseconds since 1970-01-01 UTC. ``None`` means unknown.

    Attributes:
        id: Unique within a dataset or store; any non-empty string.
        content: The text, not blank. Hostile: escape it wherever it is shown.
        trust_level: How far it may be believed.
        created_at: When it was written.
        occurred_at: When what it tells happened.
        expires_at: From this moment on it is not recalled.
        proof_count: How many observations support it, >= 0.
        confidence: Of the observation, in [0, 1].
        source_ids: The memories it was derived from; its trust is at most their minimum.
        entities: Names it mentions, resolved to entities by the store.
        taint_level: ``wrapped`` when the content already stands between safety markers.
        source_type: What delivered it (``api``, ``tool``, ``system``, ``document``).
        key, scope, project_id, created_by, author_type, relevance, importance, archived,
            status, updated_at, version: Used by the recall tool alone.
        duplicate_of: A label for metrics; no pipeline sees it.
    """

    id: str
    content: str
    trust_level: TrustLevel
    created_at: int
    tenancy: Tenancy = Tenancy()
    memory_type: MemoryType = MemoryType.SEMANTIC
    source: Source = Source()
    source_type: str | None = None
    taint_level: str | None = None
    occurred_at: int | None = None
    expires_at: int | None = None
    proof_count: int | None = None
    confidence: float | None = None
    source_ids: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    key: str | None = None
    scope: str | None = None
    project_id: str | None = None
    created_by: str | None = None
    author_type: str | None = None
    relevance: float | None = None
    importance: float | None = None
    archived: bool | None = None
    status: str | None = None
    updated_at: int | None = None
    version: int | None = None
    duplicate_of: str | None = None

    @property
    def simhash(self) -> int:
        """What near-duplicates have nearly alike, a signed integer of 64 bits."""
        return text.simhash(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a query asks of every memory besides its text; ``None`` or empty asks nothing."""

    memory_type: MemoryType | None = None
    trust_level: TrustLevel | None = None
    tags: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    """The recall tool's own parameters, by the names of its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question put to memory, with what is needed to judge the answer.

    Attributes:
        id: Unique within a dataset.
        text: The current user message; may be blank.
        turns: Earlier turns of the conversation, oldest first.
        now: The moment of asking, ms; recency and expiry are measured from it.
        category: Queries are averaged by it.
        group: Queries about one fact share it; splits and tests never part a group.
        answerable: False when no memory holds the answer.
        superseded: The memory whose fact the right answer replaces.
    """

    id: str
    text: str
    now: int
    turns: tuple[Turn, ...] = ()
    category: str = "uncategorised"
    group: str = ""
    tags: tuple[str, ...] = ()
    tenancy: Tenancy = Tenancy()
    filters: Filters = Filters()
    answerable: bool = True
    superseded: str | None = None


class Fate(StrEnum):
    """What became of a candidate, and at which rule it left."""

    INCLUDED = "included"
    BELOW_MIN_SCORE = "below_min_score"
    TRUST_FILTERED = "trust_filtered"
    DEDUPED = "deduped"
    OVER_BUDGET = "over_budget"
    BEYOND_MAX_RESULTS = "beyond_max_results"
    SCOPE_FILTERED = "scope_filtered"
    EXPIRED = "expired"
    BEYOND_LIMIT = "beyond_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The trace of one memory through one recall.

    Attributes:
        memory: The memory.
        ranks: Rank in each lane that returned it, from 1.
        fused: Normalised fused score.
        reranker: The reranker's score; None when it was not asked or gave none.
        factors: What each boost multiplied, by signal: recency, temporal, proof, trust,
            usefulness; 1 moves nothing.
        base: What the factors multiply.
        final: The boosted score.
        fate: What became of it.
        deduped_by: Id of the memory that stayed in its stead.
    """

    memory: Memory
    ranks: Mapping[str, int]
    fused: float
    reranker: float | None
    base: float
    factors: Mapping[str, float]
    final: float
    fate: Fate
    deduped_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """The answer to one query, and how it came about.

    Attributes:
        query: What was asked.
        text: The search string that was formulated from it.
        section: What to append to the dynamic end of the system prompt; may be empty.
        inline: A line to place beside the user message instead; None when there is none.
        memories: What is injected, best first, an inlined memory included.
        ranking: Survivors of trust filter and dedup, best first.
        candidates: Every memory that a lane returned: the ranking first, then the others.
        context_chars: Characters injected.
        lanes: Hits of each lane that ran.
        rerank: ``ran``, ``timed_out``, ``fell_back`` or ``skipped``, and why not.
        rerank_candidates: How many memories were put to the reranker.
    """

    query: Query
    text: str
    section: str
    inline: str | None
    memories: tuple[Memory, ...]
    ranking: tuple[Candidate, ...]
    candidates: tuple[Candidate, ...]
    context_chars: int
    lanes: Mapping[str, int]
    rerank: tuple[str, str]
    rerank_candidates: int
