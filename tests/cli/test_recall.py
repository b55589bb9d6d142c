"""One recall stage by stage, as told to people and to machines."""

import pytest
from hypothesis import given, settings

from comis_eval.candidates import FATES
from comis_eval.cli.stages import recall_json
from comis_eval.cli.why import why
from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.rank import rank
from comis_eval.text import printable
from comis_eval.types import Candidate, Fate, Tenancy, TrustLevel
from tests import strategies
from tests.builders import DAY, NOW, memory
from tests.cli.world import HOSTILE, document, error, is_tame, output
from tests.pipelines.test_batch import pipeline
from tests.tables import table

FTS = ("--lanes", "fts")


def test_every_stage_is_told_in_order(dataset):
    told = output("recall", dataset, "how hot is the kiln?", *FTS, "--turn", "tax letter")
    parts = [
        "query asked: how hot is the kiln?",
        "earlier, user: tax letter",
        "asked by tenant default, agent default at 2026-05-28",
        "1 formulate",
        "search string: how hot is the kiln?␤tax letter",
        "2 search: fts, 6 hits",
        "3 fuse: 6 of 6 candidates go on (rag.minScore 0.1)",
        "4 rerank: skipped (disabled), 0 candidates in the pool",
        "5 score: base x factors = final",
        "6 trust: system, learned may pass; 1 taken out",
        "external is not in rag.includeTrustLevels [system, learned]",
        "7 dedup; 1 taken out",
        "repeats kiln-hot, the best of them",
        "8 budget: 4 of at most 5 memories",
        "9 present: what is injected",
        "| # Recalled memories",
        "Every candidate: 4 in, 2 out",
    ]
    places = [told.find(part) for part in parts]
    assert -1 not in places, dict(zip(parts, places, strict=True))
    assert places == sorted(places)


def test_hostile_memories_are_shown_not_obeyed(dataset):
    told = output("recall", dataset, "kiln end", *FTS)
    assert is_tame(told)
    assert "␛[2J␛]8;;http://x␇ [bold red]no[/] :skull:" in told


def test_every_candidate_is_listed_whatever_the_limit(dataset):
    told = output("recall", dataset, "kiln tax letter", *FTS, "--limit", "1")
    assert "... and 5 more (--limit, or --json)" in told
    whole = told.partition("Every candidate")[2]
    found = document("recall", dataset, "kiln tax letter", *FTS)
    assert all(candidate["id"] in whole for candidate in found["candidates"])


def test_json_tells_it_all(dataset):
    found = document("recall", dataset, "how hot is the kiln?", *FTS, "--turn", "letter")
    assert found["formulated"] == "how hot is the kiln?\nletter"
    assert [hit["rank"] for hit in found["lanes"]["fts"]] == [1, 2, 3, 4, 5, 6]
    assert found["rerank"] == {"outcome": "skipped", "reason": "disabled", "candidates": 0}
    assert found["context_chars"] == len(found["section"])
    fates = {c["id"]: c["fate"] for c in found["candidates"]}
    assert fates["kiln-web"] == "trust_filtered"
    assert {m for m, fate in fates.items() if fate == "included"} == set(found["context"])


def test_a_query_of_the_dataset_comes_with_its_turns_and_grades(dataset):
    found = document("recall", dataset, "--query-id", "q-turns", *FTS)
    assert found["formulated"] == "and the folder?\ntax letter"
    grades = {c["id"]: c["grade"] for c in found["candidates"]}
    assert grades["tax"] == 2
    told = output("recall", dataset, "--query-id", "q-hot", *FTS, "--set", "rag.minScore=1")
    assert "grade" in told


def test_a_relevant_memory_that_no_lane_found_is_named(dataset):
    lost = "relevant (grade 3), but no lane returned it: "
    assert lost not in output("recall", dataset, "--query-id", "q-tax", *FTS)
    shallow = output(
        "recall", dataset, "--query-id", "q-hot", *FTS, "--set", "semantics.laneDepth=1"
    )
    assert f"{lost}kiln-hot" in shallow
    off = output("recall", dataset, "--query-id", "q-tax", *FTS, "--set", "rag.enabled=false")
    assert f"{lost}tax" in off
    assert "nothing (rag.enabled is false)" in off


def test_the_asker_is_the_most_common_one_that_fits(dataset):
    assert document("recall", dataset, "kiln", *FTS)["query"]["tenancy"] == {
        "tenant_id": "default", "agent_id": "default",
    }  # fmt: skip
    theirs = document("recall", dataset, "kiln", *FTS, "--agent-id", "a2")
    assert theirs["query"]["tenancy"] == Tenancy("t2", "a2")._asdict()
    assert theirs["context"] == ["theirs"]


def test_an_asker_whom_nothing_belongs_to_is_refused(dataset):
    told = error("recall", dataset, "kiln", *FTS, "--tenant", "t3")
    assert (
        "--tenant t3: nothing in world is theirs; tenants and agents there: default/default" in told
    )


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        ("1780000000000", 1_780_000_000_000),
        ("2026-05-28T20:26:40Z", 1_780_000_000_000),
        ("2026-05-28T22:26:40+02:00", 1_780_000_000_000),
        ("2026-05-28T20:26:40.001", 1_780_000_000_001),
        ("1970-01-01", 0),
    ],
)
def test_now_is_iso_or_milliseconds(dataset, given, ms):
    assert document("recall", dataset, "kiln", *FTS, "--now", given)["query"]["now"] == ms


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["kiln", "--now", "yesterday"], "'yesterday' is neither ISO 8601"),
        (["kiln", "--now", "99999999999999999999"], "is further than 2^53 milliseconds from 1970"),
        ([], "what is asked? give QUERY, or --query-id"),
        (["kiln", "--query-id", "q-hot", "--now", "0"], "leave out QUERY, --now"),
        (["--query-id", "q-hat"], "no query 'q-hat' among 4; did you mean q-hot"),
        (["kiln", "--limit", "0"], "0 is not in the range x>=1"),
    ],
)
def test_what_cannot_be_asked_is_one_line(dataset, arguments, told):
    assert told in error("recall", dataset, *arguments)


def test_a_blank_query_is_answered(dataset):
    found = document("recall", dataset, "", *FTS)
    assert (found["formulated"], found["candidates"], found["section"]) == ("", [], "")


def test_against_says_where_the_second_parts(dataset, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("rag: {maxResults: 1}\n")
    told = output("recall", dataset, "kiln", *FTS, "--against", str(other))
    assert f"{other} first parts at budget: context: " in told
    found = document("recall", dataset, "kiln", *FTS, "--against", str(other))
    assert found["parting"]["stage"] == "budget"
    assert found["parting"]["second"] == found["against"]["context"] == found["context"][:1]


def test_against_the_same_says_so(dataset, tmp_path):
    same = tmp_path / "same.yaml"
    same.write_text("rag: {}\n")
    assert "the same at every stage" in output(
        "recall", dataset, "kiln", *FTS, "--against", str(same)
    )
    assert document("recall", dataset, "kiln", *FTS, "--against", str(same))["parting"] is None


def told_of(memory_id: str, config: Config, memories, **lists) -> tuple[Fate, str]:
    rankings = rank(table(memories, config, **lists), config)
    recalled = result(rankings, 0)
    candidate: Candidate = next(c for c in recalled.candidates if c.memory.id == memory_id)
    return candidate.fate, why(rankings, recalled, candidate)


A, B = memory("a", "x" * 40), memory("b", "y" * 500)


@pytest.mark.parametrize(
    ("memory_id", "parts", "memories", "expected"),
    [
        ("a", {}, (A, B), "place 1, 76 characters"),
        (
            "a",
            {"semantics.inline_min_score": 0.5},
            (A, B),
            "beside the message: final 1 >= inlineMinScore 0.5",
        ),
        ("b", {"rag.min_score": 0.99}, (A, B), "fused 0.9839 < rag.minScore 0.99"),
        (
            "b",
            {"rag.min_score": 0.99, "semantics.min_score_on": "final"},
            (A, B),
            "final 0.9839 < rag.minScore 0.99",
        ),
        (
            "b",
            {"rag.include_trust_levels": (TrustLevel.SYSTEM,)},
            (A, B),
            "learned is not in rag.includeTrustLevels [system]",
        ),
        ("b", {}, (A, memory("b", "x" * 40)), "repeats a, the best of them"),
        (
            "b",
            {"rag.max_context_chars": 400},
            (A, B),
            "536 characters on top of 170 exceed rag.maxContextChars 400",
        ),
        ("b", {"rag.max_results": 1}, (A, B), "rag.maxResults 1 was reached before it"),
        (
            "b",
            {"semantics.scope_filter": "after_fusion"},
            (A, memory("b", tenancy=Tenancy("t2", "z"))),
            "belongs to tenant t2, agent z",
        ),
        (
            "b",
            {"semantics.scope_filter": "after_fusion"},
            (A, memory("b", expires_at=NOW - DAY)),
            "expired on 2026-05-27, asked on 2026-05-28",
        ),
        (
            "b",
            {"semantics.trust_refill": False, "rag.max_results": 1},
            (A, B),
            "behind the first 1 of the search (semantics.trustRefill false)",
        ),
    ],
)
def test_why_by_hand(memory_id, parts, memories, expected):
    config = Config().evolve(**parts)
    fate, told = told_of(memory_id, config, memories, fts=["a", "b"])
    assert fate in FATES
    assert told.startswith(expected)


def test_a_memory_behind_one_that_did_not_fit_is_told_apart():
    config = Config().evolve(**{"rag.max_context_chars": 400, "semantics.budget_overflow": "stop"})
    fate, told = told_of("a", config, (A, B), fts=["b", "a"])
    assert fate is Fate.OVER_BUDGET
    assert told == "behind a memory that did not fit (semantics.budgetOverflow stop)"


def test_a_hostile_id_in_a_reason_is_shown():
    twins = (memory("a\x1b[2J", "same"), memory("b", "same"))
    _, told = told_of("b", Config(), twins, fts=["a\x1b[2J", "b"])
    assert told == "repeats a␛[2J, the best of them"


@settings(max_examples=80, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), config=strategies.configs())
def test_every_candidate_of_any_recall_has_a_reason(dataset: Dataset, config: Config):
    recall = pipeline(dataset, config)
    for query in dataset.queries:
        rankings = rank(recall.candidates([query]), config)
        document = recall_json(rankings, result(rankings, 0), grades={})
        for candidate in document["candidates"]:
            assert candidate["why"] == printable(candidate["why"]) != ""
        assert [c["id"] for c in document["candidates"] if c["fate"] == "included"] == (
            document["context"]
        )


def test_hostile_text_in_a_query_is_shown(dataset):
    assert is_tame(output("recall", dataset, HOSTILE, *FTS, "--turn", HOSTILE))
