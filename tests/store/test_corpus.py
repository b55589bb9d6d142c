import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.store.corpus import NEVER, UNKNOWN, Corpus, QueryBatch, eligible
from comis_eval.types import Filters, MemoryType, Tenancy, TrustLevel
from tests.builders import memory

TENANCIES = [Tenancy("t1", "a1"), Tenancy("t1", "a2"), Tenancy("t2", "a1")]
TAGS = st.lists(st.sampled_from("xyz"), max_size=2).map(tuple)
MEMORIES = st.lists(
    st.builds(
        dict,
        tenancy=st.sampled_from(TENANCIES),
        memory_type=st.sampled_from(MemoryType),
        trust_level=st.sampled_from(TrustLevel),
        expires_at=st.none() | st.integers(0, 3),
        tags=TAGS,
    ),
    max_size=8,
)
FILTERS = st.builds(
    Filters,
    memory_type=st.none() | st.sampled_from(MemoryType),
    trust_level=st.none() | st.sampled_from(TrustLevel),
    tags=TAGS,
)
QUERIES = st.lists(st.tuples(st.sampled_from(TENANCIES), st.integers(0, 3), FILTERS), max_size=5)


def meets(memory_, tenancy, now, filters):
    return (
        memory_.tenancy == tenancy
        and (memory_.expires_at is None or memory_.expires_at > now)
        and filters.memory_type in (None, memory_.memory_type)
        and filters.trust_level in (None, memory_.trust_level)
        and set(filters.tags) <= set(memory_.tags)
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(MEMORIES, QUERIES)
def test_eligible_is_the_rule_for_every_pair(fields, asked):
    corpus = Corpus.from_memories([memory(f"m{i}", **f) for i, f in enumerate(fields)])
    batch = QueryBatch(
        texts=("",) * len(asked),
        tenancies=tuple(tenancy for tenancy, _, _ in asked),
        scope=np.array([corpus.scope_of.get(t, -1) for t, _, _ in asked], dtype=np.int32),
        now=np.array([now for _, now, _ in asked], dtype=np.int64),
        filters=tuple(filters for _, _, filters in asked),
    )
    queries, rows = np.divmod(np.arange(len(asked) * len(corpus)), max(len(corpus), 1))
    expected = [meets(corpus.memories[r], *asked[q]) for q, r in zip(queries, rows, strict=True)]
    assert eligible(corpus, batch, queries, rows).tolist() == expected


def test_columns_by_hand():
    corpus = Corpus.from_memories(
        [
            memory("b", trust_level=TrustLevel.SYSTEM, expires_at=5, entities=("Maya", "Zoe")),
            memory("a", tenancy=Tenancy("t", "x"), occurred_at=7),
            memory("é", memory_type=MemoryType.WORKING, entities=("Zoe", "Zoë")),
        ]
    )
    assert corpus.tenancies == (Tenancy(), Tenancy("t", "x"))
    assert corpus.scope.tolist() == [0, 1, 0]
    assert corpus.trust.tolist() == [2, 1, 1]
    assert corpus.id_rank.tolist() == [1, 0, 2]
    assert corpus.expires_at.tolist() == [5, NEVER, NEVER]
    assert corpus.occurred_at.tolist() == [UNKNOWN, 7, UNKNOWN]
    assert corpus.row_of == {"b": 0, "a": 1, "é": 2}
    starts, rows = corpus.holders
    assert (starts.tolist(), rows.tolist()) == ([0, 1, 3], [0, 0, 2])


def test_an_empty_corpus_has_empty_columns():
    corpus = Corpus.from_memories([])
    assert [len(c) for c in (corpus.scope, corpus.trust, corpus.id_rank, corpus.holders.rows)] == [
        0
    ] * 4
