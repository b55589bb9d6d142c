"""What if: the same answer as the pipeline with those settings, and controls that follow."""

import sys

import pytest

from comis_eval.candidates import Candidates
from comis_eval.errors import ConfigError
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tuning.whatif import WhatIf
from tests.tuning.worlds import FTS, SHARE, space, stale

RECENCY = "rag.scoring.recencyAlpha"
RESULTS = "rag.maxResults"
SPACE = space(
    rag__scoring__recencyAlpha=SHARE,
    rag__maxResults={"low": 1, "high": 8},
    rag__entityLane__enabled=None,
    rag__entityLane__seedCount={"low": 1, "high": 20},
)


@pytest.fixture(scope="module")
def recall():
    return MemoryRecall(Retriever(stale(6), cache=None), FTS)


@pytest.fixture
def what_if(recall):
    return WhatIf.of(recall, recall.retriever.dataset.queries[0], SPACE)


@pytest.mark.parametrize(
    "changes", [{}, {RECENCY: 1.0}, {RECENCY: 0.0, RESULTS: 8}, {"rag.entityLane.enabled": True}]
)
def test_the_answer_is_the_pipelines(recall, what_if, changes):
    asked = recall.retriever.dataset.queries[0]
    expected = MemoryRecall(recall.retriever, FTS.evolve(**changes)).recall(asked)
    told = what_if.ask(changes)
    assert [m.id for m in told.memories] == [m.id for m in expected.memories]
    assert told.explain().equals(expected.explain())


def test_recency_turns_the_stale_world_around(what_if):
    frame = what_if.explain({RECENCY: 1.0})
    before = {row.memory_id: row.place for row in what_if.explain().itertuples()}
    assert frame["moved"].abs().sum() > 0
    for row in frame.itertuples():
        assert row.was == before[row.memory_id]
        assert row.moved == row.was - row.place


def test_without_changes_nothing_moves(what_if):
    frame = what_if.explain()
    assert (frame["was"] == frame["place"]).all()
    assert (frame["moved"] == 0).all()
    assert "the current settings" in what_if.html()


def test_ranking_again_asks_no_lane(recall, what_if, monkeypatch):
    monkeypatch.setattr(Retriever, "_search", lambda *_: pytest.fail("a lane was asked"))
    monkeypatch.setattr(Candidates, "assemble", lambda *_: pytest.fail("a table was made"))
    what_if.ask({RECENCY: 0.7})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rag.scoring.recencyAlfa": 0.5}, "did you mean rag.scoring.recencyAlpha?"),
        ({"\x1b[2J": 0.5}, "␛[2J is no knob of the space; there are rag.scoring"),
        ({RECENCY: 1.5}, "rag.scoring.recencyAlpha: 1.5 is not a number in [0, 1]"),
        ({RESULTS: 9}, "rag.maxResults: 9 is not an integer in [1, 8]"),
    ],
)
def test_what_the_table_cannot_answer_is_refused(what_if, changes, told):
    with pytest.raises(ConfigError) as error:
        what_if.ask(changes)
    assert told in str(error.value)


def test_the_current_value_may_lie_outside_of_the_space(recall):
    narrow = space(rag__scoring__recencyAlpha={"low": 0.5, "high": 1})
    what_if = WhatIf.of(recall, recall.retriever.dataset.queries[0], narrow)
    assert what_if.ask({RECENCY: 0.2}).explain().equals(what_if.ask().explain())
    slider = what_if.sliders().children[0]
    assert (slider.min, slider.value, slider.max) == (0.2, 0.2, 1.0)
    with pytest.raises(ConfigError):
        what_if.ask({RECENCY: 0.3})


def test_sliders_show_the_ranking_at_once(what_if):
    box = what_if.sliders()
    recency, results, entity, seeds, ranking = box.children
    assert (recency.value, recency.min, recency.max) == (0.2, 0.0, 1.0)
    assert (results.value, results.min, results.max) == (5, 1, 8)
    assert entity.value is False
    assert seeds.value == 5
    assert ranking.value == what_if.html()
    recency.value = 1.0
    assert ranking.value == what_if.html({RECENCY: 1.0}) != what_if.html()
    results.value = 1
    assert ranking.value == what_if.html({RECENCY: 1.0, RESULTS: 1})
    recency.value, results.value = 0.2, 5
    assert ranking.value == what_if.html()


def test_a_slider_is_read_on_the_knobs_own_grid(what_if):
    recency, ranking = what_if.sliders([RECENCY]).children
    recency.value = 0.15000000000000002
    assert ranking.value == what_if.html({RECENCY: 0.15})


def test_settings_that_cannot_be_ranked_are_said_in_place_of_the_ranking(recall):
    narrow = space(rag__scoring__recencyAlpha={"low": 0.5, "high": 1})
    what_if = WhatIf.of(recall, recall.retriever.dataset.queries[0], narrow)
    recency, ranking = what_if.sliders().children
    recency.value = 0.3
    assert "These settings cannot be ranked" in ranking.value
    assert "0.3 is not a number in [0.5, 1]" in ranking.value
    recency.value = 0.6
    assert ranking.value == what_if.html({RECENCY: 0.6})


def test_an_unknown_slider_is_refused(what_if):
    with pytest.raises(ConfigError, match=r"did you mean rag\.maxResults"):
        what_if.sliders(["rag.maxResult"])


def test_without_ipywidgets_the_extra_is_named(what_if, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ConfigError, match=r"pip install 'comis_eval\[notebooks\]'"):
        what_if.sliders()


def test_the_default_space_is_the_datasets(recall):
    what_if = WhatIf.of(recall, recall.retriever.dataset.queries[0])
    assert RECENCY in what_if.values
    assert "rag.lanes.vector.weight" not in what_if.values, "keyword search alone"
