"""Every stage on its own, against what the shipped one gave."""

from typing import Any

import numpy as np
import pytest

from comis_eval.stages import budget, dedup, diversify, fuse, present, score
from tests.builders import golden_memory
from tests.golden_data import cases

SHIPPED = present.Style("short", "non_system", "utf16")


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


def row(values: list[Any], dtype: Any = np.float64) -> np.ndarray:
    return np.array([values], dtype=dtype).reshape(1, len(values))


@pytest.mark.parametrize("case", cases("memory-recall", "score"), ids=named)
def test_golden_score(case: dict[str, Any]) -> None:
    given, now = case["input"], float(case["input"]["nowMs"])
    memories = [golden_memory(result["entry"]) for result in given["results"]]
    feedback = [(given.get("usefulnessById") or {}).get(memory.id, {}) for memory in memories]
    age = score.age_days(row([m.created_at for m in memories]), np.float64(now))
    event_age = score.age_days(
        row([np.nan if m.occurred_at is None else m.occurred_at for m in memories]), np.float64(now)
    )
    confidence = row([np.nan if m.confidence is None else m.confidence for m in memories])
    signals = score.Signals(
        score.recency(age),
        score.temporal(event_age),
        score.proof(
            score.proof_strength([m.proof_count for m in memories])[None, :],
            confidence,
            np.where(np.isnan(event_age), age, event_age),
        ),
        row([m.trust_level.rank / 2 for m in memories]),
        score.usefulness(
            row([f.get("usedCount", 0) for f in feedback]),
            row([f.get("ignoredCount", 0) for f in feedback]),
        ),
    )
    alphas = score.Alphas(*(given["alphas"].get(f"{name}Alpha", 0) for name in signals._fields))
    base = row([result.get("score", 0.0) for result in given["results"]])
    final = score.boost(base, signals, alphas)
    trust = row([m.trust_level.rank for m in memories], np.int8)
    everyone = np.ones_like(trust, dtype=bool)
    order = score.order(final, trust, ~everyone, everyone)[0]

    assert [memories[i].id for i in order] == case["expected"]["order"]
    assert final[0, order].tolist() == pytest.approx(case["expected"]["scores"], rel=1e-12, abs=0)
    factors = [np.broadcast_to(f, base.shape)[0] for f in score.factors(signals, alphas)]
    for place, told in zip(order, case["expected"]["breakdown"], strict=True):
        for name, factor in zip(signals._fields, factors, strict=True):
            assert factor[place] == pytest.approx(told[name], rel=1e-12), name


def lane_columns(lanes: list[dict[str, Any]]) -> tuple[list[str], list[np.ndarray]]:
    ids = list(dict.fromkeys(id_ for lane in lanes for id_ in lane["ids"]))
    ranks = [
        row([lane["ids"].index(i) + 1 if i in lane["ids"] else 0 for i in ids], np.int32)
        for lane in lanes
    ]
    return ids, ranks


@pytest.mark.parametrize("case", cases("memory-recall", "fuse"), ids=named)
def test_golden_fuse(case: dict[str, Any]) -> None:
    lanes = case["input"]["lanes"]
    if not lanes:
        assert case["expected"] == []
        return
    if len(lanes) == 1:
        # One list keeps its order and its own scores, repeats and all.
        shown = lanes[0]["ids"]
        inner = row([0.123] * len(shown))
        places = row(list(range(1, len(shown) + 1)), np.int32)
        passed = fuse.join(inner, [places], [float(lanes[0]["weight"])])
        order = fuse.order(passed, fuse.first_seen([places]))[0]
        told = [{"id": shown[i], "score": passed[0, i], "keptFromLane": 0} for i in order]
        assert told == case["expected"]
        return
    ids, ranks = lane_columns(lanes)
    weights = [float(lane["weight"]) for lane in lanes]
    scores = fuse.rrf(ranks, weights, np.array([sum(weights)]))
    order = fuse.order(scores, fuse.first_seen(ranks))[0]
    assert [ids[i] for i in order] == [hit["id"] for hit in case["expected"]]
    assert scores[0, order].tolist() == [hit["score"] for hit in case["expected"]]
    first = [next(n for n, lane in enumerate(ranks) if lane[0, i]) for i in order]
    assert first == [hit["keptFromLane"] for hit in case["expected"]]


@pytest.mark.parametrize("case", cases("memory-recall", "dedup"), ids=named)
def test_golden_dedup(case: dict[str, Any]) -> None:
    memories = case["input"]
    numbers: dict[str, int] = {}
    prints = [
        numbers.setdefault(dedup.fingerprint(m["content"], units="utf16"), len(numbers))
        for m in memories
    ]
    everyone = np.ones((1, len(memories)), dtype=bool)
    kept = dedup.drop(
        row(prints, np.int32),
        everyone,
        row([m["createdAt"] for m in memories], np.int64),
        keep="newest",
    ).kept[0]
    assert [m["id"] for m, stays in zip(memories, kept, strict=True) if stays] == case["expected"]


@pytest.mark.parametrize("case", cases("memory-recall", "sanitize"), ids=named)
def test_golden_sanitize(case: dict[str, Any]) -> None:
    given = case["input"]
    limit = given.get("maxChars", present.MAX_CONTENT_UNITS)
    assert present.sanitise(given["text"], max_units=limit) == case["expected"]


def fitted(results: list[dict[str, Any]], max_chars: int) -> budget.Fitted:
    lengths = [present.line_length(golden_memory(r["entry"]), SHIPPED) for r in results]
    return budget.fit(
        row(lengths, np.int64),
        np.ones((1, len(results)), dtype=bool),
        header=present.length(present.HEADER, "utf16"),
        max_results=np.array([len(results)]),
        max_chars=max_chars,
        overflow="stop",
    )


@pytest.mark.parametrize("case", cases("memory-recall", "format"), ids=named)
def test_golden_format(case: dict[str, Any]) -> None:
    results = case["input"]["results"]
    fits = fitted(results, case["input"]["maxChars"])
    entries = [r["entry"] for r, taken in zip(results, fits.included[0], strict=True) if taken]
    assert [entry["id"] for entry in entries] == case["expected"]["included_ids"]
    assert fits.chars[0] == case["expected"]["length_utf16"]
    section = present.section([golden_memory(entry) for entry in entries], SHIPPED, "a" * 24)
    assert present.length(section, "utf16") == case["expected"]["length_utf16"]


@pytest.mark.parametrize(
    "case", [c for c in cases("memory-recall", "later") if c["fn"] == "mmrRerank"], ids=named
)
def test_golden_mmr(case: dict[str, Any]) -> None:
    given = case["input"]
    ids = [result["id"] for result in given["results"]]
    embedded = given["embeddings"]
    dim = max((len(vector) for vector in embedded.values()), default=1)
    vectors = np.array([embedded.get(id_, [0.0] * dim) for id_ in ids]).reshape(len(ids), dim)
    ascending = sorted(ids)
    chosen = diversify.mmr(
        np.array([result["score"] for result in given["results"]], dtype=np.float64),
        vectors,
        np.array([id_ in embedded for id_ in ids], dtype=bool),
        np.array([ascending.index(id_) for id_ in ids], dtype=np.int32),
        weight=given["lambda"],
    )
    assert [ids[i] for i in chosen] == case["expected"]


@pytest.mark.parametrize(
    "case", [c for c in cases("memory-recall", "later") if c["fn"] == "cosine"], ids=named
)
def test_golden_cosine(case: dict[str, Any]) -> None:
    a, b = (np.array(case["input"][side], dtype=np.float64) for side in "ab")
    assert float(diversify.cosine(a, b)) == pytest.approx(case["expected"], rel=1e-12)
