"""The scenarios and the bug classes of the tool's specification, one test each.

``test_scenario_NN`` is scenario NN of its section 9, ``test_bug_NN`` bug BNN of section 11.
Where section 0 decides otherwise, the test shows section 0 and says so. Scenario 18 and the
refusals that ``remember`` answers with are tests of the store's writing.
"""

import json

import numpy as np
import pytest

from comis_eval.errors import ModelError, RequestError, StoreError
from comis_eval.lanes.tool_vector import Parts, part_texts
from comis_eval.stages.recall_tool import bands, gate, graph, key_match
from comis_eval.stages.recall_tool.importance import importance
from comis_eval.stages.recall_tool.profile import classify
from comis_eval.store.tool_corpus import ToolCorpus
from comis_eval.types import Tenancy
from tests.builders import DAY, NOW
from tests.pipelines.recall_tool.world import ME, SHE, answer, asked, keys, mine, tool

BOTH = ("fts", "vector")


def rows(count, **fields):
    """Memories that answer ``kiln`` less and less well."""
    return [mine(f"{n:02}", "kiln " + "word " * (n + 1), **fields) for n in range(count)]


def fillers(count=40):
    """Memories of other things, so that words weigh as in a corpus."""
    return [mine(f"f{n:02}", f"bowl number {n}") for n in range(count)]


def neighbours(count, **fields):
    """Memories that nothing finds but an edge, and the edges from the best row to them."""
    made = [mine(f"n{n:02}", "elsewhere", **fields) for n in range(count)]
    return made, [("00", one.id, 0.9) for one in made]


def graphed(base, made, edges, **settings):
    return tool([*base, *made], edges=edges, settings={"graph": {"enabled": True, **settings}})


# --- section 9 ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 6, 10, 40])
def test_scenario_01_an_explicit_limit_beats_the_profiles(limit):
    recall = tool(rows(50))
    found = answer(recall, "kiln history", limit=limit)
    assert (found["recall_profile"], found["total"]) == ("multi-session", limit)
    assert answer(recall, "kiln history")["total"] == 20
    assert answer(recall, "kiln history", limit=None)["total"] == 20


@pytest.mark.parametrize("limit", [1, 2, 6, 10, 40])
def test_scenario_02_a_full_page_with_neighbours_never_exceeds_the_limit(limit):
    found = answer(graphed(rows(50), *neighbours(50)), limit=limit)
    assert found["total"] == len(found["items"]) == limit


def test_scenario_03_two_of_eight_slots_are_the_neighbours_at_the_tail():
    found = answer(graphed(rows(20), *neighbours(20)), limit=8)
    without = answer(tool(rows(20)), limit=8)
    assert keys(found)[:6] == keys(without)[:6]
    assert [item.get("provenance") for item in found["items"]] == [None] * 6 + ["via:graph"] * 2
    assert found["graph_boost_count"] == 2


def test_scenario_04_a_short_page_loses_nothing_and_no_neighbours_change_nothing():
    made, edges = neighbours(9)
    found = answer(graphed(rows(3), made, edges), limit=10)
    assert set(keys(found)[:3]) == {"00", "01", "02"}
    assert found["graph_boost_count"] == 2
    alone = answer(graphed(rows(12), [], []), limit=10)
    assert "graph_boost_count" not in alone
    assert alone == answer(tool(rows(12)), limit=10)


def test_scenario_05_a_neighbour_on_the_page_is_not_added_again():
    base = rows(9)
    edges = [("00", one.id, 0.9) for one in base[1:]]
    found = answer(graphed(base, [], edges), limit=9)
    assert keys(found) == keys(answer(tool(base), limit=9))
    assert [graph.reserve(n, 0.25) for n in (0, 1, 2, 6, 8, 10, 40)] == [0, 0, 1, 1, 2, 2, 10]


def test_scenario_06_key_matches_lead_and_shared_words_do_not():
    weak = mine("weak", "a kiln " + "word " * 60, key="kiln-fires")
    assert keys(answer(tool([*rows(9), weak]), "kiln-fires", limit=50))[0] == "kiln-fires"
    assert key_match.boost("mesh-release-gate-notes", "mesh release") == 0
    assert key_match.boost("mesh-mesh-mesh", "the mesh") == 0
    assert key_match.boost("a-to-the-end-of", "to the end of a") == 0
    assert key_match.boost("mesh-release-gate", "gate of the mesh release") == 1
    same = np.array([1, 1, 1]), np.array([0.2, 0.9, 0.5]), np.ones(3)
    assert bands.rerank(*same, band=0.061).tolist() == [0, 1, 2]


def test_scenario_07_section_0_weak_answers_are_noise_only_without_a_word_in_common():
    made = [mine("m", "a warm oven", key="m1"), mine("n", "a bowl", key="n1")]
    found = answer(tool(made, lanes=BOTH), "zebra crossing")
    assert (found["items"], found["total"], found["search_mode"]) == ([], 0, "hybrid")
    assert found["explanation"]
    # The deployed 0.01148 of 1/61 is 0.70 of both arms: a word in common lets it through.
    real = {"of_both": 0.70, "arms": True, "noise": 0.73, "floor": 0.0}
    assert gate.reason(1.0, overlap=True, **real) == ""
    assert gate.reason(None, overlap=True, **real) == "unscored"


@pytest.mark.parametrize("letter", ["x", "ж", "🔥"])
def test_scenario_08_full_items_are_whole_and_short_ones_cut_by_code_points(letter):
    long = mine("m", "kiln " + letter * 400, archived=True, status="stale")
    recall = tool([long])
    short = answer(recall, include_archived=True)["items"][0]
    assert short["content"] == long.content[:300] + "…"
    assert (short["archived"], short["status"]) == (True, "stale")
    assert short["content"].encode()  # valid UTF-8
    whole = answer(recall, include_archived=True, full=True)["items"][0]
    assert whole["content"] == long.content
    assert answer(recall, include_archived=True)["items"][0] == short
    exact = tool([mine("e", "kiln " + letter * 295)])
    assert answer(exact)["items"][0]["content"] == "kiln " + letter * 295


def test_scenario_09_explicit_arguments_beat_presets_and_defaults_meet_checkpoints():
    checkpoint = mine("c", "kiln", tags=("kind:session-checkpoint",), created_at=NOW)
    recall = tool([checkpoint, mine("new", "kiln kiln"), mine("far", "kiln at last")])
    assert importance("kiln", ("kind:session-checkpoint",)) == pytest.approx(0.3)
    assert "c" in keys(answer(recall))
    assert "c" not in keys(answer(recall, recall_profile="factual"))
    assert "c" in keys(answer(recall, recall_profile="factual", min_importance=0.3))
    by_time = answer(recall, recall_profile="factual", order_by="created_at:asc")
    assert keys(by_time) == keys(answer(recall, order_by="created_at:asc", min_importance=0.5))
    presets = recall.config.harness.recall_tool.profiles
    assert presets.multi_session.min_importance < 0.3 < presets.factual.min_importance


def test_scenario_10_an_arm_that_finds_nothing_still_makes_it_hybrid():
    class Zeros:
        name, fingerprint, dim, reportable = "zeros", "3" * 64, 4, True

        def embed(self, texts):
            return np.zeros((len(texts), 4), dtype=np.float32)

    recall = tool(rows(8), lanes=BOTH)
    recall.retriever.embedder = Zeros()
    found = answer(recall, limit=2)
    assert (found["search_mode"], found["degraded"]) == ("hybrid", False)
    assert (found["dense_rows"], found["sparse_rows"]) == (0, 8)  # an arm's rows, not the page's


def test_scenario_11_without_an_embedder_text_answers_and_says_so():
    class Broken:
        name, fingerprint, dim, reportable = "broken", "4" * 64, 4, True

        def embed(self, texts):
            raise ModelError("gone")

    recall = tool(rows(3), lanes=BOTH)
    recall.retriever.embedder = Broken()
    found = answer(recall)
    assert (found["total"], found["search_mode"], found["degraded"]) == (3, "bm25-only", True)


def test_scenario_12_times_are_inclusive_and_nobody_is_no_author():
    recall = tool([mine("m", created_at=1_767_225_600_000), mine("n", created_by=None)])
    assert keys(answer(recall, since="2026-01-01T00:00:00Z", until="2026-01-01T00:00:00Z")) == ["m"]
    one = tool([mine("m", created_by="she"), mine("n", tenancy=Tenancy("t", ""), created_by=None)])
    assert keys(answer(one, created_by="she")) == ["m"]


def test_scenario_13_who_has_all_words_leads_and_the_fallback_leaks_nothing():
    partial = [
        mine("p1", "kiln kiln kiln kiln"), mine("p2", "glaze glaze"), mine("p3", "wheel clay kiln"),
    ]  # fmt: skip
    exact = mine("all", "the clay on the wheel, glaze by the kiln")
    hidden = [
        mine("h1", "kiln", archived=True), mine("h2", "kiln", status="superseded"),
        mine("h3", "kiln", project_id="other"), mine("h4", "kiln", scope="workspace"),
    ]  # fmt: skip
    found = answer(
        tool([*partial, exact, *hidden, *fillers()]),
        "kiln glaze wheel clay",
        limit=50,
        scope="project",
    )
    assert keys(found)[0] == "all"
    assert set(keys(found)) == {"all", "p1", "p2", "p3", "h3"}
    named = [mine("in", "kiln", project_id="p"), *hidden]
    assert keys(answer(tool(named), "kiln oven fire", project_id="p")) == ["in"]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_scenario_14_a_pinned_row_takes_the_weakest_place_and_passes_scope_and_tags(limit):
    pin = mine("pin", "unlike", tags=("kind:pinned", "red"), scope="workspace")
    recall = tool([*rows(9, tags=("red",)), pin])
    found = answer(recall, limit=limit)
    without = answer(tool(rows(9, tags=("red",))), limit=limit)
    assert keys(found) == ["pin", *keys(without)[: limit - 1]]
    assert "pin" not in keys(answer(recall, tags=["blue"]))
    assert "pin" not in keys(answer(recall, scope="project"))


def test_scenario_15_filters_come_before_the_cut():
    made = [*rows(300), mine("it", "kiln " + "word " * 400, tags=("red",))]
    for lanes in (("fts",), ("vector",), BOTH):
        recall = tool(made, lanes=lanes, settings={"armDepth": 5, "gate": {"noise": 0}})
        assert keys(answer(recall, limit=1, tags=["red"])) == ["it"]


def test_scenario_16_importance_by_tags_and_rows_that_may_not_be_written():
    assert importance("x", ("kind:decision",)) == pytest.approx(0.8)
    assert importance("x", ("kind:pinned", "kind:session-checkpoint")) == pytest.approx(0.3)
    made = [
        mine("ok"), mine("colon", key="a:b"), mine("upper", key="Kiln"), mine("one", key="k"),
        mine("tags", tags=tuple(f"t{n}" for n in range(21))),
    ]  # fmt: skip
    recall = tool(made)
    assert set(recall.left_out) == {"colon", "upper", "one", "tags"}
    assert keys(answer(recall, limit=50)) == ["ok"]


def test_scenario_17_a_key_is_one_memory_per_scope_and_the_retired_stay_retired():
    twice = [
        mine("old", "kiln one", key="log", created_at=NOW - DAY, updated_at=NOW - DAY),
        mine("new", "kiln two", key="log", created_at=NOW, updated_at=NOW),
    ]
    items = answer(tool(twice), full=True)["items"]
    assert [item["content"] for item in items] == ["kiln two"]
    assert items[0]["created_at"] < items[0]["updated_at"]
    scoped = [mine("a", key="log"), mine("b", key="log", scope="workspace", project_id="stray")]
    assert answer(tool(scoped), limit=50)["total"] == 2
    assert answer(tool(scoped), scope="workspace")["total"] == 1
    retired = [mine("gone", "kiln one", key="log", archived=True), mine("here", key="log")]
    shown = answer(tool(retired), full=True)["items"]
    assert [item["id"] for item in shown] == ["here"]


def test_scenario_19_decay_by_either_spelling_and_never_because_of_the_words():
    made = [mine("old", "kiln", created_at=NOW - 300 * DAY, expires_at=NOW + DAY),
            mine("new", "kiln and more", created_at=NOW)]  # fmt: skip
    recall = tool(made)
    bare, spelled = (answer(recall, order_by=f"decayed_relevance{end}") for end in ("", ":desc"))
    assert bare == spelled
    assert keys(bare) == ["new", "old"]
    ago = answer(recall, "how many days ago was the kiln", full=True)
    assert all("recency_score" not in item for item in ago["items"])
    assert keys(answer(recall, order_by="relevance")) == ["old", "new"]


def test_scenario_20_a_long_memory_ranks_by_its_best_part_and_stands_once():
    long = mine("long", "word " * 50 + "kiln " + "word " * 50)
    others = [mine(f"o{n}", "bowl") for n in range(3)]
    recall = tool([long, *others], lanes=("vector",), settings={"chunkChars": 20, "armDepth": 2})
    found = answer(recall, "kiln", limit=50)
    assert keys(found).count("long") == 1
    assert found["dense_rows"] == 2  # parts of one memory fill no second place


def test_scenario_21_neighbours_pass_every_filter_and_the_better_way_counts():
    away = mine("far", "elsewhere", tenancy=Tenancy("far", "me"))
    low = mine("low", "elsewhere", importance=0.1)
    scope = mine("ws", "elsewhere", scope="workspace")
    good = mine("good", "elsewhere", importance=0.9)
    edges = [("00", one.id, 0.9) for one in (away, low, scope, good)]
    recall = graphed(rows(2), [away, low, scope, good], edges)
    assert keys(answer(recall, limit=8, scope="project"))[-1] == "good"
    assert "ws" not in keys(answer(recall, limit=8, scope="project"))
    assert "ws" in keys(answer(recall, limit=8, scope="all"))  # no answer is shared by scopes
    assert not {"far", "low"} & set(keys(answer(recall, limit=50)))
    ways = [("00", "good", 0.2), ("00", "via", 1.0), ("via", "good", 0.9)]
    found = answer(graphed(rows(2), [good, mine("via", "elsewhere")], ways), limit=8, full=True)
    best = {item["key"]: item.get("composite_score") for item in found["items"]}["key-good"]
    assert best == pytest.approx(0.9 * found["items"][0]["score"], rel=0.2)
    assert best > 0.5


@pytest.mark.parametrize("text", ["kiln & glaze", "kiln+glaze #3", 'the "kiln" glaze', "kiln  'x"])
def test_scenario_22_any_query_arrives_whole(text):
    found = answer(tool([mine("m", "kiln glaze 3")]), text)
    assert keys(found) == ["m"]
    assert json.loads(json.dumps(found)) == found


# --- section 11 -----------------------------------------------------------------------------


def test_bug_01_text_only_answers_pass_the_gate():
    assert answer(tool(rows(3)))["total"] == 3
    assert answer(tool([mine("m", "an oven")]), "ovens")["total"] == 1


def test_bug_02_query_and_text_are_stemmed_alike():
    assert answer(tool([mine("m", "the kilns were fired")]), "kiln firing")["total"] == 1


def test_bug_03_no_project_and_no_agent_are_one_owner_each():
    same = [mine("a", "kiln a", key="log", project_id=None, created_at=NOW - 1),
            mine("b", "kiln b", key="log", project_id=None, created_at=NOW)]  # fmt: skip
    assert answer(tool(same), limit=50)["total"] == 1


@pytest.mark.parametrize("text", ['"', "a b c OR", "NEAR(kiln", "kiln*", "key:kiln", "-kiln ^x"])
def test_bug_04_no_query_is_read_as_syntax(text):
    assert answer(tool([mine("m", "kiln near key")]), text)["total"] in (0, 1)


def test_bug_05_a_relevance_of_zero_is_stored_as_one():
    recall = tool([mine("m", relevance=0.0)], settings={"relevanceSource": "stored"})
    assert answer(recall, relevance_min=0.9)["total"] == 1


def test_bug_06_nothing_makes_an_answer_longer_than_the_limit():
    pins = [mine(f"pin{n}", "x", tags=("kind:pinned",), scope="workspace") for n in range(9)]
    made, edges = neighbours(9)
    recall = graphed([*rows(30), *pins], made, edges)
    for more in ({}, {"recall_profile": "multi-session"}, {"full": True}):
        assert answer(recall, "kiln history", limit=6, **more)["total"] == 6


def test_bug_07_explicit_arguments_are_never_overridden():
    checkpoint = mine("c", "the kiln A_CONSTANT", tags=("kind:session-checkpoint",))
    recall = tool([checkpoint, mine("n", "A_CONSTANT", created_at=NOW)])
    found = answer(recall, "A_CONSTANT", min_importance=0, order_by="created_at:desc", limit=1)
    assert found["recall_profile"] == "factual"
    assert (found["limit"], found["total"]) == (1, 1)
    assert "c" in keys(answer(recall, "A_CONSTANT", min_importance=0))


@pytest.mark.parametrize("lanes", [("fts",), ("vector",), BOTH])
def test_bug_08_scope_and_tags_hold_in_every_arm_and_on_every_way(lanes):
    hers = [
        mine("hers", "kiln", scope="agent", created_by="she", tenancy=SHE, tags=("red",)),
        mine("pin", "kiln", scope="agent", created_by="she", tenancy=SHE,
             tags=("kind:pinned", "red")),
        mine("one", "kiln", tags=("red",)), mine("two", "kiln", tags=("blue",)),
    ]  # fmt: skip
    recall = tool(
        [*hers, mine("00", "kiln", tags=("red", "blue"))],
        lanes=lanes,
        edges=[("00", "hers", 0.9), ("00", "two", 0.9)],
        settings={"graph": {"enabled": True}, "gate": {"noise": 0}},
    )
    assert not {"hers", "pin"} & set(keys(answer(recall, limit=50)))
    assert keys(answer(recall, limit=50, tags=["red", "blue"])) == ["00"]
    assert not {"hers", "pin"} & set(keys(answer(recall, limit=50, scope="agent")))


def test_bug_09_stored_relevance_chooses_no_candidates():
    made = [*(mine(f"p{n}", "bowl", relevance=1.0) for n in range(30)),
            mine("it", "kiln", relevance=0.1)]  # fmt: skip
    recall = tool(made, lanes=("vector",), settings={"armDepth": 1, "gate": {"noise": 0}})
    assert keys(answer(recall, "key-it kiln")) == ["it"]


def test_bug_10_all_words_and_some_are_ranked_on_one_scale():
    made = [mine("some", "kiln " * 9), mine("all", "a kiln, and glaze on the shelf")]
    assert keys(answer(tool([*made, *fillers()]), "kiln glaze"))[0] == "all"


def test_bug_11_being_read_changes_nothing():
    recall = tool(rows(9), lanes=BOTH)
    before = recall.retriever.dataset.memories
    first = [answer(recall, limit=3) for _ in range(3)]
    assert first[0] == first[1] == first[2]
    assert recall.retriever.dataset.memories == before


def test_bug_12_a_retired_row_is_not_fresh():
    made = [mine("gone", "kiln", status="archived"), mine("here", "kiln and more")]
    assert keys(answer(tool(made))) == ["here"]
    asked_for = answer(tool(made), include_archived=True)["items"]
    assert {item["key"]: item["score"] for item in asked_for}["key-gone"] == 0.0


def test_bug_13_the_second_page_goes_on():
    recall = tool(rows(9))
    whole = keys(answer(recall, limit=9))
    pages = [keys(answer(recall, limit=4, offset=offset)) for offset in (0, 4, 8)]
    assert [key for page in pages for key in page] == whole


def test_bug_14_what_is_asked_to_be_included_is():
    made = [mine("x", "kiln", expires_at=NOW - 1), mine("a", "kiln", archived=True),
            mine("s", "kiln", status="superseded"), mine("n", "kiln")]  # fmt: skip
    recall = tool(made)
    assert set(keys(answer(recall))) == {"n"}
    assert set(keys(answer(recall, include_expired=True))) == {"n", "x"}
    assert set(keys(answer(recall, include_archived=True))) == {"n", "a"}
    assert set(keys(answer(recall, recall_profile="multi-session"))) == {"n", "s"}


def test_bug_15_an_order_is_spelled_one_way_and_no_preset_drops_it():
    made = [mine("old", "kiln A_CONSTANT", created_at=NOW - 300 * DAY, expires_at=NOW + DAY),
            mine("new", "A_CONSTANT", created_at=NOW)]  # fmt: skip
    found = answer(tool(made), "A_CONSTANT", order_by="decayed_relevance", full=True)
    assert found["recall_profile"] == "factual"
    assert all("recency_score" in item for item in found["items"])


@pytest.mark.parametrize("text", ["what of the kiln last week", "kiln 3 days ago", "recent kiln"])
def test_bug_16_words_of_time_do_not_decay(text):
    made = [mine("old", "kiln", created_at=NOW - 300 * DAY, expires_at=NOW + DAY), mine("new", "x")]
    item = answer(tool(made), text)["items"][0]
    assert item["score"] == pytest.approx(1)


def test_bug_17_every_arm_says_how_many_rows_it_returned():
    found = answer(tool(rows(7), lanes=BOTH), limit=2)
    assert (found["sparse_rows"], found["dense_rows"]) == (7, 7)


def test_bug_18_superseded_rows_of_the_vector_arm_are_out_and_sink_when_asked_for():
    made = [mine("old", "kiln", status="superseded"), mine("new", "kiln glaze")]
    recall = tool(made, lanes=("vector",), settings={"gate": {"noise": 0}})
    assert keys(answer(recall)) == ["new"]
    assert keys(answer(recall, recall_profile="multi-session")) == ["new", "old"]


def test_bug_19_every_part_is_found_by_key_and_tags():
    one = mine("m", "word " * 100, key="kiln-log", tags=("hot",))
    parts = part_texts(one, 50)
    assert len(parts) > 2
    assert all(part.startswith("kiln-log hot ") for part in parts)
    assert len(Parts.of(ToolCorpus.of([one]), 50).texts) == len(parts)


def test_bug_20_a_key_brings_no_retired_row_back():
    made = [mine("a", "kiln a", key="log", status="superseded"),
            mine("b", "kiln b", key="log", created_at=NOW)]  # fmt: skip
    assert [i["id"] for i in answer(tool(made), "log", full=True)["items"]] == ["b"]


def test_bug_21_one_shared_word_of_a_key_boosts_nothing():
    assert key_match.boost("mesh-decision", "a decision on the mesh") == 0
    weak = mine("w", "kiln " + "word " * 60, key="mesh-notes")
    strong = mine("s", "kiln mesh", importance=0.5)
    assert keys(answer(tool([weak, strong]), "mesh kiln"))[0] == "s"


def test_bug_22_no_score_alone_empties_an_answer_that_shares_a_word():
    made = [mine("m", "a kiln " + "word " * 300)]
    found = answer(tool([*made, mine("n", "glaze")], lanes=BOTH), "kiln and a zebra and an ox")
    assert "m" in keys(found)
    assert tool(made).config.harness.recall_tool.gate.floor == 0


def test_bug_23_the_classifier_takes_substrings_and_dates_as_it_always_did():
    assert classify("the hallways are always trendy") == "multi-session"
    assert classify("prehistory") == classify("rebaseline") == "multi-session"
    assert classify("20260930-1200") == "factual"
    assert classify("note of 2026-09-30") == "default"


# --- what section 0 decides against the deployed system ----------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 0}, "limit is 0"), ({"limit": 51}, "limit is 51"), ({"offset": -1}, "offset"),
        ({"scope": "team"}, "workspace, project, agent, all"), ({"order_by": "random"}, "order_by"),
        ({"recall_profile": "temporal"}, "multi-session, factual, default"),
        ({"since": "yesterday"}, "RFC 3339"),
    ],
)  # fmt: skip
def test_section_0_nothing_is_clamped_or_passed_over(arguments, message):
    with pytest.raises(RequestError, match=message):
        answer(tool(rows(1)), **arguments)


def test_section_0_a_row_of_agent_scope_without_an_author_is_refused():
    nobody = mine("m", scope="agent", created_by=None, tenancy=Tenancy("t", ""))
    with pytest.raises(StoreError, match="nobody wrote it"):
        answer(tool([nobody]))


def test_section_0_external_rows_are_returned_and_scope_alone_is_promised():
    assert tool(rows(1)).enforces == ("scope",)
    assert answer(tool(rows(1)), tenancy=ME)["total"] == 1


# --- every parameter, alone and with pages ----------------------------------------------------

PARAMETERS = {
    "full": True, "tags": ["red"], "tags_any": ["red", "blue"], "scope": "project",
    "project_id": "p", "created_by": "me", "since": "2025-12-01T00:00:00Z",
    "until": "2026-05-01T00:00:00Z", "relevance_min": 0.8, "min_importance": 0.5,
    "order_by": "created_at:asc", "recall_profile": "multi-session", "apply_recency_decay": True,
    "include_expired": True, "include_archived": True,
}  # fmt: skip
HOLDS = {
    "tags": lambda m: "red" in m.tags, "tags_any": lambda m: {"red", "blue"} & set(m.tags),
    "scope": lambda m: m.scope == "project", "project_id": lambda m: m.project_id == "p",
    "created_by": lambda m: m.created_by == "me",
    "since": lambda m: m.created_at >= 1_764_547_200_000,
    "until": lambda m: m.created_at <= 1_777_593_600_000,
    "min_importance": lambda m: m.importance >= np.float32(0.5),
}  # fmt: skip


def shelf():
    dice = np.random.default_rng(3)
    return [
        mine(
            f"m{n:02}", "kiln " + "word " * int(dice.integers(1, 40)),
            tags=(("red",), ("blue",), ("red", "blue"), ())[n % 4],
            scope=("project", "workspace", "project", "agent")[n % 4],
            project_id=("p", None, "q", None)[n % 4],
            created_by=("me", "she")[n % 5 == 0], tenancy=ME,
            created_at=NOW - int(dice.integers(0, 250)) * DAY, updated_at=NOW,
            importance=int(dice.integers(1, 10)) / 10, archived=n % 9 == 0,
            expires_at=NOW - 1 if n % 7 == 0 else NOW + DAY,
            status=("active", "stale", "superseded")[n % 11 % 3],
        )
        for n in range(80)
    ]  # fmt: skip


SHELF = {lanes: tool(shelf(), lanes=lanes) for lanes in (("fts",), BOTH)}
ALONE = [(name,) for name in PARAMETERS]
PAIRS = [(a, b) for n, a in enumerate(PARAMETERS) for b in list(PARAMETERS)[n + 1 :]]


@pytest.mark.parametrize("lanes", SHELF, ids="+".join)
@pytest.mark.parametrize("names", [(), *ALONE, *PAIRS], ids="+".join)
def test_every_parameter_alone_and_in_pairs_pages_without_overlap_or_gap(names, lanes):
    recall, arguments = SHELF[lanes], {name: PARAMETERS[name] for name in names}
    paged = recall.paged([asked("kiln", limit=50, **arguments)])
    memories, listed = paged.table.corpus.memories, paged.lists[0].rows
    for name in names:
        if name in HOLDS:
            assert all(HOLDS[name](memories[row]) for row in listed)
    assert all(memories[row].scope != "agent" or memories[row].created_by == "me" for row in listed)
    if "include_archived" not in names:
        assert not any(memories[row].archived for row in listed)
    if "include_expired" not in names:
        assert all(memories[row].expires_at > NOW for row in listed)
    whole = [memories[row].key for row in listed]
    seen, offset = [], 0
    while offset is not None:
        page = answer(recall, limit=7, offset=offset, **arguments)
        assert page["total"] == len(page["items"]) <= 7
        assert all(("id" in item) == ("full" in names) for item in page["items"])
        seen += [item["key"] for item in page["items"]]
        offset = page["next_offset"]
    assert seen == whole


@pytest.mark.parametrize("name", [name for name in PARAMETERS if name not in ("full",)])
def test_every_parameter_does_something(name):
    recall = SHELF["fts",]
    plain = answer(recall, limit=50)
    assert answer(recall, limit=50, **{name: PARAMETERS[name]})["items"] != plain["items"]
