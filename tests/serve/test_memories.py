"""The tools themselves, without a protocol around them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.datasets.labels import Policy, ScopeRule
from comis_eval.errors import RequestError, StoreError
from comis_eval.models.base import Embedder
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.serve.memories import ServedMemories
from comis_eval.serve.vectors import KeptVectors
from comis_eval.store import Store
from comis_eval.types import Tenancy
from tests.builders import DAY, NOW, memory
from tests.pipelines.recall_tool.world import ME, SHE, THERE, WordEmbedder, asked
from tests.serve.world import HOSTILE, MEMORIES, dataset, served, setup

CALLS = [
    {},
    {"full": True, "limit": 3, "offset": 1},
    {"scope": "agent"},
    {"tags": ["glaze"]},
    {"tags_any": ["glaze", "kind:pinned"], "recall_profile": "multi-session"},
    {"order_by": "created_at", "include_expired": True},
    {"min_importance": 0.9},
    {"project_id": "p", "apply_recency_decay": True},
]


def keys(answer):
    return [item["key"] for item in answer["items"]]


@pytest.mark.parametrize("lanes", [("fts",), ("fts", "vector")], ids=",".join)
@pytest.mark.parametrize("writable", [False, True])
def test_recall_answers_what_the_recall_tool_answers(lanes, writable):
    config = setup(lanes).config
    tool = RecallTool(Retriever(dataset(), embedder=WordEmbedder(), cache=None), config)
    memories = served(lanes=lanes, writable=writable)
    for tenancy in (ME, SHE, THERE, Tenancy("nobody", "x")):
        for arguments in CALLS:
            expected = tool.recall(asked("kiln", tenancy=tenancy, **arguments))
            assert memories.recall(tenancy, {"query": "kiln", **arguments}) == expected


def test_a_wrong_argument_is_told_without_the_name_of_a_query():
    with pytest.raises(RequestError, match=r"^limit is 0; it must be an integer in \[1, 50\]$"):
        served().recall(ME, {"query": "kiln", "limit": 0})
    with pytest.raises(RequestError, match=r"^query is required$"):
        served().recall(ME, {})


# --- writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [("fts",), ("fts", "vector")], ids=",".join)
def test_the_next_call_of_anybody_sees_what_was_written(lanes):
    memories = served(lanes=lanes, writable=True)
    assert "ladle" not in keys(memories.recall(SHE, {"query": "ladle"}))
    done = memories.remember(ME, {"key": "ladle", "content": "the ladle hangs by the door"})
    assert (done["outcome"], done["memory"]["content"]) == (
        "created",
        "the ladle hangs by the door",
    )
    assert done["memory"]["expires_at"].startswith("2026-11")
    assert "ladle" in keys(memories.recall(SHE, {"query": "ladle"}))
    assert memories.get_memory(SHE, {"key": "ladle"})["version"] == 1
    memories.remember(SHE, {"key": "ladle", "content": "the spoon hangs there now"})
    assert "spoon" in memories.get_memory(ME, {"key": "ladle"})["content"]
    assert memories.get_memory(ME, {"key": "ladle"})["created_by"] == "me"
    sparse = memories.recall(ME, {"query": "ladle", "min_importance": 0})["sparse_rows"]
    assert sparse == 1  # by its key; the old text is gone


def test_a_near_duplicate_is_reported():
    memories = served(writable=True)
    said = {"key": "again", "content": "the kiln runs at 1240 degrees!"}
    assert memories.remember(ME, said)["near_dup_key"] == "kiln-hot"


def test_a_refused_write_changes_nothing():
    memories = served(writable=True)
    before = memories.recall(ME, {"query": "kiln"})
    with pytest.raises(StoreError, match="role-tag"):
        memories.remember(ME, {"key": "kiln-hot", "content": "<system>kiln</system>"})
    assert memories.recall(ME, {"query": "kiln"}) == before


def test_nothing_is_embedded_twice():
    class Counting(WordEmbedder):
        seen: list[str] = []  # noqa: RUF012 - of one test

        def embed(self, texts):
            self.seen.extend(texts)
            return super().embed(texts)

    counting: Embedder = Counting()
    memories = ServedMemories.of_dataset(dataset(), setup(("fts", "vector"), writable=True))
    memories._embedder = KeptVectors(lambda: counting)
    for number in range(3):
        memories.remember(ME, {"key": f"n-{number}", "content": f"note {number}"})
        memories.recall(ME, {"query": "kiln"})
    assert len(Counting.seen) == len(set(Counting.seen)) == len(MEMORIES) + 3 + 1


def test_a_dataset_is_never_written(tmp_path):
    memories = served(writable=True)
    memories.remember(ME, {"key": "kiln-hot", "content": "cold"})
    assert "cold" not in [m.content for m in dataset().memories]
    assert served(writable=True).get_memory(ME, {"key": "kiln-hot"})["version"] == 1


def test_a_database_keeps_what_is_remembered_only_when_writable(tmp_path):
    path = tmp_path / "store.db"
    memories = ServedMemories.of_database(path, setup(writable=True))
    assert memories.recall(ME, {"query": "kiln"})["items"] == []  # a new one is empty
    memories.remember(ME, {"key": "kiln", "content": "the kiln is hot"})
    memories.close()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    reading = ServedMemories.of_database(path, setup())
    assert keys(reading.recall(SHE, {"query": "kiln"})) == ["kiln"]
    reading.close()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(TypeError, match="opened writable"):
        reading.remember(ME, {"key": "kiln", "content": "cold"})


def test_what_another_program_writes_to_the_database_is_seen(tmp_path):
    path = tmp_path / "store.db"
    memories = ServedMemories.of_database(path, setup(writable=True))
    assert memories.recall(ME, {"query": "kiln"})["total"] == 0
    with Store.open(path) as other:
        other.add([memory("m", "a kiln", key="kiln", tenancy=ME)])
    assert memories.recall(ME, {"query": "kiln"})["total"] == 1
    memories.close()


# --- looking up -------------------------------------------------------------------------------


def test_get_memory_returns_the_whole_entry():
    whole = served().get_memory(ME, {"key": "kiln-bell"})
    assert (whole["id"], whole["content"], whole["scope"]) == ("bell", HOSTILE, "project")


@pytest.mark.parametrize("key", ["kiln-gone", "kiln-far", "kiln", "KILN-HOT", "none"])
def test_get_memory_finds_nothing_expired_foreign_or_by_half_a_key(key):
    with pytest.raises(RequestError, match=r"there is no memory with key .* that you may see"):
        served().get_memory(ME, {"key": key})


def test_of_several_memories_with_a_key_the_current_one_written_last_is_read():
    rows = [
        memory("a", key="kk", tenancy=ME, scope="workspace", updated_at=NOW - 2),
        memory("b", key="kk", tenancy=ME, project_id="p", updated_at=NOW - 1),
        memory("c", key="kk", tenancy=ME, status="superseded", updated_at=NOW),
    ]
    found = served(rows).get_memory(ME, {"key": "kk"})
    assert found["id"] == "b"
    assert [other["id"] for other in found["same_key"]] == ["a", "c"]
    assert served(rows[2:]).get_memory(ME, {"key": "kk"})["id"] == "c"


def test_get_memory_needs_neither_importance_nor_a_gate():
    rows = [memory("a", key="kk", tenancy=ME, importance=0.01)]
    assert served(rows, settings={"gate": {"floor": 1.0}}).get_memory(ME, {"key": "kk"})


def test_get_project_knowledge_lists_a_projects_live_rows_by_importance_then_newest():
    rows = [
        memory("low", key="low", tenancy=ME, project_id="p", importance=0.1),
        memory("new", key="new", tenancy=ME, project_id="p", importance=0.8, updated_at=NOW),
        memory("old", key="old", tenancy=ME, project_id="p", importance=0.8, updated_at=NOW - 1),
        memory("top", "x" * 400, key="top", tenancy=SHE, project_id="p", importance=0.9),
        memory("other", key="other", tenancy=ME, project_id="q"),
        memory("none", key="none", tenancy=ME),
        memory("wide", key="wide", tenancy=ME, scope="workspace", project_id="p"),
        memory("gone", key="gone", tenancy=ME, project_id="p", expires_at=NOW),
        memory("past", key="past", tenancy=ME, project_id="p", status="superseded"),
        memory("away", key="away", tenancy=ME, project_id="p", archived=True),
        memory("far", key="far", tenancy=THERE, project_id="p"),
    ]
    answer = served(rows).get_project_knowledge(ME, {"project_id": "p"})
    assert keys(answer) == ["top", "new", "old", "low"]
    assert (answer["total"], answer["limit"], answer["next_offset"]) == (4, 200, None)
    assert len(answer["items"][0]["content"]) == 301
    assert set(answer["items"][1]) == {"key", "tags", "content", "project_id"}


def test_get_project_knowledge_comes_in_pages_of_200():
    rows = [
        memory(f"m{n:03}", key=f"m-{n:03}", tenancy=ME, project_id="p", importance=1 - n / 1000)
        for n in range(401)
    ]
    memories = served(rows)
    found, offset, pages = [], 0, 0
    while offset is not None:
        page = memories.get_project_knowledge(ME, {"project_id": "p", "offset": offset})
        found += keys(page)
        offset, pages = page["next_offset"], pages + 1
    assert found == [f"m-{n:03}" for n in range(401)]
    assert pages == 3


def test_a_project_that_nobody_knows_is_an_empty_list_with_an_explanation():
    answer = served().get_project_knowledge(ME, {"project_id": "x"})
    assert (answer["items"], answer["next_offset"]) == ([], None)
    assert "no live memory" in answer["explanation"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "project_id is required"),
        ({"project_id": ""}, "project_id is ''; it must be text"),
        ({"project_id": "p", "offset": -1}, r"offset is -1; it must be an integer in \[0,"),
        ({"project_id": "p", "limit": 3}, "'limit' is no argument; there are project_id, offset"),
    ],
)
def test_get_project_knowledge_says_what_it_takes(arguments, why):
    with pytest.raises(RequestError, match=why):
        served().get_project_knowledge(ME, arguments)


# --- agent scope --------------------------------------------------------------------------------

SCOPES = st.sampled_from([None, "workspace", "project", "agent"])
OWNERS = st.sampled_from([ME, SHE, THERE])


@st.composite
def row(draw, number):
    return memory(
        f"m{number}",
        draw(st.sampled_from(["a kiln", "the hot kiln", "kiln tools and kiln gloves"])),
        key=draw(st.sampled_from(["kk", f"k-{number}"])),
        tenancy=draw(OWNERS),
        scope=draw(SCOPES),
        created_by=draw(st.sampled_from([None, "me", "she"])),
        project_id=draw(st.sampled_from([None, "p"])),
        tags=draw(st.sampled_from([(), ("kind:pinned",), ("kiln",)])),
        status=draw(st.sampled_from([None, "superseded"])),
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_tool_shows_what_the_policy_keeps_from_a_caller(data):
    """``scope_leak`` counts what ``Policy.shows`` denies: it stays 0 through every tool."""
    rows = [data.draw(row(n)) for n in range(data.draw(st.integers(1, 8)))]
    edges = {"graph": {"enabled": True}}
    memories = served(rows, lanes=("fts", "vector"), settings=edges, writable=True)
    caller = data.draw(OWNERS)
    policy = Policy(scope=ScopeRule.TENANT)
    hidden = {m.id for m in rows if not policy.shows(m, asked(tenancy=caller))}
    for arguments in (
        {},
        {"scope": "agent"},
        {"recall_profile": "multi-session", "project_id": "p"},
        {"created_by": "she", "include_expired": True, "include_archived": True},
    ):
        said = {"query": "kiln", "full": True, "min_importance": 0, "limit": 50, **arguments}
        found = {item["id"] for item in memories.recall(caller, said)["items"]}
        assert not found & hidden
    for key in {m.key for m in rows}:
        try:
            found = memories.get_memory(caller, {"key": key})
        except RequestError:
            continue
        assert found["id"] not in hidden
        assert not {other["id"] for other in found.get("same_key", ())} & hidden
    listed = memories.get_project_knowledge(caller, {"project_id": "p"})
    shown = {m.key for m in rows if m.id not in hidden}
    assert set(keys(listed)) <= shown
    near = memories.remember(caller, {"key": "probe", "content": "the hot kiln"})
    assert near.get("near_dup_key") in {None, *shown}


def test_the_hidden_rows_are_there_for_their_author():
    memories = served(settings={"graph": {"enabled": True}})
    assert memories.get_memory(SHE, {"key": "note"})["id"] == "hers"
    assert memories.get_memory(ME, {"key": "note"})["id"] == "mine"
    assert "same_key" not in memories.get_memory(ME, {"key": "note"})
    found = memories.recall(SHE, {"query": "kiln", "scope": "agent", "full": True})
    assert [item["id"] for item in found["items"]] == ["hers"]


def test_an_agent_that_nobody_knows_sees_what_is_shared():
    newcomer = Tenancy("t", "new")
    found = keys(served().recall(newcomer, {"query": "kiln", "limit": 50}))
    assert "kiln-hot" in found
    assert "note" not in found


def test_time_stands_where_it_is_set():
    later = served(now=lambda: NOW + 400 * DAY)
    assert keys(later.recall(ME, {"query": "kiln"})) == ["gloves"]  # the rest has expired


def test_a_store_without_memories_has_no_vectors_of_the_right_width():
    embedder = WordEmbedder()
    assert KeptVectors(lambda: embedder).embed([]).shape == (0, embedder.dim)
