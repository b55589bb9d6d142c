"""Shared Hypothesis strategies: memories, queries and configurations over the whole knob space."""

from typing import Any

from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments, Link
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
from tests.builders import DAY, NOW

WORDS = ["kiln", "glaze", "Maya", "runs", "running", "the", "café", "東京", "v2.5", "tax", "😀"]
NAMES = ["Maya", "Maya Chen", "Kiln", "Brackwater", "Café Luna"]
TENANCIES = [Tenancy("t1", "a1"), Tenancy("t1", "a2"), Tenancy("t1"), Tenancy("t2", "a1")]

TEXTS = st.lists(st.sampled_from(WORDS), min_size=0, max_size=6).map(" ".join)
# Some times are those of other memories: event dates are often told by the day.
TIMES = st.sampled_from([NOW - 30 * DAY, NOW - DAY]) | st.integers(NOW - 400 * DAY, NOW + 2 * DAY)
SHARES = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]) | st.floats(0, 1)
COUNTS = st.integers(1, 6)


@st.composite
def memories(
    draw: st.DrawFn, tenancies: list[Tenancy] = TENANCIES, prefix: str = "m"
) -> list[Memory]:
    """Some memories, with twins, ties, expiries, entities and every trust level."""
    count = draw(st.integers(1, 14))
    made = []
    for number in range(count):
        made.append(
            Memory(
                id=f"{prefix}{number}",
                content=draw(TEXTS.filter(str.strip)),
                trust_level=draw(st.sampled_from(TrustLevel)),
                created_at=draw(TIMES),
                tenancy=draw(st.sampled_from([t for t in tenancies if t.agent_id])),
                memory_type=draw(st.sampled_from(MemoryType)),
                source=draw(
                    st.sampled_from([Source(), Source("Ann", "chat"), Source(None, "mail")])
                ),
                occurred_at=draw(st.none() | TIMES),
                expires_at=draw(st.none() | st.none() | TIMES),
                proof_count=draw(st.none() | st.integers(0, 200)),
                confidence=draw(st.none() | st.floats(0, 1)),
                entities=tuple(draw(st.lists(st.sampled_from(NAMES), max_size=3))),
                tags=tuple(draw(st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True))),
            )
        )
    return made


@st.composite
def queries(draw: st.DrawFn) -> list[Query]:
    """Some queries; filters, turns, blanks and tenancies without an agent among them."""
    agents = [*TENANCIES, Tenancy("t1", None), Tenancy("nobody")]
    return [
        Query(
            id=f"q{number}",
            text=draw(TEXTS),
            now=draw(st.just(NOW) | TIMES),
            turns=tuple(draw(st.lists(st.builds(Turn, st.just("user"), TEXTS), max_size=2))),
            tenancy=draw(st.sampled_from(agents)),
            filters=draw(
                st.just(Filters())
                | st.builds(
                    Filters,
                    memory_type=st.none() | st.sampled_from(MemoryType),
                    trust_level=st.none() | st.sampled_from(TrustLevel),
                    tags=st.sampled_from([(), ("x",), ("x", "y")]),
                )
            ),
        )
        for number in range(draw(st.integers(1, 4)))
    ]


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Memories, queries, causal links and feedback; nothing is judged."""
    rows, asked = draw(memories()), draw(queries())
    ids = [memory.id for memory in rows]
    pairs = draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=4))
    return Dataset(
        name="drawn",
        memories=tuple(rows),
        queries=tuple(asked),
        judgments=Judgments.of([], n_queries=len(asked)),
        links=tuple(Link(a, b, draw(SHARES)) for a, b in pairs if a != b),
        usefulness={},
    )


SWITCHES: dict[str, st.SearchStrategy[Any]] = {
    "queryContextTurns": st.integers(0, 3),
    "keywordStatistics": st.sampled_from(["scope", "table"]),
    "laneDepth": st.sampled_from(["limit", 1, 3, 100]),
    "scopeFilter": st.sampled_from(["in_lane", "after_fusion"]),
    "fusion": st.sampled_from(["flat", "nested"]),
    "laneWeights": st.fixed_dictionaries(
        {},
        optional={
            "fts": st.sampled_from([0.0, 1.0, 2.5]),
            "vector": st.sampled_from([0.5, 1.5]),
        },
    ),
    "minScoreOn": st.sampled_from(["fused", "final"]),
    "minScoreExemptsEntity": st.booleans(),
    "entitySeedsReenter": st.booleans(),
    "trustRefill": st.booleans(),
    "dedupKeep": st.sampled_from(["best", "newest"]),
    "dedupUnits": st.sampled_from(["code_points", "utf16"]),
    "trimToMaxResults": st.booleans(),
    "budgetOverflow": st.sampled_from(["skip", "stop"]),
    "lengthUnits": st.sampled_from(["code_points", "utf16"]),
    "wrap": st.sampled_from(["external", "non_system"]),
    "lineFormat": st.sampled_from(["full", "short"]),
    "inlineMinScore": st.none() | SHARES,
}


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """A configuration anywhere in the knob space, under either preset or between them."""
    signals = ("recency", "temporal", "proof", "trust", "usefulness")
    rag = {
        "maxResults": draw(COUNTS),
        "maxContextChars": draw(st.integers(60, 900)),
        "minScore": draw(SHARES),
        "includeTrustLevels": draw(
            st.lists(st.sampled_from(["system", "learned", "external"]), unique=True)
        ),
        "rerank": {
            "enabled": draw(st.booleans()), "maxCandidates": draw(COUNTS),
            "minResults": draw(st.integers(0, 3)), "timeoutMs": 10**9,
        },
        "scoring": {f"{signal}Alpha": draw(SHARES) for signal in signals},
        "entityLane": {
            "enabled": draw(st.booleans()), "seedCount": draw(COUNTS),
            "perEntityCap": draw(COUNTS), "weight": draw(st.sampled_from([0.0, 0.3, 1.0])),
        },
        "lanes": {
            "temporal": {"enabled": draw(st.booleans()), "windowDays": draw(st.integers(1, 60))},
            "causal": {"enabled": draw(st.booleans())},
        },
        "mmr": {"enabled": draw(st.booleans()), "lambda": draw(SHARES)},
        "feedback": {"enabled": draw(st.booleans())},
    }  # fmt: skip
    semantics = {"preset": draw(st.sampled_from(["documented", "production"]))}
    semantics |= draw(st.fixed_dictionaries({}, optional=SWITCHES))
    harness = {
        "keywordBackend": draw(st.sampled_from(["fts5", "rank_bm25"])),
        "fusion": {
            "k": draw(st.sampled_from([1, 60])),
            "kind": draw(st.sampled_from(["rrf", "rrf", "convex"])),
        },
    }
    return Config.model_validate({"rag": rag, "semantics": semantics, "harness": harness})
