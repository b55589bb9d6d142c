"""What two configurations do differently, told without labels."""

import pytest

from tests.cli.world import document, error, output

FTS = ("--lanes", "fts")


@pytest.fixture
def files(tmp_path):
    a, b = tmp_path / "a.yaml", tmp_path / "b.yaml"
    a.write_text("rag: {}\n")
    b.write_text("rag: {maxResults: 1}\n")
    return str(a), str(b)


def test_diff_says_what_changed_where_and_for_which_queries(dataset, files):
    told = output("diff", dataset, *files, *FTS)
    assert "rag.maxResults  5      1" in told
    assert "of 4 contexts change" in told
    assert "budget" in told
    assert "Who moved" in told
    assert "Queries that change most" in told


def test_diff_as_json(dataset, files):
    found = document("diff", dataset, *files, *FTS)
    assert found["queries"] == 4
    assert found["changed_share"] == sum(q["changed"] for q in found["worst"]) / 4
    assert found["partings"]["budget"] == sum(q["changed"] for q in found["worst"])
    overlaps = [query["overlap"] for query in found["worst"]]
    assert overlaps == sorted(overlaps)


def test_the_limit_says_how_many_more(dataset, files):
    assert "more (--limit, or --json)" in output("diff", dataset, *files, *FTS, "--limit", "1")


def test_equal_configurations_make_no_difference(dataset, files):
    told = output("diff", dataset, files[0], files[0], *FTS)
    assert "the two configurations are the same" in told
    assert "0 of 4 contexts change (0.000)" in told
    assert "no query parts at any stage" in told


def test_a_missing_file_is_one_line(dataset, files):
    assert "does not exist" in error("diff", dataset, files[0], "nowhere.yaml")
