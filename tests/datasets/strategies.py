"""Datasets for properties: every field, hostile text, no two alike."""

from __future__ import annotations

from hypothesis import strategies as st

from comis_eval.datasets import (
    Attack,
    Dataset,
    Edge,
    Judgments,
    Link,
    Policy,
    ScopeRule,
    Usefulness,
)
from comis_eval.types import (
    Filters,
    Memory,
    MemoryType,
    Query,
    Source,
    Tenancy,
    TrustLevel,
    Turn,
)

IDS = st.text(st.sampled_from("abcAZ019:._-#\"'\\{é漢\u202e"), min_size=1, max_size=5)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TEXTS = ANY_TEXT.filter(str.strip)
MARKED = st.lists(
    st.sampled_from(
        ["<", ">", "&", ";", "#", "</DOC>", "</TEXT>", "&lt;", "&#9;", "Topic:", "<top>", '"', "\\"]
    )
    | st.sampled_from(
        ["\r", "\n", "\t", "\x00", "\x1b[2J", "\x85", "\u2028", "\u202e", "\ufeff", " ", "a"]
    )
    | ANY_TEXT,
    max_size=6,
).map("".join)
"""What SGML, JSON or a TSV would stumble over."""
TIMES = st.integers(-(2**63), 2**63 - 1)
SHARES = st.floats(0, 1)
TENANCIES = st.builds(Tenancy, IDS, IDS)
LISTS = st.lists(TEXTS, max_size=2).map(tuple)


def maybe(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | strategy


@st.composite
def memories(draw: st.DrawFn, memory_id: str) -> Memory:
    return Memory(
        id=memory_id,
        content=draw(TEXTS),
        trust_level=draw(st.sampled_from(TrustLevel)),
        created_at=draw(TIMES),
        tenancy=draw(TENANCIES),
        memory_type=draw(st.sampled_from(MemoryType)),
        source=draw(st.builds(Source, maybe(TEXTS), maybe(TEXTS), maybe(TEXTS))),
        source_type=draw(maybe(TEXTS)),
        taint_level=draw(maybe(TEXTS)),
        occurred_at=draw(maybe(TIMES)),
        expires_at=draw(maybe(TIMES)),
        proof_count=draw(maybe(st.integers(0, 2**63 - 1))),
        confidence=draw(maybe(SHARES)),
        entities=draw(LISTS),
        tags=draw(LISTS),
        key=draw(maybe(st.from_regex(r"[a-z0-9][a-z0-9-]{0,4}[a-z0-9]", fullmatch=True))),
        # Agent scope needs an author, which the folder form tells from the default agent.
        scope=draw(maybe(st.sampled_from(["workspace", "project"]))),
        project_id=draw(maybe(TEXTS)),
        created_by=draw(maybe(TEXTS)),
        author_type=draw(maybe(st.sampled_from(["agent", "human", "system"]))),
        relevance=draw(maybe(SHARES)),
        importance=draw(maybe(SHARES)),
        archived=draw(maybe(st.booleans())),
        status=draw(maybe(st.sampled_from(["active", "stale", "superseded"]))),
        updated_at=draw(maybe(TIMES)),
        version=draw(maybe(st.integers(1, 2**53 - 1))),
    )


@st.composite
def queries(draw: st.DrawFn, query_id: str, memory_ids: list[str], *, answerable: bool) -> Query:
    parameters = st.fixed_dictionaries(
        {}, optional={"limit": st.integers(0, 60), "full": st.booleans(), "tags_any": LISTS}
    )
    return Query(
        id=query_id,
        text=draw(ANY_TEXT),
        now=draw(TIMES),
        turns=draw(st.lists(st.builds(Turn, TEXTS, ANY_TEXT), max_size=2).map(tuple)),
        category=draw(st.sampled_from(["uncategorised", "trap", "temporal"])),
        group=draw(st.just(query_id) | TEXTS),
        tags=draw(LISTS),
        tenancy=draw(TENANCIES),
        filters=draw(
            st.builds(
                Filters,
                memory_type=maybe(st.sampled_from(MemoryType)),
                trust_level=maybe(st.sampled_from(TrustLevel)),
                tags=LISTS,
                parameters=parameters,
            )
        ),
        answerable=answerable,
        superseded=draw(maybe(st.sampled_from(memory_ids))),
    )


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    memory_ids = draw(st.lists(IDS, min_size=2, max_size=4, unique=True))
    query_ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    grades = draw(
        st.dictionaries(
            st.tuples(st.integers(0, len(query_ids) - 1), st.integers(0, len(memory_ids) - 1)),
            st.integers(0, 3),
        )
    )
    answerable = {query for (query, _), grade in grades.items() if grade}
    kept = [draw(memories(memory_id)) for memory_id in memory_ids]
    first, second = memory_ids[:2]
    return Dataset(
        name=draw(st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", fullmatch=True)),
        version=draw(st.just("") | TEXTS),
        description=draw(ANY_TEXT),
        policy=Policy(
            draw(st.frozensets(st.sampled_from(TrustLevel))), draw(st.sampled_from(ScopeRule))
        ),
        categories=draw(
            st.just({})
            | st.fixed_dictionaries(
                dict.fromkeys(["uncategorised", "trap", "temporal"], st.booleans())
            )
        ),
        memories=tuple(kept),
        queries=tuple(
            draw(queries(query_id, memory_ids, answerable=position in answerable))
            for position, query_id in enumerate(query_ids)
        ),
        judgments=Judgments.of(
            ((query, row, grade) for (query, row), grade in grades.items()),
            n_queries=len(query_ids),
        ),
        attacks=draw(
            st.just(())
            | st.builds(Attack, st.just(query_ids[0]), st.just((first,)), TEXTS).map(
                lambda attack: (attack,)
            )
        ),
        links=draw(st.just(()) | SHARES.map(lambda share: (Link(first, second, share),))),
        edges=draw(
            st.just(())
            | st.builds(Edge, st.just(second), st.just(first), TEXTS, SHARES).map(
                lambda edge: (edge,)
            )
        ),
        usefulness=draw(
            st.dictionaries(
                st.sampled_from(memory_ids),
                st.builds(Usefulness, st.integers(0, 99), st.integers(0, 99)),
            )
        ),
    )
