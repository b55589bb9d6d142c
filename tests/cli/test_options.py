"""What the shared options make of a configuration."""

import pytest

from comis_eval.cli.options import Options, lane_settings
from comis_eval.errors import ConfigError
from tests.cli.world import document, error


def test_lanes_turn_exactly_those_named_on():
    config = Options(
        lanes="entity, fts", overrides=("rag.lanes.temporal.enabled=true",)
    ).configuration()
    assert config.harness.lanes == ("fts",)
    assert config.rag.entity_lane.enabled
    assert not config.rag.lanes.temporal.enabled
    assert not config.rag.lanes.causal.enabled


def test_search_lanes_stand_in_their_own_order():
    assert lane_settings("vector,fts")["harness.lanes"] == ("fts", "vector")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("fts,vektor", "no lane 'vektor'; there are fts, vector, entity, temporal, causal"),
        ("", "no lane ''; there are fts"),
        ("fts,fts", "fts,fts names a lane twice"),
        ("entity,causal", "entity, causal starts from the hits of fts or vector; name one too"),
        ("\x1b[2J", "no lane '␛\\[2J'"),
    ],
)
def test_lanes_that_cannot_run_are_refused(names, told):
    with pytest.raises(ConfigError, match=told):
        lane_settings(names)


def test_every_source_of_a_setting_reaches_the_configuration(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("agents: {one: {rag: {maxResults: 3}}, two: {rag: {maxResults: 4}}}")
    config = Options(
        config=file,
        agent="two",
        overrides=("rag.minScore=0",),
        semantics="production",
        embedder="some/folder",
    ).configuration()
    assert config.rag.max_results == 4
    assert config.rag.min_score == 0
    assert config.semantics.dedup_keep == "newest"
    assert config.harness.embedder == "some/folder"


def test_another_file_takes_the_same_changes(tmp_path):
    file = tmp_path / "other.yaml"
    file.write_text("rag: {maxResults: 9}")
    config = Options(overrides=("rag.minScore=0",)).configuration(file)
    assert (config.rag.max_results, config.rag.min_score) == (9, 0)


def test_an_unknown_pipeline_lists_the_known(dataset):
    told = error("evaluate", dataset, "--pipeline", "rag")
    assert "'rag' is not one of 'memory-recall', 'recall-tool'" in told
    assert "'rag' is not one of" in error("plan", dataset, "--margin", "1", "--pipeline", "rag")


def test_a_missing_model_is_an_error_that_says_what_to_name(dataset, tmp_path):
    told = error("evaluate", dataset, "--embedder", str(tmp_path / "nowhere"))
    assert "is neither minilm nor a folder" in told


def test_a_split_keeps_its_queries_alone(dataset):
    told = document("evaluate", dataset, "--lanes", "fts", "--split", "tune", "--seed", "3")
    assert told["dataset"]["split"] == "tune"
    assert 0 < told["counts"]["queries"] < 4
