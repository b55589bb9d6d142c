"""comis-eval plan: how many queries would decide."""

from tests.cli.world import document, error, is_tame, output

FTS = ("--lanes", "fts", "--set", "rag.minScore=0", "--set", "rag.scoring.recencyAlpha=1")


def test_it_says_how_many_queries_each_change_would_take(dataset):
    told = output("plan", dataset, *FTS, "--margin", "0.05")
    assert "to show a loss of 0.05 in utility with 80% power" in told
    assert "at hand: 4 queries in 4 groups" in told
    assert is_tame(told)
    found = document("plan", dataset, *FTS, "--margin", "0.05")
    assert found["margin"] == 0.05
    assert found["most_queries"] == max(need["queries"] for need in found["needs"])
    half = document("plan", dataset, *FTS, "--margin", "0.025")
    assert half["most_queries"] > 3 * found["most_queries"]


def test_a_margin_is_needed_and_must_be_one(dataset):
    assert "--margin" in error("plan", dataset, *FTS)
    assert "--margin" in error("plan", dataset, *FTS, "--margin", "0")
    assert "margin must be finite" in error("plan", dataset, *FTS, "--margin", "nan")


def test_what_nothing_moves_cannot_be_planned(dataset):
    told = error("plan", dataset, *FTS, "--margin", "0.1", "--metric", "stale@5")
    assert "no change moved the metric" in told
