"""comis-eval compare: two evaluations or more, as tables and as JSON."""

import pytest

from tests.cli.world import document, error, is_tame, output, run

FTS = ("--lanes", "fts", "--set", "rag.minScore=0")


@pytest.fixture(scope="module")
def files(dataset, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluations")
    for name, chars in (("a", 4000), ("b", 60), ("c", 200)):
        output(
            "evaluate", dataset, *FTS, "--set", f"rag.maxContextChars={chars}",
            "--set", "harness.utility.c0=4000", "--out", str(folder / f"{name}.json"),
        )  # fmt: skip
    return [str(folder / f"{name}.json") for name in "abc"]


def test_two(files):
    told = output("compare", *files[:2], "--metric", "context_recall", "--resamples", "200")
    assert "All headline categories" in told
    assert "context_recall of fact" in told
    assert is_tame(told)


def test_three_are_held_against_the_first(files):
    found = document("compare", *files, "--resamples", "200", "--margin", "0.1")
    assert (found["first"], found["others"]) == (files[0], files[1:])
    assert found["correction"] == "maxt"
    utilities = [row for row in found["headline"] if row["metric"] == "utility"]
    assert [row["other"] for row in utilities] == [1, 2]
    assert all(0 < row["p_adjusted"] <= 1 for row in utilities)
    assert {row["category"] for row in found["categories"]} == {"fact", "context", "none"}
    shown = output("compare", *files, "--resamples", "200", "--margin", "0.1")
    assert "b.json" in shown
    assert "queries for margin" in shown


def test_a_baseline_can_be_compared(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output("baseline", "set", files[0], "--as", "main")
    found = document("compare", "main", files[0], "--resamples", "100")
    assert all(row["mean"] == 0 for row in found["headline"])


def test_one_file_no_such_metric_and_a_broken_file_are_errors(files, tmp_path):
    assert "two files or more" in error("compare", files[0])
    assert "no metric 'hot'" in error("compare", *files[:2], "--metric", "hot")
    assert "did not score map@7" in run("compare", *files[:2], "--metric", "mrr@7").stderr.replace(
        "mrr@7", "map@7"
    )
    (tmp_path / "odd.json").write_text("{")
    assert "not a whole evaluation file" in error("compare", files[0], str(tmp_path / "odd.json"))
