"""One recall: what it answers, and every way a reranker may end without failing it."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import ModelError
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Fate, Memory, RecallResult, TrustLevel, Turn
from tests.builders import ids, memory, query

MEMORIES = [
    memory("old", "the kiln cracked"),
    memory("new", "kiln kiln glaze"),
    memory("web", "kiln on the web", trust_level=TrustLevel.EXTERNAL),
    memory("none", "something else"),
]
Score = Callable[[str, Sequence[str], Callable[[], bool]], Any]


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class FakeReranker:
    """Answers whatever the test's function answers."""

    name = "fake"
    fingerprint = "fake"

    def __init__(self, score: Score) -> None:
        self._score = score
        self.asked: list[tuple[str, list[str]]] = []

    def score(
        self, query: str, contents: Sequence[str], *, deadline: Callable[[], bool] | None = None
    ) -> Any:
        self.asked.append((query, list(contents)))
        return self._score(query, contents, deadline or (lambda: False))


def dataset(memories: Sequence[Memory] = MEMORIES) -> Dataset:
    return Dataset(
        name="small", memories=tuple(memories), queries=(), judgments=Judgments.of([], n_queries=0)
    )


def settings(rag: dict[str, Any] | None = None, **parts: Any) -> Config:
    parts.setdefault("harness", {"lanes": ["fts"]})
    off = {f"{name}Alpha": 0.0 for name in ("recency", "temporal", "proof", "trust", "usefulness")}
    return Config.model_validate({"rag": {"scoring": off, **(rag or {})}, **parts})


def recall(
    config: Config | None = None, *, reranker: FakeReranker | None = None, **fields: Any
) -> MemoryRecall:
    retriever = Retriever(dataset(), HashingEmbedder(8), reranker, cache=None)
    return MemoryRecall(retriever, config or settings(), **fields)


# The answer


def test_an_answer_says_what_was_found_and_what_became_of_it() -> None:
    answer = recall().recall(query("kiln", turns=(Turn("user", "glaze"),)))
    assert answer.text == "kiln\nglaze"
    assert ids(answer.memories) == ["new", "old"]
    assert answer.lanes == {"fts": 3}
    assert {c.memory.id: c.fate for c in answer.candidates} == {
        "new": Fate.INCLUDED, "old": Fate.INCLUDED, "web": Fate.TRUST_FILTERED,
    }  # fmt: skip
    assert answer.ranking == answer.candidates[:2]
    first = answer.candidates[0]
    assert (first.ranks, first.fused, first.base, first.final) == ({"fts": 1}, 1.0, 1.0, 1.0)
    assert set(first.factors.values()) == {1.0}
    assert (first.reranker, first.deduped_by) == (None, None)
    assert len(answer.section) == answer.context_chars
    assert answer.section.index("kiln kiln glaze") < answer.section.index("the kiln cracked")
    assert (answer.rerank, answer.rerank_candidates) == (("skipped", "disabled"), 0)


def test_every_recall_has_its_own_delimiter() -> None:
    external = settings({"includeTrustLevels": ["external"]})
    sections = [recall(external).recall(query("kiln")).section for _ in range(2)]
    marks = [
        re.findall(r"<<<(?:END_)?UNTRUSTED_([0-9a-f]{24})>>>", section) for section in sections
    ]
    assert [len(found) for found in marks] == [2, 2]
    assert marks[0][0] == marks[0][1] != marks[1][0]
    assert len(sections[0]) == len(sections[1]), "its value does not change the budget"


def test_an_inlined_memory_leaves_the_section_and_counts() -> None:
    inline = settings({"maxResults": 2}, semantics={"inlineMinScore": 0.5})
    answer = recall(inline).recall(query("kiln"))
    assert answer.inline is not None
    assert "kiln kiln glaze" in answer.inline
    assert ids(answer.memories) == ["new", "old"]
    assert len(answer.section) + len(answer.inline) + 1 == answer.context_chars


def test_a_recall_that_is_off_asks_nothing_of_any_model_or_index() -> None:
    class Untouched(Retriever):
        def _search(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("searched")

        def embedder_for(self, _: Config) -> Any:
            raise AssertionError("embedded")

    def never(*_: object) -> None:
        raise AssertionError("reranked")

    off = settings(
        {"enabled": False, "rerank": {"enabled": True}, "mmr": {"enabled": True},
         "entityLane": {"enabled": True}},
        harness={},
    )  # fmt: skip
    pipeline = MemoryRecall(Untouched(dataset(), reranker=FakeReranker(never), cache=None), off)
    answer = pipeline.recall(query("kiln"))
    assert (answer.section, answer.inline, answer.candidates) == ("", None, ())
    assert (answer.context_chars, answer.lanes) == (0, {})
    assert answer.rerank == ("skipped", "disabled")
    rankings = pipeline.rank([query("kiln", "q1"), query("glaze", "q2")])
    assert rankings.length.tolist() == [0, 0], "a query set gets one empty answer each"


# The reranker, live

RERANK = {"rerank": {"enabled": True, "timeoutMs": 800}}


def reranked(
    score: Score, *, clock: Clock | None = None, rag: dict[str, Any] | None = None
) -> tuple[RecallResult, FakeReranker]:
    model = FakeReranker(score)
    pipeline = recall(settings(rag or RERANK), reranker=model, clock=clock or Clock())
    return pipeline.recall(query("kiln")), model


def test_an_answer_in_time_reorders() -> None:
    answer, model = reranked(lambda _, texts, __: np.array([0.1, 0.9, 0.4])[: len(texts)])
    assert model.asked == [("kiln", ["kiln kiln glaze", "the kiln cracked", "kiln on the web"])]
    assert ids(answer.memories) == ["old", "new"]
    assert (answer.rerank, answer.rerank_candidates) == (("ran", "none"), 3)
    told = {c.memory.id: (c.reranker, c.base) for c in answer.candidates}
    assert told == {"new": (0.1, 0.1), "old": (0.9, 0.9), "web": (0.4, 0.4)}


def taking(seconds: float, clock: Clock, *, watched: bool) -> Score:
    """A model that needs some time, and looks at its deadline or does not."""

    def score(_: str, texts: Sequence[str], deadline: Callable[[], bool]) -> Any:
        clock.now += seconds
        if watched and deadline():
            raise TimeoutError
        return np.linspace(0.1, 0.9, len(texts))

    return score


@pytest.mark.parametrize("watched", [True, False], ids=["stops", "answers late"])
@pytest.mark.parametrize(("seconds", "told"), [(0.8, "ran"), (0.81, "timed_out")])
def test_the_timeout_is_by_the_clock_given(seconds: float, told: str, *, watched: bool) -> None:
    clock = Clock()
    clock.now = 0.0  # so that 0.8 is 0.8
    answer, _ = reranked(taking(seconds, clock, watched=watched), clock=clock)
    assert answer.rerank == (told, "none" if told == "ran" else "timeout")
    assert ids(answer.memories) == (["old", "new"] if told == "ran" else ["new", "old"])
    assert answer.rerank_candidates == 3, "it was attempted"


def raising(error: Exception) -> Score:
    def score(*_: object) -> None:
        raise error

    return score


FAULTY: dict[str, Score] = {
    "raises a model error": raising(ModelError("out of order")),
    "raises anything": raising(RuntimeError("out of memory")),
    "raises a value error": raising(ValueError("bad")),
    "answers nothing": lambda *_: None,
    "answers one number": lambda *_: np.float64(0.5),
    "answers a table": lambda _, texts, __: np.full((len(texts), 2), 0.5),
    "answers too many": lambda _, texts, __: np.full(len(texts) + 1, 0.5),
    "answers logits": lambda _, texts, __: np.full(len(texts), -3.0),
    "answers percentages": lambda _, texts, __: np.full(len(texts), 70.0),
    "answers infinity": lambda _, texts, __: np.full(len(texts), np.inf),
    "answers text": lambda _, texts, __: ["good"] * len(texts),
}


@pytest.mark.parametrize("score", FAULTY.values(), ids=FAULTY)
def test_no_fault_of_a_reranker_fails_a_recall(
    score: Score, caplog: pytest.LogCaptureFixture
) -> None:
    plain = recall().recall(query("kiln"))
    with caplog.at_level(logging.WARNING):
        answer, _ = reranked(score)
    assert (answer.rerank, answer.rerank_candidates) == (("fell_back", "error"), 3)
    assert answer.section == plain.section, "the fused order stays"
    assert [c.reranker for c in answer.candidates] == [None, None, None]
    assert "reranker" in caplog.text, "it is not hidden either"


@pytest.mark.parametrize(
    ("score", "given"),
    [
        (lambda *_: np.array([0.7]), [0.7, None, None]),
        (lambda *_: np.array([np.nan, 0.2, np.nan]), [None, 0.2, None]),
        (lambda *_: np.array([]), [None, None, None]),
    ],
    ids=["short", "with gaps", "empty"],
)
def test_a_score_that_is_missing_counts_0(score: Score, given: list[float | None]) -> None:
    answer, _ = reranked(score)
    by_id = {c.memory.id: (c.reranker, c.base) for c in answer.candidates}
    told = [by_id[id_] for id_ in ("new", "old", "web")]
    assert told == [(value, value or 0.0) for value in given]
    assert answer.rerank[0] == "ran"


def test_too_few_are_not_put_to_it() -> None:
    rag = {"rerank": {"enabled": True, "minResults": 4}}
    answer, model = reranked(raising(AssertionError("asked")), rag=rag)
    assert (answer.rerank, answer.rerank_candidates, model.asked) == (("skipped", "too_few"), 0, [])


def test_only_the_head_is_put_to_it_and_stays_before_the_rest() -> None:
    rag = {"rerank": {"enabled": True, "maxCandidates": 1}}
    answer, model = reranked(lambda *_: np.array([0.0]), rag=rag)
    assert [len(texts) for _, texts in model.asked] == [1]
    assert ids(answer.memories) == ["new", "old"]


def test_a_reranker_that_is_missing_is_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    config = settings(RERANK, harness={"lanes": ["fts"], "reranker": {"kind": "cross_encoder"}})
    with caplog.at_level(logging.WARNING):
        answer = recall(config).recall(query("kiln"))
    assert (answer.rerank, answer.rerank_candidates) == (("skipped", "unavailable"), 0)
    assert "harness.reranker.path" in caplog.text
    with pytest.raises(ModelError, match=r"harness\.reranker\.path: a cross_encoder needs one"):
        recall(config).rank([query("kiln")])


def test_in_an_evaluation_the_same_faults_are_raised() -> None:
    pipeline = recall(settings(RERANK), reranker=FakeReranker(FAULTY["answers logits"]))
    with pytest.raises(ModelError, match=r"reranker fake gave -3\.0 for memory 1 of 3; .*sigmoid"):
        pipeline.rank([query("kiln")])
    many = recall(settings(RERANK), reranker=FakeReranker(FAULTY["answers too many"]))
    with pytest.raises(ModelError, match=r"shape \(4,\) for 3 memories"):
        many.rank([query("kiln")])


def test_in_an_evaluation_time_is_the_cost_models() -> None:
    cost = {"lanes": ["fts"], "reranker": {"fixedMs": 20.0, "msPerCandidate": 5.0}}
    clock = Clock()
    slow = FakeReranker(taking(3600.0, clock, watched=True))
    in_time = settings({"rerank": {"enabled": True, "timeoutMs": 35}}, harness=cost)
    late = settings({"rerank": {"enabled": True, "timeoutMs": 34}}, harness=cost)
    # 20 + 3 x 5 = 35 ms, whatever the clock says.
    outcomes = [
        recall(config, reranker=slow, clock=clock).rank([query("kiln")]).rerank_outcome.tolist()
        for config in (in_time, late)
    ]
    assert outcomes == [[1], [2]]


def test_a_pipeline_over_a_dataset_takes_the_packaged_models() -> None:
    pipeline = MemoryRecall.over(replace(dataset(), name="other"))
    assert (pipeline.name, pipeline.enforces) == ("memory-recall", ("trust", "scope"))
    assert pipeline.config == Config()
    assert pipeline.retriever.embedder is None
