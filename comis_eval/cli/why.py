"""Why a candidate is in the context or out of it, in words."""

from __future__ import annotations

from collections.abc import Callable

from comis_eval.candidates import SEARCH_LANES, Rankings
from comis_eval.pipelines.injecting import style_of
from comis_eval.stages import present
from comis_eval.text import printable
from comis_eval.types import Candidate, Fate, Memory, Query, RecallResult

_ID_CHARS = 60


def why(rankings: Rankings, result: RecallResult, candidate: Candidate) -> str:
    """Say what became of a candidate of a recall and by which rule; safe to print.

    Args:
        rankings: A ranking of one query.
        result: The recall made of it.
        candidate: One of its candidates.
    """
    return _TOLD[candidate.fate](rankings, result, candidate)


def _included(rankings: Rankings, result: RecallResult, candidate: Candidate) -> str:
    place = 1 + [memory.id for memory in result.memories].index(candidate.memory.id)
    if result.inline is not None and place == 1:
        floor = rankings.config.semantics.inline_min_score
        return f"beside the message: final {_number(candidate.final)} >= inlineMinScore {floor}"
    return f"place {place}, {line_length(rankings, candidate.memory)} characters"


def _below_min_score(rankings: Rankings, _: RecallResult, candidate: Candidate) -> str:
    config = rankings.config
    floor = f"rag.minScore {_number(config.rag.min_score)}"
    if config.semantics.min_score_on == "final":
        return f"final {_number(candidate.final)} < {floor}"
    if config.semantics.fusion == "nested" and set(rankings.ranks) - set(SEARCH_LANES):
        return f"its score in the fusion of {' and '.join(SEARCH_LANES)} < {floor}"
    return f"fused {_number(candidate.fused)} < {floor}"


def _trust_filtered(rankings: Rankings, _: RecallResult, candidate: Candidate) -> str:
    levels = ", ".join(rankings.config.rag.include_trust_levels)
    return f"{candidate.memory.trust_level} is not in rag.includeTrustLevels [{levels}]"


def _deduped(rankings: Rankings, _: RecallResult, candidate: Candidate) -> str:
    kept = rankings.config.semantics.dedup_keep
    return f"repeats {printable(candidate.deduped_by or '', limit=_ID_CHARS)}, the {kept} of them"


def _over_budget(rankings: Rankings, result: RecallResult, candidate: Candidate) -> str:
    config = rankings.config
    length, before = (
        line_length(rankings, candidate.memory),
        _used_before(rankings, result, candidate),
    )
    limit = config.rag.max_context_chars
    if before + length <= limit:
        return "behind a memory that did not fit (semantics.budgetOverflow stop)"
    return f"{length} characters on top of {before} exceed rag.maxContextChars {limit}"


def _beyond_max_results(rankings: Rankings, _: RecallResult, __: Candidate) -> str:
    return f"rag.maxResults {rankings.config.rag.max_results} was reached before it"


def _scope_filtered(_: Rankings, result: RecallResult, candidate: Candidate) -> str:
    memory, query = candidate.memory, result.query
    if not _same_scope(memory, query):
        tenant, agent = memory.tenancy
        return printable(f"belongs to tenant {tenant}, agent {agent}", limit=120)
    if query.filters.trust_level not in (None, memory.trust_level):
        return f"is {memory.trust_level}, the query asks for {query.filters.trust_level}"
    lacking = ", ".join(tag for tag in query.filters.tags if tag not in memory.tags)
    return printable(f"lacks the tags {lacking}", limit=120)


def _same_scope(memory: Memory, query: Query) -> bool:
    """Whether the shipped system's scope filter lets a memory pass: no agent asked, any will do."""
    tenant, agent = query.tenancy
    return memory.tenancy.tenant_id == tenant and agent in (None, memory.tenancy.agent_id)


def _expired(_: Rankings, result: RecallResult, candidate: Candidate) -> str:
    expiry = candidate.memory.expires_at
    told = "" if expiry is None else f" on {present.iso_date(expiry)}"
    return f"expired{told}, asked on {present.iso_date(result.query.now)}"


def _beyond_limit(rankings: Rankings, _: RecallResult, __: Candidate) -> str:
    return f"behind the first {rankings.config.limit} of the search (semantics.trustRefill false)"


_TOLD: dict[Fate, Callable[[Rankings, RecallResult, Candidate], str]] = {
    Fate.INCLUDED: _included,
    Fate.BELOW_MIN_SCORE: _below_min_score,
    Fate.TRUST_FILTERED: _trust_filtered,
    Fate.DEDUPED: _deduped,
    Fate.OVER_BUDGET: _over_budget,
    Fate.BEYOND_MAX_RESULTS: _beyond_max_results,
    Fate.SCOPE_FILTERED: _scope_filtered,
    Fate.EXPIRED: _expired,
    Fate.BEYOND_LIMIT: _beyond_limit,
}


def line_length(rankings: Rankings, memory: Memory) -> int:
    """Length of a memory's line with its newline, as the budget counts it."""
    return present.line_length(memory, style_of(rankings.config))


def _used_before(rankings: Rankings, result: RecallResult, candidate: Candidate) -> int:
    """Characters of the section when it was a candidate's turn."""
    used = present.length(present.HEADER, rankings.config.semantics.length_units)
    inline = result.memories[0].id if result.inline is not None else None
    for ranked in result.ranking:
        if ranked.memory.id == candidate.memory.id:
            break
        if ranked.fate is Fate.INCLUDED and ranked.memory.id != inline:
            used += line_length(rankings, ranked.memory)
    return used


def _number(value: float) -> str:
    """A score with as many digits as tell it from its neighbours."""
    return f"{value:.4g}"
