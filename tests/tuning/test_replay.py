"""One table, many settings: what a sweep measures is what a recall answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from comis_eval.candidates import cache
from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.errors import CoverageError
from comis_eval.evaluation.inputs import Judge
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.pipelines.coverage import Coverage
from comis_eval.pipelines.explain import result
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning.replay import Replay
from comis_eval.types import TrustLevel
from tests import strategies
from tests.builders import DAY, NOW, memory, query
from tests.pipelines.test_batch import HashReranker, told

EVERYTHING = Coverage(depth=300, rerank=True, entity=True, window_days=60, causal=True)
MARK = "a" * 24


def retriever(dataset: Dataset, folder: Path | None = None) -> Retriever:
    return Retriever(dataset, embedder=HashingEmbedder(8), reranker=HashReranker(), cache=folder)


def like(base: Config, other: Config) -> Config:
    """Another configuration's knobs, with the settings that decide what a table holds."""
    held = ("query_context_turns", "keyword_statistics", "scope_filter")
    return Config(
        rag=other.rag.model_copy(update={"enabled": True}),
        semantics=other.semantics.model_copy(
            update={name: getattr(base.semantics, name) for name in held}
        ),
        harness=base.harness.model_copy(update={"fusion": other.harness.fusion}),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    dataset=strategies.datasets(),
    base=strategies.configs(),
    first=strategies.configs(),
    second=strategies.configs(),
)
def test_replay_equals_recall_over_the_whole_knob_space(
    dataset: Dataset, base: Config, first: Config, second: Config
) -> None:
    base = base.evolve(**{"rag.enabled": True})
    table = retriever(dataset).covering(dataset.queries, base, EVERYTHING)
    for config in (like(base, first), like(base, second)):
        rankings = rank(table, config)
        recall = MemoryRecall(retriever(dataset), config, delimiter=lambda: MARK)
        for place, asked in enumerate(dataset.queries):
            replayed = result(rankings, place, delimiter=lambda: MARK)
            assert told(replayed) == told(recall.recall(asked))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), config=strategies.configs())
def test_a_part_of_a_table_ranks_as_the_whole_does(dataset: Dataset, config: Config) -> None:
    config = config.evolve(**{"rag.enabled": True})
    table = retriever(dataset).covering(dataset.queries, config, EVERYTHING)
    whole = rank(table, config)
    positions = np.arange(len(dataset.queries))[::-1][: 1 + len(dataset.queries) // 2]
    part = rank(table.subset(positions), config)
    for place, position in enumerate(positions):
        assert told(result(part, place, delimiter=lambda: MARK)) == told(
            result(whole, int(position), delimiter=lambda: MARK)
        )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(dataset=strategies.datasets(), config=strategies.configs())
def test_a_table_from_disk_ranks_as_the_one_that_was_written(
    dataset: Dataset, config: Config
) -> None:
    import tempfile

    config = config.evolve(**{"rag.enabled": True})
    with tempfile.TemporaryDirectory() as folder:
        written = retriever(dataset, Path(folder)).covering(dataset.queries, config, EVERYTHING)
        read = retriever(dataset, Path(folder)).covering(dataset.queries, config, EVERYTHING)
        first, second = rank(written, config), rank(read, config)
        assert first.final.tobytes() == second.final.tobytes()
        assert first.order.tobytes() == second.order.tobytes()
        assert len(list((Path(folder) / "candidates").glob("*.npz"))) == 1


def small() -> Dataset:
    memories = tuple(
        memory(f"m{n}", f"kiln note number {n}", created_at=NOW - n * DAY) for n in range(30)
    )
    asked = (query("kiln note", "q1"), query("kiln number 3", "q2"))
    return Dataset(
        name="small",
        memories=memories,
        queries=asked,
        judgments=Judgments.of([(0, 0, 2), (1, 3, 3)], n_queries=2),
    )


def test_a_depth_beyond_the_table_is_an_error_and_never_a_cut() -> None:
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    table = retriever(small()).covering(small().queries, config, Coverage(depth=4))
    deeper = config.evolve(**{"semantics.lane_depth": 5})
    with pytest.raises(CoverageError, match="depth 4 and cannot answer for 5"):
        rank(table, deeper)


def test_a_reranker_that_was_not_asked_about_a_pair_is_an_error() -> None:
    config = Config().evolve(**{"harness.lanes": ("fts",), "rag.rerank.enabled": True})
    recall = MemoryRecall(retriever(small()), config.evolve(**{"rag.rerank.max_candidates": 3}))
    table = recall.candidates(small().queries)
    with pytest.raises(CoverageError, match="the reranker was never asked about memory"):
        rank(table, config)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "candidates").glob("*.npz"))


def test_a_damaged_file_is_said_and_built_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    first = retriever(small(), tmp_path).covering(small().queries, config, Coverage(depth=9))
    (path,) = files(tmp_path)
    for damage in (b"", path.read_bytes()[:-200], b"not a zip"):
        path.write_bytes(damage)
        again = retriever(small(), tmp_path).covering(small().queries, config, Coverage(depth=9))
        assert "not a whole candidates file" in caplog.text
        assert again.rows.tobytes() == first.rows.tobytes()
        caplog.clear()


def test_a_foreign_file_in_its_place_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    retriever(small(), tmp_path).covering(small().queries, config, Coverage(depth=9))
    retriever(small(), tmp_path).covering(small().queries, config, Coverage(depth=3))
    one, two = files(tmp_path)
    two.write_bytes(one.read_bytes())
    assert cache.load(tmp_path / "candidates", two.name.removesuffix(cache.SUFFIX)) is None
    assert "holds the table" in caplog.text


def test_another_dataset_query_or_depth_is_another_file(tmp_path: Path) -> None:
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    world = small()
    retriever(world, tmp_path).covering(world.queries, config, Coverage(depth=9))
    retriever(world, tmp_path).covering(world.queries[:1], config, Coverage(depth=9))
    retriever(world, tmp_path).covering(
        (replace(world.queries[0], text="another"),), config, Coverage(depth=9)
    )
    other = replace(world, memories=world.memories[:-1])
    retriever(other, tmp_path).covering(world.queries, config, Coverage(depth=9))
    assert len(files(tmp_path)) == 4


def test_the_constants_of_utility_are_the_current_configurations() -> None:
    current = Config().evolve(**{"harness.lanes": ("fts",), "rag.max_results": 2})
    table = retriever(small()).covering(small().queries, current, Coverage(depth=30))
    replay = Replay(Judge(small()), table, current)
    wide = current.evolve(**{"rag.max_results": 20})
    assert replay.constants.k0 == 2
    # One memory of each of the two queries is relevant, and found first or not at all; what
    # stands behind rank 2 costs characters and earns nothing.
    assert replay(wide).figures["utility"] < replay(current).figures["utility"]


def test_silence_and_leaks_are_bounds_that_a_trial_oversteps() -> None:
    current = Config().evolve(**{"harness.lanes": ("fts",)})
    world = small()
    outside = memory("web", "kiln note from the web", trust_level=TrustLevel.EXTERNAL)
    world = replace(world, memories=(*world.memories, outside))
    table = retriever(world).covering(world.queries, current, Coverage(depth=40))
    replay = Replay(Judge(world), table, current)
    assert all(amount <= 0 for amount in replay(current).constraints.values())
    silent = replay(current.evolve(**{"rag.max_context_chars": 10}))
    assert silent.constraints["silence"] == pytest.approx(0.99)
    everyone = ("system", "learned", "external")
    leaky = current.evolve(**{"rag.include_trust_levels": everyone, "rag.max_results": 40})
    assert replay(leaky).constraints["policy_leak"] > 0
