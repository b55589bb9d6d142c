"""Input that is empty, absurd or hostile: a clear error or the documented result, never a crash."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import LaneError, ModelError, StoreError
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stages.present import Style, line_length
from comis_eval.types import Filters, Memory, MemoryType, Query, Tenancy, TrustLevel, Turn
from tests.builders import DAY, NOW, memory, query
from tests.strategies import configs

DOCUMENTED = Config()
PRODUCTION = Config.model_validate({"semantics": {"preset": "production"}})
BOTH = pytest.mark.parametrize("config", [DOCUMENTED, PRODUCTION], ids=["documented", "production"])
MEMORIES = [
    memory("a", "the kiln cracked", entities=("Maya",), occurred_at=NOW - DAY),
    memory("b", "Maya glazed a bowl", entities=("Maya",), tags=("x",)),
    memory("c", "東京 café 😀 notes"),
]


def recall(
    memories: list[Memory] = MEMORIES, config: Config = DOCUMENTED, **rag: Any
) -> MemoryRecall:
    dataset = Dataset(
        name="bad", memories=tuple(memories), queries=(), judgments=Judgments.of([], n_queries=0)
    )
    tuned = config.evolve(**{f"rag.{knob}": value for knob, value in rag.items()})
    return MemoryRecall(Retriever(dataset, HashingEmbedder(8), cache=None), tuned)


EVERYTHING_ON = {
    "entity_lane.enabled": True,
    "lanes.temporal.enabled": True,
    "lanes.causal.enabled": True,
    "mmr.enabled": True,
}


@BOTH
def test_nothing_to_recall_is_an_empty_answer(config: Config) -> None:
    pipeline = recall([], config, **EVERYTHING_ON)
    answer = pipeline.recall(query("kiln"))
    assert (answer.section, answer.memories, answer.context_chars) == ("", (), 0)
    assert set(answer.lanes.values()) == {0}
    assert pipeline.rank([]).order.shape == (0, 0)


@BOTH
@pytest.mark.parametrize(
    "text", ["", " \n\t", '?!... *** ""', "the of and to", "٪،؛", "\ud800", "\0"]
)
def test_a_query_without_words_finds_nothing_by_keyword(config: Config, text: str) -> None:
    keyword = config.evolve(**{"harness.lanes": ("fts",)})
    answer = recall(config=keyword).recall(query(text))
    assert (answer.lanes, answer.section) == ({"fts": 0}, "")


@BOTH
def test_a_blank_query_skips_the_vector_lane_too(config: Config) -> None:
    assert recall(config=config).recall(query(" ")).lanes == {"fts": 0, "vector": 0}


@BOTH
def test_asking_for_more_than_there_is_gives_what_there_is(config: Config) -> None:
    most = 2**53 - 1
    pipeline = recall(
        config=config,
        **EVERYTHING_ON,
        **{
            "max_results": most, "max_context_chars": most, "entity_lane.seed_count": most,
            "entity_lane.per_entity_cap": most, "lanes.temporal.window_days": most,
            "rerank.max_candidates": most,
        },
    )  # fmt: skip
    answer = pipeline.recall(query("kiln Maya 東京"))
    assert {one.id for one in answer.memories} == {"a", "b", "c"}
    deep = pipeline.config.evolve(**{"semantics.lane_depth": most})
    assert len(MemoryRecall(pipeline.retriever, deep).recall(query("kiln")).memories) == 3


def test_the_smallest_of_everything() -> None:
    one = recall(max_results=1, max_context_chars=1).recall(query("kiln"))
    assert (one.section, one.context_chars) == ("", 0)
    nobody = recall(include_trust_levels=()).recall(query("kiln"))
    assert nobody.ranking == ()


@BOTH
def test_the_future_is_as_fresh_as_now(config: Config) -> None:
    soon = memory("soon", "kiln", created_at=NOW + 900 * DAY, occurred_at=NOW + 900 * DAY)
    far = memory("far", "kiln x", created_at=2**53 - 1, occurred_at=2**53 - 1)
    answer = recall([soon, far], config).recall(query("kiln"))
    for told in answer.candidates:
        assert told.factors["recency"] == told.factors["temporal"] == 1.1
    assert "+287396-10-12" in answer.section + str(answer.inline)


@pytest.mark.parametrize("moment", [2**53, -(2**53), 10**30])
def test_a_time_no_store_can_hold_is_refused_by_name(moment: int) -> None:
    with pytest.raises(StoreError, match="memory 'm': createdAt is"):
        recall([memory("m", created_at=moment)]).recall(query("kiln"))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([memory("m"), memory("m", "again")], "'m'"),
        ([memory("m", "half \ud800")], "memory 'm': its text holds"),
        ([memory("m", proof_count=-1)], "memory 'm': proofCount"),
        ([memory("m", confidence=float("nan"))], "memory 'm': confidence"),
        ([memory("m", source_ids=("nobody",))], "'m'.*nobody"),
    ],
    ids=["an id twice", "half a character", "negative proof", "NaN", "an unknown source"],
)
def test_a_memory_the_store_cannot_hold_is_refused_by_name(bad: list[Memory], said: str) -> None:
    with pytest.raises(StoreError, match=said):
        recall(bad).recall(query("kiln"))


def test_a_missing_model_is_an_error_that_says_what_to_do() -> None:
    pipeline = recall()
    pipeline.retriever.embedder = None
    gone = MemoryRecall(pipeline.retriever, DOCUMENTED.evolve(**{"harness.embedder": "/no/such"}))
    for ask in (gone.recall, lambda asked: gone.rank([asked])):
        with pytest.raises(ModelError, match=r"harness\.embedder: '/no/such' is neither"):
            ask(query("kiln"))


def test_a_lane_that_cannot_search_is_the_recalls_error() -> None:
    class Broken(HashingEmbedder):
        def embed(self, texts: Any) -> Any:
            return super().embed(texts) * float("nan")

    pipeline = recall()
    pipeline.retriever.embedder = Broken(8)
    with pytest.raises(LaneError, match="holds NaN or infinity"):
        pipeline.recall(query("kiln"))


def test_a_wrapped_memory_longer_than_anything_costs_what_it_is_cut_to() -> None:
    huge = memory("m", "kiln " * 20_000, trust_level=TrustLevel.EXTERNAL)
    answer = recall(
        [huge], max_context_chars=60_000, include_trust_levels=(TrustLevel.EXTERNAL,)
    ).recall(query("kiln"))
    line = line_length(huge, Style("full", "external", "code_points"))
    assert answer.context_chars == 94 + line < 94 + 50_000


HOSTILE_WORDS = st.sampled_from(
    ['"', "'", "*", "^", "NEAR(a b)", "AND", "OR NOT", "content:", "(", ")", "{", "-", "\0",
     "\ud800", "\udc00", "kiln", "Maya", "\U0010ffff", "😀", "\u0301", "東京", "--",
     ";DROP TABLE memories", "%", "\\"]
)  # fmt: skip
TEXT = st.lists(HOSTILE_WORDS | st.text(max_size=8), max_size=8).map(" ".join) | st.text(
    alphabet=st.characters(), max_size=30
)
ANY_QUERY = st.builds(
    Query,
    id=st.text(max_size=3),
    text=TEXT,
    now=st.integers() | st.sampled_from([NOW, -(2**63), 2**63 - 1, 2**64]),
    turns=st.lists(
        st.builds(Turn, st.sampled_from(["user", "assistant"]) | TEXT, TEXT), max_size=3
    ).map(tuple),
    tenancy=st.just(Tenancy()) | st.builds(Tenancy, TEXT, st.none() | TEXT),
    filters=st.just(Filters())
    | st.builds(
        Filters,
        memory_type=st.none() | st.sampled_from(MemoryType),
        trust_level=st.none() | st.sampled_from(TrustLevel),
        tags=st.lists(st.just("x") | TEXT, max_size=2).map(tuple),
    ),
)


class TestNoQueryCanRaise:
    """Whatever is asked, of whatever configuration: an answer."""

    documented, production = (
        recall(config=one, **EVERYTHING_ON) for one in (DOCUMENTED, PRODUCTION)
    )

    @settings(max_examples=250, deadline=None, derandomize=True)
    @given(asked=ANY_QUERY)
    def test_under_both_presets(self, asked: Query) -> None:
        for pipeline in (self.documented, self.production):
            answer = pipeline.recall(asked)
            assert len(answer.memories) <= len(MEMORIES)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(asked=ANY_QUERY, config=configs())
    def test_under_any_configuration(self, asked: Query, config: Config) -> None:
        quiet = config.evolve(**{"rag.rerank.enabled": False})
        answer = MemoryRecall(self.documented.retriever, quiet).recall(asked)
        assert answer.context_chars >= len(answer.section)

    @pytest.mark.parametrize("text", ["kiln " * 20_000, "x" * 200_000, '"' * 50_000, "😀" * 20_000])
    def test_however_long(self, text: str) -> None:
        assert self.documented.recall(query(text)).lanes["vector"] >= 0
