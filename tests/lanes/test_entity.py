import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.lanes.entity import spread
from comis_eval.store import Store
from comis_eval.store.corpus import Corpus, Entities
from comis_eval.types import Tenancy, TrustLevel
from tests.builders import memory
from tests.golden_data import cases
from tests.lanes.build import HERE, THERE, everyone, ids, listed

NAMES = ["Maya", "Okafor", "kiln", "Zoe", "Brackwater"]


def run(corpus, seeds, *, cap=200, reenter=False, scope=None, allowed=everyone):
    """Seeds are lists of ids, one a query; ids that do not exist are no seeds."""
    width = max(map(len, seeds), default=0)
    rows = [[corpus.row_of.get(id_, -1) for id_ in line] for line in seeds]
    padded = np.array([line + [-1] * (width - len(line)) for line in rows], dtype=np.int32)
    scope = [0] * len(seeds) if scope is None else scope
    return spread(
        padded.reshape(len(seeds), width),
        corpus,
        np.array(scope, dtype=np.int32),
        cap=cap,
        reenter=reenter,
        allowed=allowed,
    )


def golden_corpus(given_):
    """The memories through the store; explicit links, which cross tenancies, beside it."""
    mentions = {}
    for mention in given_.get("mentionsByName", []):
        mentions.setdefault(mention["memoryId"], []).append(mention["name"])
    with Store.open() as store:
        store.add(
            memory(
                m["id"],
                tenancy=Tenancy(m["tenantId"], m["agentId"]),
                trust_level=TrustLevel(m["trustLevel"]),
                expires_at=m["expiresAt"],
                entities=tuple(mentions.get(m["id"], ())),
            )
            for m in given_["memories"]
        )
        corpus = store.corpus()
    if "links" not in given_:
        return corpus
    names = sorted({link["entityId"] for link in given_["links"]})
    pairs = sorted(
        {(corpus.row_of[x["memoryId"]], names.index(x["entityId"])) for x in given_["links"]}
    )
    rows, entities = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    return replace(corpus, entities=Entities(rows, entities, tuple(names)))


@pytest.mark.parametrize(
    "case",
    [case for case in cases("memory-recall", "entity_lane") if "queries" in case],
    ids=lambda case: case["name"],
)
def test_golden_lane(case):
    corpus = golden_corpus(case["input"])
    for query in case["queries"]:
        scope = corpus.scope_of.get(
            Tenancy(query["scope"]["tenantId"], query["scope"]["agentId"]), -1
        )
        hits = run(corpus, [query["seedIds"]], cap=query["cap"], reenter=True, scope=[scope])
        assert ids(corpus, hits) == [hit["id"] for hit in query["expected"]]
        assert hits.scores.tolist() == pytest.approx(
            [h["score"] for h in query["expected"]], rel=1e-12
        )
        returned = [id_ for id_ in ids(corpus, hits) if id_ in query["seedIds"]]
        assert sorted(returned) == sorted(query["seedsReturned"])


def graph(**mentions):
    return Corpus.from_memories(
        [memory(id_, entities=tuple(names)) for id_, names in mentions.items()]
    )


def test_shared_entities_by_hand():
    corpus = graph(
        seed=["Maya", "kiln"], a=["Maya"], b=["kiln", "Maya", "Zoe"], c=["Zoe"], d=["kiln"]
    )
    hits = run(corpus, [["seed"]])
    # b shares two; a and d one, the later id first; c shares none
    assert listed(corpus, hits) == [
        ("b", math.tanh(1)),
        ("d", math.tanh(0.5)),
        ("a", math.tanh(0.5)),
    ]
    assert hits.exhausted.tolist() == [True]
    capped = run(corpus, [["seed"]], cap=2)
    assert (ids(corpus, capped), capped.exhausted.tolist()) == (["b", "d"], [False])


def test_an_entity_of_two_seeds_counts_once():
    corpus = graph(s1=["Maya"], s2=["Maya"], a=["Maya"])
    assert listed(corpus, run(corpus, [["s1", "s2", "s1"]])) == [("a", math.tanh(0.5))]


def test_seeds_come_back_only_for_another_seeds_entities():
    corpus = graph(s1=["Maya", "kiln"], s2=["Maya", "Zoe"], s3=["Brackwater"], a=["Zoe"])
    seeds = [["s1", "s2", "s3"]]
    assert ids(corpus, run(corpus, seeds)) == ["a"]
    assert listed(corpus, run(corpus, seeds, reenter=True)) == [
        ("s2", math.tanh(0.5)),
        ("s1", math.tanh(0.5)),
        ("a", math.tanh(0.5)),
    ]


def test_what_is_not_allowed_takes_no_place():
    corpus = graph(seed=["Maya"], a=["Maya"], b=["Maya"], c=["Maya"])
    not_c = lambda queries, rows: rows != corpus.row_of["c"]  # noqa: E731
    hits = run(corpus, [["seed"]], cap=1, allowed=not_c)
    assert (ids(corpus, hits), hits.exhausted.tolist()) == (["b"], [False])


def test_no_seeds_no_entities_no_queries():
    corpus = graph(a=["Maya"], b=["Maya"])
    assert run(corpus, [[], ["a"]]).lengths.tolist() == [0, 1]
    assert run(corpus, [["a"]], scope=[-1]).lengths.tolist() == [0]
    assert run(corpus, []).lengths.tolist() == []
    assert run(graph(a=[], b=[]), [["a"]]).lengths.tolist() == [0]
    assert run(Corpus.from_memories([]), [["a"]], scope=[-1]).lengths.tolist() == [0]


MENTIONS = st.lists(
    st.tuples(st.sampled_from([HERE, THERE]), st.lists(st.sampled_from(NAMES), max_size=3)),
    min_size=1,
    max_size=9,
)


def brute(corpus, seeds, scope, cap, reenter):
    mentioned = [set() for _ in corpus.memories]
    for row, entity in zip(corpus.entities.rows, corpus.entities.entities, strict=True):
        mentioned[row].add(int(entity))
    found = []
    for row, memory_ in enumerate(corpus.memories):
        others = set().union(*(mentioned[s] for s in seeds if s != row))
        shared = len(mentioned[row] & others)
        if shared and corpus.scope[row] == scope and (reenter or row not in seeds):
            found.append((shared, memory_.id))
    return [(id_, math.tanh(shared / 2)) for shared, id_ in sorted(found, reverse=True)[:cap]]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(MENTIONS, st.booleans(), st.integers(1, 5), st.data())
def test_a_whole_query_set_gets_what_each_pair_says(mentions, reenter, cap, data):
    corpus = Corpus.from_memories(
        [memory(f"m{i}", tenancy=t, entities=tuple(names)) for i, (t, names) in enumerate(mentions)]
    )
    rows = st.integers(0, len(corpus) - 1)
    asked = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(corpus.tenancies) - 1), st.lists(rows, max_size=4)),
            min_size=1,
            max_size=4,
        )
    )
    seeds = [[f"m{row}" for row in line] for _, line in asked]
    hits = run(corpus, seeds, cap=cap, reenter=reenter, scope=[s for s, _ in asked])
    for query, (scope, line) in enumerate(asked):
        expected = brute(corpus, set(line), scope, cap, reenter)
        assert listed(corpus, hits, query) == [
            (id_, pytest.approx(s, rel=1e-15)) for id_, s in expected
        ]


def test_blocks_of_queries_change_nothing(monkeypatch):
    corpus = graph(**{f"m{i}": [NAMES[i % 5], NAMES[i % 3]] for i in range(40)})
    seeds = [[f"m{i}", f"m{(7 * i) % 40}"] for i in range(30)]
    whole = run(corpus, seeds)
    monkeypatch.setattr("comis_eval.lanes.spreading._PAIRS", 10)
    parts = run(corpus, seeds)
    assert whole.rows.tolist() == parts.rows.tolist()
    assert whole.offsets.tolist() == parts.offsets.tolist()
