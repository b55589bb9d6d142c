"""The columnar table: laying out, widening, restricting, and refusing what it cannot answer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.candidates import Candidates, Facts, RerankScores, Retrieval, Vectors, merge
from comis_eval.config import Config
from comis_eval.errors import CoverageError
from comis_eval.lanes.base import LaneHits
from comis_eval.pipelines.rank import rank
from comis_eval.stages.present import Style
from comis_eval.store.corpus import Corpus
from tests.builders import DAY, NOW, memory, query
from tests.tables import batch_of, corpus_of, hits, table

MEMORIES = [memory(name) for name in "abcd"]


def two_queries(
    fts: list[list[str]], vector: list[list[str]], config: Config | None = None
) -> tuple[Candidates, Corpus]:
    corpus, asked = corpus_of(MEMORIES), [query("one", "q1"), query("two", "q2")]
    made = Candidates.assemble(
        Facts(corpus),
        asked,
        batch_of(corpus, asked),
        Retrieval.of(config or Config()),
        {"fts": hits(corpus, fts), "vector": hits(corpus, vector)},
    )
    return made, corpus


def test_columns_stand_in_the_order_the_lanes_first_showed_them() -> None:
    made, _ = two_queries([["b", "a"], []], [["c", "b", "d"], ["d"]])
    # Query 1: b, a from fts, then c, d. Query 2: d, then padding.
    assert made.rows.tolist() == [[1, 0, 2, 3], [3, -1, -1, -1]]
    assert made.lanes["fts"].ranks.tolist() == [[1, 2, 0, 0], [0, 0, 0, 0]]
    assert made.lanes["vector"].ranks.tolist() == [[2, 0, 1, 3], [1, 0, 0, 0]]
    assert made.lanes["vector"].scores[0].tolist() == [1 / 2, 0.0, 1.0, 1 / 3]


def test_signals_are_the_memorys_for_its_query_and_neutral_in_padding() -> None:
    made, _ = two_queries([["a"], []], [[], ["b"]])
    # One day old, learned, nothing else known.
    assert [plane[0, 0] for plane in made.signals] == [0.5, 0.5, 0.5, 0.5, 0.5]
    late = replace(MEMORIES[0], created_at=NOW - 3 * DAY, occurred_at=NOW, proof_count=0)
    corpus, asked = corpus_of([late]), [query("x")]
    alone = Candidates.assemble(
        Facts(corpus, {"a": (3, 1)}), asked, batch_of(corpus, asked), Retrieval.of(Config()),
        {"fts": hits(corpus, [["a"]])},
    )  # fmt: skip
    # 1/(1+3); the event is now; no proof at all; learned; 3 of 4 showings.
    assert [plane[0, 0] for plane in alone.signals] == [0.25, 1.0, 0.0, 0.5, 0.75]
    padded, _ = two_queries([["a", "b"], []], [[], []])
    assert [plane[1].tolist() for plane in padded.signals] == [[0.5, 0.5]] * 5


def test_a_spread_lane_comes_behind_and_keeps_what_is_there() -> None:
    made, corpus = two_queries([["b"], ["a", "c"]], [[], []])
    wide, ranks = made.extended(hits(corpus, [["d", "b"], []]))
    assert wide.rows.tolist() == [[1, 3], [0, 2]]
    assert ranks.tolist() == [[2, 1], [0, 0]]
    assert wide.lanes["fts"].ranks.tolist() == [[1, 0], [1, 2]]
    assert wide.signals.recency.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert made.rows.tolist() == [[1, -1], [0, 2]], "the narrow one is untouched"
    same, again = made.extended(hits(corpus, [["b"], []]))
    assert same is made
    assert again.tolist() == [[1, 0], [0, 0]]


def test_a_restricted_table_ranks_as_if_the_other_lane_had_not_run() -> None:
    config = Config.model_validate({"rag": {"minScore": 0.0}})
    alone = config.evolve(**{"harness.lanes": ("vector",)})
    both, _ = two_queries([["b", "a"], ["a"]], [["c", "b"], ["d"]], config)
    only = rank(both.restricted("vector"), alone)
    assert only.table.corpus is both.corpus
    assert only.ranked_rows().tolist() == [[2, 1], [3, -1]]
    assert only.lane_counts() == {"vector": 2}
    with pytest.raises(CoverageError, match=r"built with lanes \('vector',\) and cannot answer"):
        rank(both.restricted("vector"), config)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("harness.lanes", ("fts",), r"lanes \('fts', 'vector'\) and cannot answer for \('fts',\)"),
        ("harness.keyword_backend", "rank_bm25", "keyword_backend 'fts5' .* 'rank_bm25'"),
        ("harness.embedder", "other", "embedder 'minilm:mean' .* 'other:mean'"),
        ("harness.pooling", "cls", "'minilm:cls'"),
        ("semantics.keyword_statistics", "table", "keyword_statistics 'scope'"),
        ("semantics.scope_filter", "after_fusion", "scope_filter 'in_lane'"),
        ("semantics.query_context_turns", 1, "query_context_turns 2 .* 1"),
        ("rag.mmr.enabled", True, "without embeddings, which rag.mmr compares"),
    ],
)
def test_what_a_table_does_not_hold_is_refused_by_name(path: str, value: Any, said: str) -> None:
    made = table(MEMORIES, Config(), fts=["a"])
    made.check_covers(Config())
    with pytest.raises(CoverageError, match=f"{said}.*build it for this configuration"):
        rank(made, Config().evolve(**{path: value}))


def test_mmr_is_covered_once_there_are_embeddings() -> None:
    made = table(
        MEMORIES, Config(), fts=["a"],
        vectors=Vectors(np.zeros((4, 2), dtype=np.float32), np.zeros(4, dtype=bool)),
    )  # fmt: skip
    made.check_covers(Config().evolve(**{"rag.mmr.enabled": True}))


def test_a_depth_is_covered_when_it_is_no_deeper_or_the_lanes_had_no_more() -> None:
    made = table(MEMORIES, Config(), fts=["a"])
    deeper = Config().evolve(**{"semantics.lane_depth": 101})
    made.check_covers(Config().evolve(**{"semantics.lane_depth": 3}))
    made.check_covers(deeper)
    cut = made.lanes["fts"]._replace(exhausted=np.zeros(1, dtype=bool))
    more = replace(made, lanes={**made.lanes, "fts": cut})
    with pytest.raises(CoverageError, match="depth 100 and cannot answer for 101"):
        more.check_covers(deeper)


def test_a_recall_that_is_off_reaches_nowhere() -> None:
    off = Config().evolve(**{"rag.enabled": False, "harness.lanes": ("fts",)})
    made = table(MEMORIES, Config(), fts=["a"])
    assert rank(made, off).length.tolist() == [0]
    empty = replace(made, retrieval=Retrieval.of(off))
    with pytest.raises(CoverageError, match=r"built with lanes \(\)"):
        rank(empty, Config())


def test_the_rerankers_plane_holds_its_answers_and_nan_elsewhere() -> None:
    made, _ = two_queries([["b", "a"], ["c"]], [[], []])
    keys = np.array([0 * 4 + 0, 0 * 4 + 1, 1 * 4 + 2])
    held = replace(made, rerank=RerankScores(keys, np.array([0.1, 0.9, 0.5])))
    plane = held.rerank_plane(np.array([[True, False], [True, False]]))
    assert plane[0, 0] == 0.9
    assert plane[1, 0] == 0.5
    assert np.isnan(plane[:, 1]).all()
    assert np.isnan(made.rerank_plane(np.ones((2, 2), dtype=bool))).all()


@pytest.mark.parametrize(("keys", "lacking"), [([1, 6], 1), ([], 3)], ids=str)
def test_a_pair_the_reranker_never_saw_is_refused_by_name(keys: list[int], lacking: int) -> None:
    made, _ = two_queries([["b", "a"], ["c"]], [[], []])
    scores = RerankScores(np.array(keys, dtype=np.int64), np.zeros(len(keys)))
    asked = np.array([[True, True], [True, False]])
    first = "a" if keys else "b"
    said = rf"query 'q1': .* memory '{first}' \({lacking} pairs in all\).*rag.rerank.maxCandidates"
    with pytest.raises(CoverageError, match=said):
        replace(made, rerank=scores).rerank_plane(asked)


def test_ranked_and_context_rows_are_padded_behind_each_lists_end() -> None:
    config = Config.model_validate({
        "rag": {"minScore": 0.0, "maxResults": 1, "includeTrustLevels": ["learned"]}
    })  # fmt: skip
    made, _ = two_queries([["b", "a", "c"], ["d"]], [[], []], config)
    rankings = rank(made, config)
    assert rankings.ranked_rows().tolist() == [[1, 0, 2], [3, -1, -1]]
    assert rankings.context_rows().tolist() == [[1], [3]]
    assert rankings.lane_counts() == {"fts": 2, "vector": 0}
    nobody = rank(made, config.evolve(**{"rag.include_trust_levels": ()}))
    assert nobody.ranked_rows().shape == nobody.context_rows().shape == (2, 0)


def test_a_skipped_line_leaves_no_hole_in_the_context() -> None:
    config = Config.model_validate({"rag": {"minScore": 0.0, "maxContextChars": 200}})
    memories = [memory("a"), memory("b", "x" * 500), memory("c")]
    rankings = rank(table(memories, config, fts=["a", "b", "c"]), config)
    assert rankings.ranked_rows().tolist() == [[0, 1, 2]]
    assert rankings.context_rows().tolist() == [[0, 2]]


def test_line_lengths_are_those_of_the_lines_and_0_for_padding() -> None:
    facts = Facts(corpus_of([memory("a", "é😀"), memory("b")]))
    rows = np.array([[1, -1], [0, 1]], dtype=np.int32)
    # "- [learned] (recorded 2026-05-27): " is 35; "é😀" 2 code points, "content of b" 12.
    points = Style("full", "external", "code_points")
    expected = [[35 + 12 + 1, 0], [35 + 2 + 1, 35 + 12 + 1]]
    assert facts.line_lengths(points, rows).tolist() == expected
    assert facts.line_lengths(points, rows).tolist() == expected, "known by now"
    # "- [learned] (2026-05-27): " is 26, the wrapper 103; the emoji is two units.
    shipped = Style("short", "non_system", "utf16")
    assert facts.line_lengths(shipped, rows[1]).tolist() == [26 + 103 + 3 + 1, 26 + 103 + 12 + 1]


@st.composite
def growing(draw: st.DrawFn) -> tuple[int, list[LaneHits]]:
    """A corpus size, and what several lanes found for the same queries."""
    size, queries = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    lanes = []
    for _ in range(draw(st.integers(1, 3))):
        lists = [
            draw(st.lists(st.integers(0, size - 1), unique=True, max_size=size))
            for _ in range(queries)
        ]
        rows = [row for one in lists for row in one]
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
        scores = draw(st.lists(st.floats(-5, 5), min_size=len(rows), max_size=len(rows)))
        lanes.append(
            LaneHits(
                offsets,
                np.array(rows, dtype=np.int32),
                np.array(scores),
                np.ones(queries, dtype=bool),
            )
        )
    return size, lanes


@settings(max_examples=200, deadline=None, derandomize=True)
@given(growing())
def test_merging_is_what_a_dictionary_does(drawn: tuple[int, list[LaneHits]]) -> None:
    size, lanes = drawn
    queries = len(lanes[0].exhausted)
    rows = np.empty((queries, 0), dtype=np.int32)
    columns: list[dict[int, int]] = [{} for _ in range(queries)]
    for found in lanes:
        before = rows.copy()
        rows, ranks, scores = merge(rows, found, size)
        assert (rows[:, : before.shape[1]][before >= 0] == before[before >= 0]).all()
        width = rows.shape[1]
        for place in range(queries):
            mine = slice(found.offsets[place], found.offsets[place + 1])
            told_ranks, told_scores = [0] * width, [0.0] * width
            for rank_, (row, score) in enumerate(
                zip(found.rows[mine].tolist(), found.scores[mine].tolist(), strict=True), start=1
            ):
                column = columns[place].setdefault(row, len(columns[place]))
                told_ranks[column], told_scores[column] = rank_, score
            expected = [*columns[place], *[-1] * (width - len(columns[place]))]
            assert rows[place].tolist() == expected
            assert ranks[place].tolist() == told_ranks
            assert scores[place].tolist() == told_scores
        assert width == max((len(known) for known in columns), default=0)
