"""Memories as the tool would have stored them."""

import re

import pytest

from comis_eval.errors import StoreError
from comis_eval.store.loading import filled, key_of, load, near_duplicates
from comis_eval.types import Tenancy
from tests.builders import DAY, NOW, memory


def run(*memories, default_expiry=True):
    return load(memories, lambda tenancy: Tenancy(tenancy.tenant_id, None),
                default_expiry=default_expiry)  # fmt: skip


def test_what_a_record_leaves_open_is_filled_in():
    one = filled(memory("m", "a note", tags=("kind:fact",), tenancy=Tenancy("t", "a")))
    assert one.key == key_of("m") == "m-62c66a7a5dd7"
    assert (one.scope, one.project_id, one.created_by) == ("project", None, "a")
    assert (one.relevance, one.importance) == (1.0, pytest.approx(0.6))
    assert (one.archived, one.status, one.updated_at) == (False, "active", one.created_at)
    assert one.expires_at == one.created_at + 180 * DAY


def test_what_it_says_stands():
    given = memory(
        "m", key="kk", scope="agent", created_by="b", relevance=0.2, importance=0.1,
        archived=True, status="stale", updated_at=5, expires_at=7, project_id="p",
    )  # fmt: skip
    one = filled(given)
    assert one.project_id is None  # only rows of a project have one
    assert (one.key, one.created_by, one.relevance, one.importance) == ("kk", "b", 0.2, 0.1)
    assert (one.status, one.updated_at, one.expires_at) == ("stale", 5, 7)


def test_a_relevance_of_zero_is_stored_as_one():
    assert filled(memory("m", relevance=0.0)).relevance == 1.0


def test_a_row_of_agent_scope_without_an_author_is_refused():
    with pytest.raises(StoreError, match="memory 'm': scope is agent, but nobody wrote it"):
        filled(memory("m", scope="agent", tenancy=Tenancy("t", "")))


def test_of_two_writes_to_a_key_the_later_text_stands_at_the_first_ones_time():
    later = memory("b", "new", key="kk", created_at=NOW, tags=("x",), tenancy=Tenancy("d", "other"))
    first = memory("a", "old", key="kk", created_at=NOW - DAY, tags=("x",), tenancy=Tenancy("d"))
    loaded = run(later, first)
    assert loaded.left_out == {1: "overwritten by 'b', which has its key"}
    stands = loaded.memories[0]
    assert (stands.content, stands.created_at, stands.created_by) == ("new", NOW - DAY, "default")
    assert stands.importance == pytest.approx(0.6)  # it repeats the tags
    assert stands.expires_at == NOW + 180 * DAY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"scope": "workspace"}, {"scope": "project"}),
        ({"project_id": "p"}, {"project_id": "q"}),
        ({"project_id": "p"}, {}),
        ({"scope": "agent", "created_by": "a"}, {"scope": "agent", "created_by": "b"}),
        ({"tenancy": Tenancy("t")}, {"tenancy": Tenancy("u")}),
        ({"status": "superseded"}, {}),
        ({"archived": True}, {}),
    ],
)
def test_a_key_is_one_memory_only_within_its_scope_owner_and_among_the_living(one, other):
    assert run(memory("a", key="kk", **one), memory("b", key="kk", **other)).left_out == {}


def test_nulls_are_one_owner():
    assert len(run(memory("a", key="kk"), memory("b", key="kk")).left_out) == 1
    assert len(run(*(memory(i, key="kk", scope="workspace", project_id=i) for i in "ab")).left_out)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"key": "Bad_Key"}, "key 'Bad_Key' is none"),
        ({"tags": ("t",) * 21}, "21 tags; at most 20"),
        ({"content": "<system> do"}, "role-tag: .*; memory was not written"),
    ],
)
def test_what_may_not_be_written_is_left_out_and_named(fields, why):
    loaded = run(memory("a", **fields), memory("b"))
    assert list(loaded.left_out) == [0]
    assert re.search(why, loaded.left_out[0])


def test_a_refused_write_overwrites_nothing():
    loaded = run(memory("a", "fine", key="kk"), memory("b", "<system>", key="kk", created_at=NOW))
    assert list(loaded.left_out) == [1]


def test_near_duplicates_are_reported_within_a_workspace_and_change_nothing():
    text = "the big kiln fires to 1280 degrees and takes eleven hours to cool down"
    rows = [
        memory("late", text + "!", created_at=NOW),
        memory("first", text, created_at=NOW - DAY),
        memory("there", text, tenancy=Tenancy("elsewhere"), created_at=NOW),
        memory("other", "buy oat milk", created_at=NOW),
    ]
    assert near_duplicates(rows, lambda tenancy: tenancy) == {0: 1}
    assert run(*rows).left_out == {}
