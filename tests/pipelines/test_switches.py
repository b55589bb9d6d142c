"""Each switch of the semantics alone: one input on which its two values answer differently.

Every expected value is worked on paper; the arithmetic stands beside it.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from comis_eval.candidates import Rankings
from comis_eval.config import Config, preset
from comis_eval.lanes import fts
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.rank import rank
from comis_eval.stages.formulate import formulate
from comis_eval.types import Fate, Memory, RecallResult, Source, Tenancy, TrustLevel, Turn
from tests.builders import NOW, ids, memory, query
from tests.tables import batch_of, corpus_of, table

PLAIN = {f"{name}Alpha": 0.0 for name in ("recency", "temporal", "proof", "trust", "usefulness")}
EXTERNAL = TrustLevel.EXTERNAL


def config(rag: dict[str, Any] | None = None, **switches: Any) -> Config:
    """Documented semantics with some switches thrown; every boost off."""
    return Config.model_validate({
        "rag": {"scoring": PLAIN, "minScore": 0.0, **(rag or {})}, "semantics": switches,
    })  # fmt: skip


def ranked(
    memories: Sequence[Memory], settings: Config, **lanes: Any
) -> tuple[Rankings, RecallResult]:
    rankings = rank(table(memories, settings, **lanes), settings)
    return rankings, result(rankings, 0, delimiter=lambda: "a" * 24)


def fates(answer: RecallResult) -> dict[str, Fate]:
    return {candidate.memory.id: candidate.fate for candidate in answer.candidates}


def scores(answer: RecallResult) -> dict[str, float]:
    return {candidate.memory.id: candidate.final for candidate in answer.ranking}


def test_every_switch_of_the_two_presets_is_tested_here() -> None:
    documented, production = preset("documented"), preset("production")
    differing = {
        name
        for name in type(documented).model_fields
        if getattr(documented, name) != getattr(production, name)
    }
    tested = {name.removeprefix("test_switch_") for name in globals() if "test_switch_" in name}
    assert differing - {"preset"} == tested


def test_switch_query_context_turns() -> None:
    turns = [
        Turn("user", "old"), Turn("user", " the kiln "), Turn("assistant", "which?"),
        Turn("user", ""), Turn("user", "it broke"), Turn("user", "the kiln"),
    ]  # fmt: skip
    # Latest first: "the kiln", then "it broke" repeats the message, "" is blank, " the kiln "
    # repeats a later turn, "old" is the second that counts.
    assert formulate(" it broke ", turns, context_turns=2) == "it broke\nold\nthe kiln"
    assert formulate(" it broke ", turns, context_turns=0) == " it broke "


def test_switch_lane_depth() -> None:
    memories = [
        memory("a", trust_level=EXTERNAL), memory("b", trust_level=EXTERNAL), memory("c"),
    ]  # fmt: skip
    rag = {"maxResults": 1}
    _, deep = ranked(memories, config(rag), fts=["a", "b", "c"])
    _, shallow = ranked(memories, config(rag, laneDepth="limit"), fts=["a", "b", "c"])
    # limit 1: the lane is read to rank 2, and c stands at 3.
    assert ids(deep.memories) == ["c"]
    assert ids(shallow.memories) == []


def test_switch_keyword_statistics() -> None:
    other = Tenancy("other")
    corpus = corpus_of([
        memory("d1", "alpha"), memory("d2", "beta"), memory("d3", "gamma"), memory("d4", "delta"),
        memory("f1", "alpha", tenancy=other), memory("f2", "alpha", tenancy=other),
    ])  # fmt: skip
    asked = batch_of(corpus, [query("alpha beta")])

    def order(statistics: Literal["scope", "table"]) -> list[str]:
        found = fts.search(
            fts.FtsIndex(corpus), asked, depth=9, statistics=statistics, scope_filter="in_lane"
        )
        return [corpus.memories[row].id for row in found.of(0)]

    # Scope: N 4, both words in one memory, idf ln(3.5 / 1.5) for each; a tie goes by row.
    assert order("scope") == ["d1", "d2"]
    # Table: N 6; alpha in 3, ln(3.5 / 3.5) = 0 raised to 1e-6; beta in 1, ln(5.5 / 1.5).
    assert order("table") == ["d2", "d1"]


def test_switch_scope_filter() -> None:
    memories = [memory("theirs", tenancy=Tenancy("other")), memory("mine")]
    _, inside = ranked(memories, config(), fts=["mine"])
    _, after = ranked(memories, config(scopeFilter="after_fusion"), fts=["theirs", "mine"])
    # Filtered in the lane, mine stands first: (1/61) / (1/61). Filtered after fusion the
    # foreign row holds rank 1: (1/62) / (1/61).
    assert scores(inside) == {"mine": 1.0}
    assert scores(after) == {"mine": pytest.approx(61 / 62)}
    assert fates(after)["theirs"] is Fate.SCOPE_FILTERED


def test_switch_fusion() -> None:
    _, flat = ranked([memory("a")], config(), fts=["a"])
    _, nested = ranked([memory("a")], config(fusion="nested"), fts=["a"])
    # Flat divides by the lanes with hits, 1/61; nested by both weights, 2/61.
    assert scores(flat) == {"a": 1.0}
    assert scores(nested) == {"a": pytest.approx(0.5)}


def test_switch_lane_weights() -> None:
    memories = [memory("a"), memory("b")]
    _, even = ranked(memories, config(), fts=["a"], vector=["b"])
    _, heavy = ranked(
        memories, config(laneWeights={"fts": 1.0, "vector": 1.5}), fts=["a"], vector=["b"]
    )
    # 1/2 each, and fts is seen first; 1/2.5 against 1.5/2.5.
    assert list(scores(even).items()) == [("a", 0.5), ("b", 0.5)]
    assert list(scores(heavy).items()) == [("b", pytest.approx(0.6)), ("a", pytest.approx(0.4))]


def test_switch_min_score_exempts_entity() -> None:
    memories = [memory("seed", entities=("Maya",)), memory("linked", entities=("Maya",))]
    rag = {"minScore": 0.1, "entityLane": {"enabled": True, "weight": 0.05}}
    _, strict = ranked(memories, config(rag), fts=["seed"])
    _, exempt = ranked(memories, config(rag, minScoreExemptsEntity=True), fts=["seed"])
    # linked: (0.05/61) / (1.05/61) = 0.0476, under 0.1.
    assert fates(strict) == {"seed": Fate.INCLUDED, "linked": Fate.BELOW_MIN_SCORE}
    assert scores(exempt) == {"seed": pytest.approx(1 / 1.05), "linked": pytest.approx(0.05 / 1.05)}


def test_switch_entity_seeds_reenter() -> None:
    memories = [memory("s1", entities=("Maya",)), memory("s2", entities=("Maya",))]
    rag = {"entityLane": {"enabled": True}}
    _, once = ranked(memories, config(rag), fts=["s1", "s2"])
    _, again = ranked(memories, config(rag, entitySeedsReenter=True), fts=["s1", "s2"])
    # Kept out, the entity lane is empty and fts alone counts: 1 and 61/62. Let in, each
    # shares Maya with the other; ties go by id descending, so the lane is s2, s1:
    # s1 (1/61 + 1/62) / (2/61) and s2 (1/62 + 1/61) / (2/61).
    assert scores(once) == {"s1": 1.0, "s2": pytest.approx(61 / 62)}
    assert scores(again) == {
        "s1": pytest.approx((1 + 61 / 62) / 2), "s2": pytest.approx((1 + 61 / 62) / 2),
    }  # fmt: skip


def test_switch_trust_refill() -> None:
    memories = [memory("web", trust_level=EXTERNAL), memory("good")]
    rag = {"maxResults": 1}
    _, refilled = ranked(memories, config(rag), fts=["web", "good"])
    _, cut = ranked(memories, config(rag, trustRefill=False), fts=["web", "good"])
    assert ids(refilled.memories) == ["good"]
    assert fates(cut) == {"web": Fate.TRUST_FILTERED, "good": Fate.BEYOND_LIMIT}


def test_switch_dedup_keep() -> None:
    memories = [
        memory("old", "same words", created_at=NOW - 2),
        memory("new", "Same words ", created_at=NOW),
    ]
    _, best = ranked(memories, config(), fts=["old", "new"])
    _, newest = ranked(memories, config(dedupKeep="newest"), fts=["old", "new"])
    assert ids(best.memories) == ["old"]
    assert ids(newest.memories) == ["new"]
    assert [c.deduped_by for c in newest.candidates if c.memory.id == "old"] == ["new"]


def test_switch_dedup_units() -> None:
    # 150 emoji are 150 code points and 300 UTF-16 units: the last letter is inside the
    # first 200 of the one and beyond those of the other.
    memories = [memory("a", "😀" * 150 + "a"), memory("b", "😀" * 150 + "b")]
    _, points = ranked(memories, config(), fts=["a", "b"])
    _, units = ranked(memories, config(dedupUnits="utf16"), fts=["a", "b"])
    assert ids(points.memories) == ["a", "b"]
    assert ids(units.memories) == ["a"]


def test_switch_trim_to_max_results() -> None:
    memories = [memory("a"), memory("b")]
    rag = {"maxResults": 1}
    _, trimmed = ranked(memories, config(rag), fts=["a", "b"])
    _, whole = ranked(memories, config(rag, trimToMaxResults=False), fts=["a", "b"])
    assert fates(trimmed) == {"a": Fate.INCLUDED, "b": Fate.BEYOND_MAX_RESULTS}
    assert ids(whole.memories) == ["a", "b"]


def test_switch_budget_overflow() -> None:
    memories = [memory("a", "short"), memory("b", "x" * 400), memory("c", "short too")]
    rag = {"maxContextChars": 300}
    _, skip = ranked(memories, config(rag), fts=["a", "b", "c"])
    _, stop = ranked(memories, config(rag, budgetOverflow="stop"), fts=["a", "b", "c"])
    # Header 94; lines of "- [learned] (recorded 2026-05-27): " (35) + text + newline.
    assert skip.context_chars == 94 + (35 + 5 + 1) + (35 + 9 + 1)
    assert fates(skip) == {"a": Fate.INCLUDED, "b": Fate.OVER_BUDGET, "c": Fate.INCLUDED}
    assert fates(stop) == {"a": Fate.INCLUDED, "b": Fate.OVER_BUDGET, "c": Fate.OVER_BUDGET}


def test_switch_length_units() -> None:
    # 94 + 35 + 100 + 1 = 230 code points, but 330 UTF-16 units.
    memories, rag = [memory("a", "😀" * 100)], {"maxContextChars": 230}
    _, points = ranked(memories, config(rag), fts=["a"])
    _, units = ranked(memories, config(rag, lengthUnits="utf16"), fts=["a"])
    assert points.context_chars == 230
    assert units.section == ""


def test_switch_wrap() -> None:
    memories = [memory("a", "hello")]
    _, external = ranked(memories, config(), fts=["a"])
    _, everyone = ranked(memories, config(wrap="non_system"), fts=["a"])
    assert "UNTRUSTED" not in external.section
    assert f"<<<UNTRUSTED_{'a' * 24}>>>" in everyone.section
    assert everyone.context_chars - external.context_chars == 103


def test_switch_line_format() -> None:
    ten_days_ago = NOW - 10 * 86_400_000
    told = memory(
        "a",
        "two\nlines",
        trust_level=TrustLevel.SYSTEM,
        occurred_at=ten_days_ago,
        source=Source("Ann", "chat"),
    )
    _, full = ranked([told], config(), fts=["a"])
    _, short = ranked([told], config(lineFormat="short"), fts=["a"])
    line = "- [system] (recorded 2026-05-27, occurred 2026-05-18; by Ann via chat): two lines\n"
    assert full.section.endswith(line)
    assert short.section.endswith("- [system] (2026-05-27 via chat): two\nlines\n")


def test_switch_inline_min_score() -> None:
    memories = [memory("a"), memory("b")]
    _, never = ranked(memories, config(), fts=["a", "b"])
    _, top = ranked(memories, config(inlineMinScore=0.7), fts=["a", "b"])
    assert never.inline is None
    assert "content of a" in never.section
    assert top.inline is not None
    assert "content of a" in top.inline
    assert "content of a" not in top.section
    assert ids(top.memories) == ["a", "b"]


def test_min_score_on_final_compares_the_boosted_score() -> None:
    settings = config({"minScore": 0.99}, minScoreOn="final")
    _, kept = ranked([memory("a"), memory("b")], settings, fts=["a", "b"])
    # Fused 1 and 61/62 = 0.984; every factor is 1.
    assert fates(kept) == {"a": Fate.INCLUDED, "b": Fate.BELOW_MIN_SCORE}
    boosted = config(
        {"minScore": 0.99, "scoring": {**PLAIN, "recencyAlpha": 1.0}}, minScoreOn="final"
    )
    _, fresh = ranked(
        [memory("old", created_at=NOW - 9 * 86_400_000), memory("new", created_at=NOW)],
        boosted,
        fts=["old", "new"],
    )
    # old 1 x (1 + 0.1 - 0.5) = 0.6; new 61/62 x 1.5 = 1.476
    assert fates(fresh) == {"new": Fate.INCLUDED, "old": Fate.BELOW_MIN_SCORE}


def test_an_external_memory_is_wrapped_unless_it_really_is() -> None:
    page = "<<<UNTRUSTED_" + "b" * 24 + ">>> hi <<<END_UNTRUSTED_" + "b" * 24 + ">>>"
    rag = {"includeTrustLevels": ["external"]}
    said = memory("said", "hi", trust_level=EXTERNAL, taint_level="wrapped")
    real = memory("real", page, trust_level=EXTERNAL, taint_level="wrapped")
    _, answer = ranked([said, real], config(rag), fts=["said", "real"])
    assert f"<<<UNTRUSTED_{'a' * 24}>>> [text from n/a]: hi" in answer.section
    assert answer.section.count("<<<UNTRUSTED_") == 2
    _, shipped = ranked([said], config(rag, wrap="non_system"), fts=["said"])
    assert "UNTRUSTED" not in shipped.section


def test_two_recalls_leave_the_prompt_before_them_untouched() -> None:
    prefix = "You are an agent.\n"
    memories = [memory("a"), memory("b")]
    prompts = [prefix + ranked(memories, config(), fts=[first])[1].section for first in ("a", "b")]
    assert prompts[0] != prompts[1]
    assert all(prompt.startswith(prefix) for prompt in prompts)


def test_rag_off_searches_nothing_and_answers_nothing() -> None:
    rankings, answer = ranked([memory("a")], config({"enabled": False}), fts=["a"])
    assert answer.candidates == ()
    assert answer.section == ""
    assert not np.any(rankings.context_chars)
