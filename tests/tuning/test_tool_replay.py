"""The recall tool's tables, read once a threshold: what a sweep measures is what a recall says."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.datasets.labels import Policy, ScopeRule
from comis_eval.errors import CoverageError
from comis_eval.evaluation import evaluate
from comis_eval.evaluation.inputs import Judge
from comis_eval.metrics import ALL
from comis_eval.pipelines.recall_tool import RecallTool, ToolTables
from comis_eval.pipelines.recall_tool.answer import envelope, item
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning.replay import TRIAL_METRICS, Replay
from comis_eval.tuning.space import Space
from comis_eval.tuning.tool_space import tool_space
from comis_eval.types import TrustLevel
from tests.builders import DAY, NOW
from tests.pipelines.recall_tool.world import ME, SHE, WordEmbedder, asked, dataset, mine

TEXTS = (
    "kiln fires", "the kiln history", "clay glaze pattern", "kiln A_CONSTANT", "glaze",
    "a wheel for clay", "zebra",
)  # fmt: skip
BASE = Config()


def shelf() -> Dataset:
    dice = np.random.default_rng(5)
    words = ("kiln", "clay", "glaze", "wheel", "fires", "history", "A_CONSTANT")
    scopes = ("workspace", "project", "agent")
    memories = [
        mine(
            f"m{row}",
            " ".join(dice.choice(words, 1 + row % 4)),
            importance=float(dice.integers(0, 21) / 20),
            relevance=float(dice.integers(1, 11) / 10),
            created_at=NOW - int(dice.uniform(0, 90) * DAY),
            status=("active", "stale", "superseded")[int(dice.integers(0, 3))],
            scope=scopes[row % 3],
            project_id="p" if row % 3 == 1 else None,
            tenancy=SHE if row % 7 == 0 else ME,
            created_by="she" if row % 7 == 0 else "me",
            tags=("kind:pinned",) if row % 17 == 0 else ("even",) if row % 2 == 0 else (),
            trust_level=TrustLevel.EXTERNAL if row % 11 == 0 else TrustLevel.LEARNED,
        )
        for row in range(60)
    ]
    parameters = (
        {}, {"limit": 3}, {"offset": 2, "limit": 2}, {"min_importance": 0.5}, {"full": True},
        {"order_by": "created_at:asc"}, {"apply_recency_decay": True}, {"tags_any": ["even"]},
        {"recall_profile": "factual"}, {"recall_profile": "multi-session", "full": True},
    )  # fmt: skip
    queries = [
        asked(text, id_=f"q{n}-{m}", **given)
        for n, text in enumerate(TEXTS)
        for m, given in enumerate(parameters)
    ]
    edges = [(f"m{a}", f"m{(a * 7 + 3) % 60}", 0.8) for a in range(60)]
    made = dataset(memories, queries, edges=edges, scope=ScopeRule.TENANT)
    judged = [(q, int(dice.integers(0, 60)), int(g)) for q in range(len(queries)) for g in (1, 2)]
    unique = {(q, row): grade for q, row, grade in judged}
    return Dataset(
        name="shelf",
        memories=made.memories,
        queries=made.queries,
        judgments=Judgments.of(
            [(q, row, grade) for (q, row), grade in unique.items()], n_queries=len(queries)
        ),
        policy=Policy(scope=ScopeRule.TENANT),
        edges=made.edges,
    )


SHELF = shelf()
RETRIEVER = Retriever(SHELF, embedder=WordEmbedder(), cache=None)
SPACE = tool_space(SHELF, BASE)
TABLES = ToolTables(RETRIEVER, SHELF.queries, BASE, 200)


def points(space: Space = SPACE):
    """Any configuration of the space, the profiles' switch besides."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Config:
        class Dice:
            def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
                return draw(st.floats(low, high), label=name)

            def suggest_categorical(self, name: str, choices):
                return draw(st.sampled_from(choices), label=name)

        config = space.apply(BASE, space.suggest(Dice()))
        superseded = draw(st.booleans(), label="includeSuperseded")
        depth = draw(st.sampled_from((1, 5, 200)), label="armDepth")
        return config.evolve(
            **{
                "harness.recallTool.profiles.factual.includeSuperseded": superseded,
                "harness.recallTool.armDepth": depth,
            }
        )

    return drawn()


def test_the_space_varies_all_that_was_asked_for():
    assert [path.removeprefix("harness.recallTool.") for path in SPACE.describe()] == [
        "fusion.k", "fusion.vectorWeight", "gate.noise", "gate.floor", "minImportance",
        "profiles.multiSession.minImportance", "profiles.multiSession.limit",
        "profiles.multiSession.orderBy", "profiles.factual.minImportance",
        "profiles.factual.limit", "profiles.factual.orderBy", "decayBase", "graph.enabled",
        "graph.share",
    ]  # fmt: skip
    assert all(knob.exportable for knob in SPACE.knobs)
    SPACE.check(BASE)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(config=points())
def test_every_figure_of_a_trial_is_the_evaluations_to_the_last_bit(config: Config) -> None:
    trial = Replay(Judge(SHELF), TABLES, BASE)
    constants = {"harness.utility.k0": 5, "harness.utility.c0": BASE.rag.max_context_chars}
    evaluated = evaluate(
        SHELF, config.evolve(**constants), pipeline="recall-tool", metrics=TRIAL_METRICS,
        retriever=RETRIEVER, references=False,
    )  # fmt: skip
    figures = {name: trial(config).figures[name] for name in TRIAL_METRICS}
    expected = {name: evaluated.means[ALL][name].value for name in TRIAL_METRICS}
    assert np.array_equal(list(figures.values()), list(expected.values()), equal_nan=True)
    assert np.array_equal(trial(config).per_query, evaluated.values["utility"], equal_nan=True)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(config=points())
def test_every_answer_is_the_one_recall_prints(config: Config) -> None:
    tool = RecallTool(RETRIEVER, config)
    seen = []
    for positions, paged in TABLES.paged(config):
        for place, position in enumerate(positions.tolist()):
            seen.append(position)
            assert envelope(paged, place) == tool.recall(SHELF.queries[position])
    assert sorted(seen) == list(range(len(SHELF.queries)))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(config=points())
def test_no_point_of_the_space_widens_scope_tags_or_whatever_a_caller_says(config: Config) -> None:
    trial = Replay(Judge(SHELF), TABLES, BASE)(config)
    assert trial.figures["scope_leak"] == 0
    assert trial.constraints["scope_leak"] == 0
    for positions, paged in TABLES.paged(config):
        for place, position in enumerate(positions.tolist()):
            said = SHELF.queries[position].filters.parameters
            rows = paged.rankings.context_rows()[place]
            shown = [paged.table.corpus.memories[row] for row in rows[rows >= 0]]
            assert len(shown) <= said.get("limit", 50)
            assert all(m.scope != "agent" or m.created_by == "me" for m in shown)
            if "tags_any" in said:
                assert all("even" in m.tags for m in shown)
            pinned = {m.id for m in shown if "kind:pinned" in m.tags}
            if "min_importance" in said:
                assert all(m.importance >= 0.5 for m in shown if m.id not in pinned)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(config=points(), seed=st.integers(0, 99))
def test_a_part_scores_its_queries_as_the_whole_does(config: Config, seed: int) -> None:
    positions = np.random.default_rng(seed).permutation(len(SHELF.queries))[:23]
    part = TABLES.subset(positions)
    again = part.subset(np.arange(len(positions))[::-2])
    everywhere = Replay(Judge(SHELF), TABLES, BASE)(config).per_query
    for tables, where in ((part, positions), (again, positions[::-2])):
        replay = Replay(Judge(SHELF.subset(where)), tables, BASE)
        assert np.array_equal(replay(config).per_query, everywhere[where], equal_nan=True)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(config=points())
def test_lengths_are_those_of_the_items_as_json(config: Config) -> None:
    for _, paged in TABLES.paged(config):
        lengths = paged.rankings.line_chars
        assert lengths is not None
        for query, column in np.argwhere(paged.rankings.included).tolist():
            shown = json.dumps(item(paged, query, column), ensure_ascii=False)
            assert lengths[query, column] == len(shown)


def test_the_arms_are_read_once_a_threshold(monkeypatch):
    from comis_eval.pipelines.recall_tool import covering

    calls = []
    search = covering.search
    monkeypatch.setattr(
        covering, "search", lambda *given, **more: calls.append(given) or search(*given, **more)
    )
    tables = ToolTables(RETRIEVER, SHELF.queries, BASE, 200)
    replay = Replay(Judge(SHELF), tables, BASE)
    for k in range(1, 9):
        replay(BASE.evolve(**{"harness.recallTool.fusion.k": k}))
    assert len(calls) == 3  # one a profile
    replay(BASE.evolve(**{"harness.recallTool.minImportance": 0.5}))
    assert len(calls) == 4  # the default profile's alone leaves it open
    tables.subset(np.arange(9))
    Replay(Judge(SHELF.subset(np.arange(9))), tables.subset(np.arange(9)), BASE)(BASE)
    assert len(calls) == 4


def test_old_tables_go_when_there_are_too_many(monkeypatch):
    from comis_eval.pipelines.recall_tool import covering

    monkeypatch.setattr(covering, "_CELLS", 1)
    tables = ToolTables(RETRIEVER, SHELF.queries, BASE, 200)
    trial, kept = Replay(Judge(SHELF), tables, BASE), Replay(Judge(SHELF), TABLES, BASE)
    for least in (0.3, 0.5, 0.3):
        config = BASE.evolve(**{"harness.recallTool.minImportance": least})
        assert trial(config).figures == kept(config).figures
        assert len(tables._held) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"harness.recallTool.indexTags": True},
        {"harness.recallTool.chunkChars": 7},
        {"harness.recallTool.defaultExpiry": False},
        {"harness.lanes": ("fts",)},
        {"harness.recallTool.armDepth": 201},
    ],
)
def test_what_was_not_searched_is_an_error_and_never_a_cut(change):
    with pytest.raises(CoverageError, match="search again"):
        list(TABLES.paged(BASE.evolve(**change)))


def test_a_table_refuses_calls_that_see_other_rows():
    tool = RecallTool(RETRIEVER, BASE)
    table = tool.table([asked("kiln")])
    wider = RecallTool(RETRIEVER, BASE).table([asked("kiln", min_importance=0)]).requests
    with pytest.raises(CoverageError, match=r"0\.3 and more, without replaced rows, now"):
        table.asked(wider)


def test_what_trust_it_does_not_promise_may_not_get_worse():
    trial = Replay(Judge(SHELF), TABLES, BASE)
    standing = trial(BASE)
    assert standing.figures["policy_leak"] > 0
    assert standing.constraints["policy_leak"] == 0
    more = BASE.evolve(**{"harness.recallTool.minImportance": 0})
    found = trial(more)
    assert found.constraints["policy_leak"] == pytest.approx(
        found.figures["policy_leak"] - standing.figures["policy_leak"]
    )
