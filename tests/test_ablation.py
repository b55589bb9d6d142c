"""One thing at a time: which things, on which tables, and the same figures as a fresh start."""

from typing import Any

import numpy as np
import pytest

from comis_eval.ablation import ablate, as_document, measure, variants
from comis_eval.candidates import Candidates, Retrieval
from comis_eval.config import PRODUCTION, Config, LaneWeights, Semantics, Settings
from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import ConfigError, MetricError
from comis_eval.evaluation.inputs import Judge, objective_of
from comis_eval.metrics import parse
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import TrustLevel, Turn
from tests.builders import DAY, NOW, memory, query
from tests.pipelines.test_batch import HashReranker

MEMORIES = tuple(
    memory(
        f"m{number}",
        f"{word} note about the {('kiln', 'tax', 'garden')[number % 3]} number {number % 4}",
        created_at=NOW - number * 20 * DAY,
        occurred_at=NOW - number * DAY,
        trust_level=tuple(TrustLevel)[number % 3],
        proof_count=number,
        entities=(("Ada", "Bo")[number % 2],),
    )
    for number, word in enumerate(["red", "blue", "green", "old"] * 5)
)
QUERIES = tuple(
    query(f"{word} {thing}", f"{word}-{thing}", group=word, turns=(Turn("user", "the kiln"),))
    for word in ("red", "blue", "green", "old")
    for thing in ("kiln", "tax", "garden")
)


def dataset() -> Dataset:
    triples = [(q, (3 * q + 1) % len(MEMORIES), 2) for q in range(len(QUERIES))]
    triples += [(q, (5 * q + 2) % len(MEMORIES), 1) for q in range(len(QUERIES))]
    return Dataset(
        name="notes",
        version="1",
        memories=MEMORIES,
        queries=QUERIES,
        judgments=Judgments.of(sorted(set(triples)), n_queries=len(QUERIES)),
    )


def retriever(made: Dataset) -> Retriever:
    return Retriever(made, embedder=HashingEmbedder(16), reranker=HashReranker(), cache=None)


EVERYTHING = {
    "rag.rerank.enabled": True,
    "rag.entity_lane.enabled": True,
    "rag.lanes.temporal.enabled": True,
    "rag.mmr.enabled": True,
    "rag.feedback.enabled": True,
}


def named(config: Config) -> list[str]:
    return [f"{variant.name}: {variant.said}" for variant in variants(config)]


def test_the_default_flips_every_switch_and_turns_off_what_is_on():
    found = named(Config())
    switches = [name for name in found if name.startswith("semantics.")]
    assert len(switches) == len(PRODUCTION) == 18
    assert "semantics.fusion: flat -> nested" in found
    assert "semantics.minScoreOn: fused -> final" in found, "where presets agree, the other value"
    assert "semantics.inlineMinScore: null -> 0.7" in found
    assert found[18:] == [
        "fts lane: on -> off", "vector lane: on -> off",
        "recency boost: on -> off", "temporal boost: on -> off", "proof boost: on -> off",
        "trust boost: on -> off",
    ]  # fmt: skip


def test_production_flips_the_other_way():
    config = Config(semantics=Semantics.model_validate({"preset": "production"}))
    assert "semantics.fusion: nested -> flat" in named(config)
    assert "semantics.laneDepth: limit -> 100" in named(config)


def test_a_value_of_neither_preset_takes_both():
    config = Config().evolve(**{"semantics.query_context_turns": 5})
    assert {n for n in named(config) if "queryContextTurns" in n} == {
        "semantics.queryContextTurns: 5 -> 2", "semantics.queryContextTurns: 5 -> 0",
    }  # fmt: skip


def test_every_variant_differs_in_one_thing():
    for config in (Config(), Config().evolve(**EVERYTHING)):
        for variant in variants(config):
            changed = _changed(config, variant.config)
            assert len(changed) == 1, (variant.name, changed)


def _changed(one: Settings, two: Settings) -> list[str]:
    """The values that differ; the lane weights of a preset are one value."""
    found = []
    for name, value in one:
        other = getattr(two, name)
        if isinstance(value, Settings) and not isinstance(value, LaneWeights):
            found += _changed(value, other)
        elif value != other:
            found.append(name)
    return found


def test_the_last_search_lane_and_what_is_off_are_said():
    config = Config().evolve(**{"harness.lanes": ("fts",), "rag.scoring.proof_alpha": 0.0})
    assert not any(name.startswith("fts lane") for name in named(config))
    made = dataset()
    found = ablate(made, config, metric="ndcg@10", retriever=retriever(made), resamples=200)
    assert found.off == (
        "fts lane: the only search lane",
        "off already: vector lane, entity lane, temporal lane, causal lane, rerank, "
        "proof boost, usefulness boost",
    )


def test_nothing_to_ablate_and_no_such_metric_are_errors():
    off = Config().evolve(**{"rag.enabled": False})
    with pytest.raises(ConfigError, match=r"rag\.enabled is false"):
        ablate(dataset(), off)
    with pytest.raises(MetricError, match="no metric"):
        ablate(dataset(), metric="hot")


@pytest.mark.parametrize("changes", [{}, EVERYTHING, {"semantics.preset": "production"}],
                         ids=["default", "everything", "production"])  # fmt: skip
@pytest.mark.parametrize("metric", ["utility", "context_chars"])
def test_shared_tables_give_what_a_fresh_start_gives(changes, metric):
    made, config = dataset(), Config().evolve(**changes)
    found = measure(made, config, metric=metric, retriever=retriever(made))
    sign = 1 if parse(metric).definition.higher_is_better else -1

    def fresh(other: Config) -> np.ndarray:
        pipeline = MemoryRecall(retriever(made), other)
        rankings = rank(pipeline.candidates(made.queries), other)
        return parse(metric)(Judge(made).inputs(rankings, objective_of(config)))

    before = fresh(config)
    for column, variant in enumerate(found.variants):
        expected = sign * (fresh(variant.config) - before)
        np.testing.assert_array_equal(found.differences[:, column], expected, variant.name)


def test_only_what_changes_the_search_is_searched_again(monkeypatch):
    made, asked = dataset(), []
    original = Retriever.candidates

    def counted(self: Retriever, queries: Any, config: Config, **given: Any) -> Candidates:
        asked.append(Retrieval.of(config))
        return original(self, queries, config, **given)

    monkeypatch.setattr(Retriever, "candidates", counted)
    measure(made, Config(), metric="utility", retriever=retriever(made))
    differing = {"keyword_statistics", "scope_filter", "query_context_turns"}
    assert len(asked) == 1 + len(differing)
    for other in asked[1:]:
        (changed,) = [f for f in Retrieval._fields if getattr(other, f) != getattr(asked[0], f)]
        assert changed in differing


def test_effects_are_sorted_corrected_and_told_as_json():
    made = dataset()
    found = ablate(made, metric="ndcg@10", retriever=retriever(made), resamples=300)
    sizes = [abs(effect.figures.mean) for effect in found.effects]
    assert sizes == sorted(sizes, reverse=True)
    for effect in found.effects:
        assert effect.p_adjusted >= effect.figures.p - 0.1
        assert (effect.changed == 0) == (effect.figures.low == effect.figures.high == 0)
    document = as_document(found)
    assert [e["name"] for e in document["effects"]] == [e.name for e in found.effects]
    assert document["effects"][0]["mean"] == found.effects[0].figures.mean
    again = ablate(made, metric="ndcg@10", retriever=retriever(made), resamples=300)
    assert as_document(again) == document


def test_a_variant_that_leaks_says_so(monkeypatch):
    made = dataset()
    levels = ("system", "learned", "external")
    config = Config().evolve(**{"rag.include_trust_levels": levels})
    found = ablate(made, config, metric="ndcg@10", retriever=retriever(made), resamples=200)
    assert min(effect.leaking for effect in found.effects) > 0
    clean = ablate(made, metric="ndcg@10", retriever=retriever(made), resamples=200)
    assert max(effect.leaking for effect in clean.effects) == 0
