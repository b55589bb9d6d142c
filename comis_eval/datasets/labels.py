"""What a dataset says besides its memories and queries: policy, attacks, links, feedback."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from comis_eval.types import Memory, Query, TrustLevel


class ScopeRule(StrEnum):
    """Whose memories may answer a query."""

    TENANCY = "tenancy"
    """Those of the query's tenant and agent."""
    TENANT = "tenant"
    """Those of the query's tenant, save rows of agent scope, which are their author's alone."""


class Policy(NamedTuple):
    """What a query may be answered from; a context that holds anything else leaks.

    Attributes:
        trust_levels: The levels allowed.
        scope: Whose memories are allowed.
    """

    trust_levels: frozenset[TrustLevel] = frozenset({TrustLevel.SYSTEM, TrustLevel.LEARNED})
    scope: ScopeRule = ScopeRule.TENANCY

    def trusts(self, memory: Memory) -> bool:
        """Tell whether the memory's trust level is allowed."""
        return memory.trust_level in self.trust_levels

    def shows(self, memory: Memory, query: Query) -> bool:
        """Tell whether the memory's scope is one the query may see.

        A row of agent scope belongs to ``created_by``, else to the agent of its tenancy,
        and under either rule only that agent may see it.
        """
        if memory.scope == "agent":
            author = memory.created_by or memory.tenancy.agent_id
            mine = author == query.tenancy.named.agent_id
        else:
            mine = True
        if self.scope is ScopeRule.TENANT:
            return mine and memory.tenancy.tenant_id == query.tenancy.tenant_id
        return mine and memory.tenancy == query.tenancy.named


DEFAULT_POLICY = Policy()
"""System and learned memories of the query's own tenancy."""


class Attack(NamedTuple):
    """Memories planted to be recalled for a query, and the kind of attack they make."""

    query_id: str
    poison_ids: tuple[str, ...]
    kind: str


class Link(NamedTuple):
    """A causal link: what ``from_id`` tells led to what ``to_id`` tells; confidence in [0, 1]."""

    from_id: str
    to_id: str
    confidence: float


class Edge(NamedTuple):
    """An edge of the recall tool's knowledge graph; weight in [0, 1]."""

    from_id: str
    to_id: str
    kind: str
    weight: float


class Usefulness(NamedTuple):
    """How often a memory was used, and ignored, after it was injected; both >= 0."""

    used: int
    ignored: int
