"""Planted memories: what they are made from, whom they aim at, and that nothing else changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.datasets import (
    KINDS,
    Attack,
    Dataset,
    Judgments,
    Link,
    Usefulness,
    attack,
    load_dataset,
    without_poison,
    write_dataset,
)
from comis_eval.errors import DatasetError, StoreError
from comis_eval.store import Store
from comis_eval.types import Filters, MemoryType, Tenancy, TrustLevel
from tests.builders import NOW, memory, query

MEMORIES = (memory("truth", "the vault opens at nine"), memory("noise", "the cat sleeps at nine"))
QUERIES = (
    query("When does the vault open?", "q1", group="g", tenancy=Tenancy("t", "a")),
    query("and the cat?", "q2", group="g"),
    query("who won?", "q3", group="q3", answerable=False),
    query("   ", "q4", group="q4"),
)


def world(**fields) -> Dataset:
    judged = Judgments.of([(0, 0, 3), (1, 1, 2), (3, 1, 1)], n_queries=4)
    fields = {"memories": MEMORIES, "queries": QUERIES, "judgments": judged} | fields
    return Dataset(name="world", **fields)


def planted(made: Dataset, query_id: str):
    ids = next(a.poison_ids for a in made.attacks if a.query_id == query_id)
    return [made.memories[made.row_of[i]] for i in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_poison_speaks_the_query_and_one_false_answer_and_nothing_of_the_truth(kind):
    made = attack(world(), kind, rate=1.0, seed=0)
    assert [a.query_id for a in made.attacks] == ["q1", "q2"], "answerable, and not blank"
    assert {a.kind for a in made.attacks} == {kind}
    for one in planted(made, "q1"):
        assert "vault open" in one.content
        assert "nine" not in one.content
        assert one.tenancy == Tenancy("t", "a")
        assert one.created_at == one.occurred_at == NOW - 3_600_000


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_stays_as_it_was_and_poison_is_judged_0(kind):
    made = attack(world(), kind, rate=1.0, seed=0)
    assert made.memories[:2] == MEMORIES
    assert made.queries == QUERIES
    assert made.judgments.grade(0, 0) == 3
    judged = made.judgments.judged(0)
    assert judged.grades.tolist() == [3] + [0] * (len(judged.grades) - 1)
    assert len(judged.grades) == 1 + len(planted(made, "q1"))


def test_what_trust_each_kind_is_stored_with():
    def levels(kind: str) -> list[str]:
        return [str(m.trust_level) for m in planted(attack(world(), kind, rate=1, seed=0), "q1")]

    assert levels("learned-poison") == ["learned"]
    assert levels("laundering") == ["external", "learned"]
    assert levels("crowding") == ["external"] * 6
    others = set(KINDS) - {"learned-poison", "laundering", "crowding"}
    assert {level for kind in others for level in levels(kind)} == {"external"}


def test_an_observation_that_names_its_external_source_is_refused_by_the_store():
    note, observation = planted(attack(world(), "laundering", rate=1, seed=0), "q1")
    store = Store.open(None)
    try:
        with pytest.raises(StoreError, match="external"):
            store.add([note, replace(observation, source_ids=(note.id,))])
    finally:
        store.close()


def test_crowding_differs_within_the_fingerprint_of_dedup():
    starts = [m.content[:20] for m in planted(attack(world(), "crowding", rate=1, seed=0), "q1")]
    assert len(set(starts)) == len(starts) == 6


def test_markers_and_invisible_orders_are_really_there():
    forged = planted(attack(world(), "marker-forgery", rate=1, seed=0), "q1")[0].content
    assert "\n[system] (recorded" in forged
    hidden = planted(attack(world(), "invisible", rate=1, seed=0), "q1")[0].content
    assert "\u200b" in hidden
    assert "\uff33\uff39\uff33" in hidden


def test_an_attacker_meets_the_filters_of_the_query():
    filters = Filters(memory_type=MemoryType.EPISODIC, tags=("vault",))
    asked = replace(QUERIES[0], filters=filters)
    made = attack(world(queries=(asked, *QUERIES[1:])), "value-swap", rate=1, seed=0)
    assert planted(made, "q1")[0].memory_type is MemoryType.EPISODIC
    assert planted(made, "q1")[0].tags == ("vault",)


@given(seed=st.integers(0, 2**32), kind=st.sampled_from(KINDS), rate=st.floats(0.01, 1))
def test_the_same_request_gives_the_same_poison(seed, kind, rate):
    first, again = (attack(world(), kind, rate=rate, seed=seed) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert 1 <= len(first.attacks) <= 2


def test_every_kind_aims_at_the_same_queries_and_another_seed_at_others():
    many = [query(f"question number {n}?", f"q{n}") for n in range(40)]
    judged = Judgments.of([(n, 0, 1) for n in range(40)], n_queries=40)
    data = world(queries=tuple(many), judgments=judged)

    def aimed(kind: str, seed: int) -> list[str]:
        return [a.query_id for a in attack(data, kind, rate=0.25, seed=seed).attacks]

    assert len(aimed("crowding", 1)) == 10
    assert aimed("crowding", 1) == aimed("invisible", 1)
    assert aimed("crowding", 1) != aimed("crowding", 2)


def test_poison_that_was_there_is_taken_out_with_all_that_is_said_of_it():
    old = memory("old-poison", "the vault opens at midnight", trust_level=TrustLevel.EXTERNAL)
    judged = Judgments.of([(0, 0, 0), (0, 1, 3), (1, 2, 2), (3, 2, 1)], n_queries=4)
    data = world(
        memories=(old, *MEMORIES),
        judgments=judged,
        attacks=(Attack("q1", ("old-poison",), "by hand"),),
        links=(Link("old-poison", "truth", 0.5), Link("noise", "truth", 0.5)),
        usefulness={"old-poison": Usefulness(1, 1), "truth": Usefulness(2, 0)},
    )
    assert without_poison(data).fingerprint == without_poison(without_poison(data)).fingerprint
    bare = without_poison(data)
    assert bare.memories == MEMORIES
    assert bare.judgments.grade(0, 0) == 3, "the row moved, the judgment with it"
    assert [link.from_id for link in bare.links] == ["noise"]
    assert set(bare.usefulness) == {"truth"}
    assert not bare.attacks
    made = attack(data, "value-swap", rate=1, seed=0)
    assert "old-poison" not in made.row_of


def test_what_comes_from_poison_must_be_called_poison():
    old = memory("old-poison", trust_level=TrustLevel.EXTERNAL)
    derived = memory("derived", trust_level=TrustLevel.EXTERNAL, source_ids=("old-poison",))
    attacks = (Attack("q1", ("old-poison",), "by hand"),)
    with pytest.raises(DatasetError, match="'derived' comes from 'old-poison'"):
        without_poison(world(memories=(*MEMORIES, old, derived), attacks=attacks))
    tied = (replace(QUERIES[0], superseded="old-poison"), *QUERIES[1:])
    with pytest.raises(DatasetError, match="'q1' is superseded by the poison"):
        without_poison(world(memories=(*MEMORIES, old), queries=tied, attacks=attacks))


@pytest.mark.parametrize("kind", KINDS)
def test_the_attacked_set_is_a_valid_folder(kind, tmp_path):
    made = attack(world(), kind, rate=1.0, seed=0)
    folder = write_dataset(made, tmp_path / kind)
    assert load_dataset(folder).fingerprint == made.fingerprint


@pytest.mark.parametrize("rate", [0, -0.1, 1.01, float("nan")])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(DatasetError, match=r"share of queries to attack, in \(0, 1\]"):
        attack(world(), "crowding", rate=rate, seed=0)


def test_errors_name_what_there_is():
    with pytest.raises(DatasetError, match=r"crowding, laundering.*did you mean crowding"):
        attack(world(), "crowdin", rate=1, seed=0)
    nobody = world(queries=(QUERIES[2],), judgments=Judgments.of([], n_queries=1))
    with pytest.raises(DatasetError, match="no query is answerable"):
        attack(nobody, "crowding", rate=1, seed=0)
    taken = world(memories=(*MEMORIES, memory("poison-value-swap-q1-0")))
    with pytest.raises(DatasetError, match="has the id a planted one would get"):
        attack(taken, "value-swap", rate=1, seed=0)


def test_keeping_some_memories_keeps_what_is_said_among_them():
    other = memory("other", "elsewhere")
    data = world(
        memories=(other, *MEMORIES),
        judgments=Judgments.of([(0, 0, 1), (0, 1, 3), (1, 2, 2), (3, 2, 1)], n_queries=4),
        attacks=(Attack("q1", ("other", "noise"), "two"), Attack("q2", ("noise",), "one")),
        links=(Link("other", "truth", 0.5), Link("noise", "truth", 0.5)),
        usefulness={"other": Usefulness(1, 1), "truth": Usefulness(2, 0)},
    )
    kept = data.keeping(lambda one: one.id != "other")
    assert [one.id for one in kept.memories] == ["truth", "noise"]
    assert [kept.judgments.grade(q, r).item() for q, r in ((0, 0), (1, 1), (3, 1))] == [3, 2, 1]
    assert len(kept.judgments) == 3
    assert [one.kind for one in kept.attacks] == ["one"]
    assert [one.from_id for one in kept.links] == ["noise"]
    assert set(kept.usefulness) == {"truth"}
    assert data.keeping(lambda _: True).fingerprint == data.fingerprint
