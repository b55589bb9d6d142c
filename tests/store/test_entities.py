import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.store import Store
from comis_eval.store.corpus import Corpus
from comis_eval.store.entities import Entity, Resolver, entity_key, similarity
from comis_eval.types import Tenancy
from tests.builders import memory
from tests.golden_data import cases

HERE = Tenancy()
NAMES = st.text("abcA é😀", max_size=8) | st.sampled_from(
    ["Maya Chen", "maya chan", "Maya", "Priya", "Priyanka", "Acme Corp", "Acme Corporation"]
)


def golden_names(part):
    return [
        (case["name"], entry)
        for case in cases("memory-recall", "entity_lane")
        for entry in case.get(part, [])
    ]


@pytest.mark.parametrize(("case", "entry"), golden_names("keys"))
def test_golden_key(case, entry):
    assert entity_key(entry["name"]) == entry["key"], case


def test_golden_similarities():
    for case, entry in golden_names("similarities"):
        keys = entity_key(entry["a"]), entity_key(entry["b"])
        assert similarity(*keys) == pytest.approx(entry["similarity"], rel=1e-12), (case, entry)


@pytest.mark.parametrize(
    "case",
    [c for c in cases("memory-recall", "entity_lane") if "mentionsByName" in c.get("input", {})],
    ids=lambda case: case["name"],
)
def test_golden_mentions_resolve_through_the_store(case):
    mentions = case["input"]["mentionsByName"]
    resolver = Resolver()
    numbers = [resolver.resolve(Tenancy(m["tenantId"], m["agentId"]), m["name"]) for m in mentions]
    assert [f"E{number}" for number in numbers] == case["expectedEntityOfMention"]
    with Store.open() as store:
        for number, m in enumerate(mentions):
            tenancy = Tenancy(m["tenantId"], m["agentId"])
            store.add([memory(f"m{number}", tenancy=tenancy, entities=(m["name"],))])
        assert store.corpus().entities.entities.tolist() == numbers
        stored = store.entities()
    for number, expected in enumerate(case["expectedEntities"]):
        assert expected["canonicalName"] == stored[number].name
        assert expected["mentionCount"] == stored[number].mentions


def test_similarity_counts_pairs_by_hand():
    # ma ay ya | ma ay yo: two shared of three and three
    assert similarity("maya", "mayo") == 2 * 2 / (3 + 3)
    # aa aa aa | aa aa: a multiset shares two
    assert similarity("aaaa", "aaa") == 2 * 2 / (3 + 2)
    # an emoji is two units: h, l, s against h, l, t share (h, l) alone
    assert similarity("😀a", "😀b") == 2 * 1 / (2 + 2)
    assert (similarity("", ""), similarity("a", "b"), similarity("a", "")) == (1.0, 0.0, 0.0)


def test_exactly_sixty_percent_is_similar_enough():
    resolver = Resolver()
    assert similarity("abcdef", "abcdxy") == 0.6  # ab bc cd of five each
    first = resolver.resolve(HERE, "abcdef")
    assert resolver.resolve(HERE, "abcdxy") == first
    assert resolver.resolve(HERE, "abcxyz") != first
    assert resolver.entity(first) == Entity(HERE, "abcdef", "abcdef", 2)


def test_of_equally_similar_entities_the_first_founded_is_meant():
    resolver = Resolver()
    numbers = [resolver.resolve(HERE, name) for name in ("maya chen", "priya", "maya chxx")]
    assert numbers == [0, 1, 0]
    twins = Resolver()
    assert [twins.resolve(HERE, name) for name in ("abcdefgh1", "22cdefgh33", "cdefgh")][:2] == [
        0,
        1,
    ]
    a, b = similarity("cdefgh", "abcdefgh1"), similarity("cdefgh", "22cdefgh33")
    assert a > b
    assert twins.resolve(HERE, "cdefgh") == 0


def test_tenancies_share_no_entity():
    resolver = Resolver()
    numbers = [resolver.resolve(Tenancy("t", agent), "Maya") for agent in ("a", "b", "a")]
    assert numbers == [0, 1, 0]


def naive(mentions):
    """The rule as it is written, comparing with every entity."""
    founded, numbers = [], []
    for tenancy, name in mentions:
        key = entity_key(name)
        mine = [(n, k) for n, (t, k) in enumerate(founded) if t == tenancy]
        exact = [n for n, k in mine if k == key]
        close = [(similarity(key, k), -n) for n, k in mine if similarity(key, k) >= 0.6]
        if exact:
            numbers.append(exact[0])
        elif close:
            numbers.append(-max(close)[1])
        else:
            founded.append((tenancy, key))
            numbers.append(len(founded) - 1)
    return numbers


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from([Tenancy("t", "a"), Tenancy("t", "b")]), NAMES), max_size=25)
)
def test_the_index_finds_what_comparing_with_all_finds(mentions):
    resolver = Resolver()
    assert [resolver.resolve(*mention) for mention in mentions] == naive(mentions)


def test_the_index_finds_what_comparing_with_all_finds_among_many():
    rng = np.random.default_rng(0)
    names = ["".join(rng.choice(list("abcdefg "), size=rng.integers(1, 12))) for _ in range(600)]
    mentions = [(HERE, names[i]) for i in rng.integers(0, len(names), size=1500)]
    resolver = Resolver()
    assert [resolver.resolve(*mention) for mention in mentions] == naive(mentions)


def test_a_restored_resolver_goes_on_where_it_was():
    first = Resolver()
    for name in ("Maya Chen", "Priya"):
        first.resolve(HERE, name)
    again = Resolver([first.entity(0), first.entity(1)])
    assert again.resolve(HERE, "Maya Chan") == 0
    assert again.resolve(HERE, "Zoe") == 2
    assert again.entity(0).mentions == 2


def test_a_corpus_without_a_store_has_the_same_entities():
    written = [memory("b", entities=("Maya", "maya", "Zoe")), memory("a", entities=("Zoë",))]
    with Store.open() as store:
        store.add(written)
        stored = store.corpus().entities
    made = Corpus.from_memories(written).entities
    assert stored.rows.tolist() == made.rows.tolist() == [0, 0, 1]
    assert stored.entities.tolist() == made.entities.tolist() == [0, 1, 1]
    assert stored.names == made.names == ("Maya", "Zoe")
