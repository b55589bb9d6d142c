"""The deployed server's and client's own answers, rule by rule."""

import math

import numpy as np
import pytest

from comis_eval.config import ProfileConfig, RecallToolConfig
from comis_eval.stages import fuse
from comis_eval.stages.recall_tool import (
    bands,
    expiry,
    gate,
    graph,
    importance,
    key_match,
    order_by,
    profile,
    screening,
    tags,
    twins,
    view,
)
from comis_eval.text import hamming, simhash
from tests.golden_data import cases

SETTINGS = RecallToolConfig()


def golden(name, fn=None):
    found = [c for c in cases("recall-tool", name) if c["input"].get("fn") == fn]
    return pytest.mark.parametrize("case", found, ids=[c["name"] for c in found])


def told(preset: ProfileConfig) -> dict:
    return {
        "apply_decay": False,  # no profile of the reference has it
        "half_life_days": 0,
        "include_superseded": preset.include_superseded,
        "limit": preset.limit or 0,
        "min_importance": preset.min_importance or 0,
        "order_by": preset.order_by or "",
    }


@golden("classifier")
def test_golden_classifier(case):
    found = profile.classify(case["input"]["query"])
    assert found == case["expected"]["profile"]
    assert told(profile.preset(found, SETTINGS)) == case["expected"]["preset"]


@golden("profile_resolution", "preset")
def test_golden_preset(case):
    assert told(profile.preset(case["input"]["profile"], SETTINGS)) == case["expected"]


@golden("profile_resolution", "order_by")
def test_golden_order_resolution(case):
    caller, preset = case["input"]["caller"] or None, case["input"]["preset"] or None
    assert (profile.first_said(caller, preset) or "") == case["expected"]


@golden("profile_resolution", "min_importance")
def test_golden_min_importance_resolution(case):
    given = case["input"]
    # what the caller did not supply stands there as the default
    caller = given["caller"] if given["caller_supplied"] else None
    default = SETTINGS.min_importance if given["caller_supplied"] else given["caller"]
    assert profile.first_said(caller, given["preset"] or None, default) == case["expected"]


@golden("order_by")
def test_golden_order_by(case):
    given = case["input"]["order_by"]
    assert order_by.canonical(given) == case["expected"]["canonical"]
    assert order_by.decays(given) == case["expected"]["arms_decay"]


@golden("importance")
def test_golden_importance(case):
    found = importance.importance(case["input"]["content"], case["input"]["tags"])
    assert found == pytest.approx(case["expected"]["score"], abs=1e-5)


@golden("default_ttl")
def test_golden_default_ttl(case):
    found = expiry.days_to_live(case["input"]["scope"], case["input"]["tags"])
    assert found == case["expected"]["ttl_days"]


@golden("keys_tags", "key_valid")
def test_golden_key(case):
    assert tags.is_key(case["input"]["key"]) == case["expected"]


@golden("keys_tags", "tag_overlap")
def test_golden_tag_overlap(case):
    found = tags.overlap(case["input"]["existing"], case["input"]["new"])
    assert found == pytest.approx(case["expected"], rel=1e-12)


@golden("keys_tags", "semantic_tags")
def test_golden_semantic_tags(case):
    assert tags.semantic(case["input"]["tags"]) == case["expected"]


@golden("content_screen")
def test_golden_content_screen(case):
    found, expected = screening.screen(case["input"]["content"]), case["expected"]
    assert (found.label if found else None) == (expected["label"] if expected else None)
    # the words in which the deployed system names a kind of token are its own
    if found and found.label != "api-token":
        assert found.detail == expected["detail"]


@golden("simhash", "near_dup")
def test_golden_near_duplicate(case):
    a, b = simhash(case["input"]["a"]), simhash(case["input"]["b"])
    assert hamming(a, b) == case["expected"]["distance"]
    most = case["input"]["max_hamming"]
    found = twins.first_near(a, np.array([b], dtype=np.int64), most=most)
    assert (found == 0) == case["expected"]["near_dup"]


@golden("key_match_boost", "key_match_boost")
def test_golden_key_match(case):
    assert key_match.boost(case["input"]["key"], case["input"]["query"]) == case["expected"]


@golden("rerank")
def test_golden_rerank(case):
    given = case["input"]
    query, items = given["query"].lower(), given["items"]
    boost = [
        key_match.boost(item["key"].lower(), query)
        + (given["project_id"] not in ("", None) and item.get("project_id") == given["project_id"])
        + (given["scope"] not in ("", None) and item["scope"] == given["scope"])
        for item in items
    ]
    order = bands.rerank(
        np.array(boost, dtype=np.int64),
        np.array([item.get("score", math.nan) for item in items]),
        np.array([item.get("importance_score", 0.0) for item in items]),
        band=0.001,
    )
    assert [items[place]["n"] for place in order.tolist()] == case["expected"]["order"]


@golden("gate")
def test_golden_gate(case):
    given, expected = case["input"], case["expected"]
    items, envelope = given["items"], given["envelope"]
    scores = [item["score"] for item in items if "score" in item]
    best = max(scores, default=None)
    arms = "sparse_rows" in envelope and envelope.get("dense_rows", 0) > 0
    texts = [
        text
        for item in items
        for text in (
            item["key"],
            item.get("content", ""),
            item.get("snippet", ""),
            *(item.get("tags") or ()),
        )
    ]
    overlap = bool(items) and gate.overlaps(gate.query_words(given["query"]), texts)
    found = gate.reason(
        best,
        of_both=best or 0.0,
        arms=arms,
        overlap=overlap,
        noise=0.0120,
        floor=0.0 if arms else 0.0100,  # deployed, the floor holds only without arm counts
    )
    assert (best is not None, best or 0) == (expected["scored"], expected["best"])
    assert overlap == expected["overlap"]
    assert (found, bool(found)) == (expected["reason"], expected["returns_empty"])


@golden("rrf")
def test_golden_rrf(case):
    given = case["input"]
    ids = list(dict.fromkeys([*given["text_arm"], *given["vector_arm"]]))
    if not ids:
        assert case["expected"] == []
        return
    ranks = [
        np.array([[arm.index(i) + 1 if i in arm else 0 for i in ids]], dtype=np.int32)
        for arm in (given["text_arm"], given["vector_arm"])
    ]
    weights, k = (given["text_weight"], given["vector_weight"]), given["k"]
    total = float(sum(weights))
    raw = fuse.rrf(ranks, weights, np.array([total]), k=k)[0] * (total / (k + 1))
    scores = dict(zip(ids, raw.tolist(), strict=True))
    expected = {one["id"]: one["score"] for one in case["expected"]}
    assert scores == pytest.approx(expected, abs=1e-12)
    assert sorted(ids, key=lambda i: -scores[i]) == list(expected)


@golden("graph_merge", "reserve")
def test_golden_reserve(case):
    assert graph.reserve(case["input"]["limit"], 0.25) == case["expected"]


@golden("graph_merge")
def test_golden_graph_merge(case):
    given, expected = case["input"], case["expected"]
    names = [item["id"] for item in given["base"]["items"]]
    numbers = {name: number for number, name in enumerate(names)}
    reached = [
        (numbers.setdefault(item["id"], len(numbers)), item["hop_distance"])
        for item in given["graph"]["items"]
    ]
    base = list(range(len(names)))
    slots = graph.reserve(given["limit"], 0.25)
    picked = graph.picks(reached, set(base), slots)
    page = graph.merged(base, picked, given["limit"])[: given["limit"]] if picked else base
    spelled = {number: name for name, number in numbers.items()}
    found = [{"graph_boost": row in picked, "id": spelled[row]} for row in page]
    assert found == expected["items"]
    assert (len(picked) or None, len(found)) == (expected["graph_boost_count"], expected["total"])


@golden("truncation")
def test_golden_truncation(case):
    before = dict(case["input"])
    assert view.compact(case["input"]) == case["expected"]
    assert case["input"] == before
