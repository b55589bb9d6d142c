"""The tables of an evaluation, its file, and what must stand out."""

import json

import pytest
from rich.console import Console

from comis_eval.cli.figures import HEADLINE, show_evaluation
from comis_eval.config import Config
from comis_eval.datasets import load_dataset
from comis_eval.evaluation import evaluate, read_evaluation
from comis_eval.pipelines.retrieval import Retriever
from tests.builders import memory
from tests.cli.world import (
    EXTERNAL,
    HOSTILE,
    MEMORIES,
    QUERIES,
    asked,
    document,
    error,
    is_tame,
    output,
    run,
    world,
)

FTS = ("--lanes", "fts")


def test_the_table_says_on_what_with_what_and_how_well(dataset):
    told = output("evaluate", dataset, *FTS, "--set", "rag.maxResults=3")
    fingerprint = load_dataset(dataset).fingerprint
    assert f"world 7  fingerprint {fingerprint[:12]}  split all" in told
    assert "4 queries: 3 scored, 1 unanswerable, 0 failed" in told
    assert "semantics documented" in told
    assert "gain linear" in told
    assert 'differs from the defaults: rag.maxResults=3, harness.lanes=["fts"]' in told
    for name in (*HEADLINE, "policy_leak", "resurrected", "over_block"):
        assert name in told
    for row in ("all ", "fact ", "context ", "none ", "rank_bm25 ", "random ", "oracle "):
        assert f"\n{row}" in told
    assert "unwanted memories (trust, scope, poison) after: search 1, fuse 1" in told
    assert "no vector reference: the lane is off" in told


def test_figures_are_those_of_the_evaluation(dataset):
    told = output("evaluate", dataset, *FTS)
    figures = document("evaluate", dataset, *FTS)["means"]["all"]
    line = next(line for line in told.split("\n") if line.startswith("all "))
    assert line.split()[1:] == [
        "3", *(f"{figures[name]['value']:.3f}" for name in (*HEADLINE, "judged@10"))
    ]  # fmt: skip


def test_undefined_is_a_dash(dataset):
    told = output("evaluate", dataset, *FTS)
    line = next(line for line in told.split("\n") if line.startswith("none "))
    assert line.split()[1:4] == ["0", "-", "-"]


def test_an_added_metric_has_a_column(dataset):
    told = output("evaluate", dataset, *FTS, "--metric", "recall@2")
    assert "recall@2" in told.split("\n\n")[1]


def test_an_unknown_metric_is_refused_before_anything_is_read():
    assert "there is no metric 'ndgc@10'; there are ndcg@k" in error(
        "evaluate", "nowhere", "--metric", "ndgc@10"
    )


def test_a_category_outside_the_headline_is_marked(tmp_path):
    folder = world(tmp_path, categories={"fact": True, "context": False, "none": True})
    assert "context (not in all)" in output("evaluate", folder, *FTS)


def test_long_categories_that_look_alike_keep_their_rows(tmp_path):
    queries = [asked("kiln", f"q{n}", category="x" * 60 + str(n), answerable=False) for n in (1, 2)]
    told = output("evaluate", world(tmp_path, queries=queries, judged={}), *FTS)
    figures = told.partition("The same memories")[0]
    assert figures.count(f"\n{'x' * 23}… ") == 2


def test_leaks_are_listed_with_the_stage_and_what_is_promised(dataset):
    told = output("evaluate", dataset, *FTS, "--set", "rag.includeTrustLevels=[learned,external]")
    assert "LEAKS" in told
    row = next(line for line in told.split("\n") if "kiln-web" in line)
    assert row.split() == ["q-hot", "kiln-web", "trust", "search", "yes"]


def test_only_the_first_leaks_are_listed(tmp_path):
    memories = [memory(f"m{n}", f"kiln {n}", trust_level=EXTERNAL) for n in range(12)]
    queries = [asked("kiln", "q", answerable=False)]
    folder = world(tmp_path, memories, queries, {})
    loose = ("--set", "rag.includeTrustLevels=[external]", "--set", "rag.maxResults=12")
    told = output("evaluate", folder, *FTS, *loose)
    assert "... and 2 more (all of them: --json or --out)" in told
    assert len(document("evaluate", folder, *FTS, *loose)["leaks"]) == 12


def test_dead_lanes_are_flagged(dataset):
    told = output("evaluate", dataset, "--lanes", "fts,temporal,causal")
    assert "DEAD, nothing for any query: memories have no occurredAt" in told
    assert "DEAD, nothing for any query: links.jsonl is not there" in told


def test_a_lane_that_recall_as_a_whole_turned_off_is_flagged(dataset):
    told = output("evaluate", dataset, *FTS, "--set", "rag.enabled=false")
    assert "DID NOT RUN: rag.enabled is false" in told


def test_a_reference_that_does_better_is_named(tmp_path):
    queries = [asked("when was the kiln bought in spring?", "q")]
    folder = world(tmp_path, queries=queries, judged={("q", "kiln-old"): 3})
    plain = output("evaluate", folder, *FTS, "--set", "rag.scoring.recencyAlpha=0")
    assert "reference fts ranks better" not in plain
    boosted = output("evaluate", folder, *FTS, "--set", "rag.scoring.recencyAlpha=1")
    assert "reference fts ranks better: ndcg@10 1.000 against 0." in boosted
    assert "headroom: the best order of what the lanes found has ndcg@10 1.000" in boosted


def test_the_file_reads_back_and_its_trace_stands_beside_it(dataset, tmp_path):
    out = tmp_path / "run.json"
    result = run("evaluate", dataset, *FTS, "--out", str(out), "--json")
    assert result.exit_code == 0
    assert f"written: {out}" in result.stderr
    printed = json.loads(result.stdout)
    assert {**json.loads(out.read_text()), "trace": None} == printed
    assert read_evaluation(out).dataset["name"] == "world"
    assert (tmp_path / "run.trace.parquet").is_file()


def test_a_folder_that_is_not_there_is_refused_before_the_work(tmp_path):
    told = error("evaluate", "nowhere", "--out", str(tmp_path / "no" / "run.json"))
    assert "there is no folder" in told


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_figure_is_there_whatever_the_width(dataset, width):
    labelled = load_dataset(dataset)
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    evaluation = evaluate(labelled, config, retriever=Retriever(labelled, cache=None))
    out = Console(width=width, markup=False, highlight=False, emoji=False, record=True, quiet=False)
    with out.capture() as captured:
        show_evaluation(evaluation, config, added=(), out=out)
    lines = captured.get().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("Figures"))
    table = "\n".join(lines[start:])
    assert all(name in table for name in HEADLINE)
    rows = [line for line in lines[start:] if line.startswith("all ")]
    assert all(len(line.rstrip()) <= width for line in rows)
    assert sum(line.count("1.000") for line in rows) > 0


def test_hostile_names_are_shown_not_obeyed(tmp_path):
    memories = (*MEMORIES, memory("m[/]", HOSTILE + "2", trust_level=EXTERNAL))
    queries = (
        *QUERIES,
        asked("kiln", "q[red]", category="[red]\x9b31m\u202e", answerable=False),
    )
    folder = world(tmp_path, memories, queries)
    told = output("evaluate", folder, *FTS, "--set", "rag.includeTrustLevels=[learned,external]")
    assert is_tame(told)
    assert "q[red]" in told
    assert "m[/]" in told
    assert "[red]\\u{9b}31m\\u{202e}" in told


def test_no_color_and_pipes_get_plain_text(dataset):
    assert "\x1b" not in output("evaluate", dataset, *FTS)


def test_the_recall_tool_is_evaluated_too(dataset):
    told = document("evaluate", dataset, "--lanes", "fts", "--pipeline", "recall-tool")
    assert (told["pipeline"], told["enforces"]) == ("recall-tool", ["scope"])
    settings = ("--set", "harness.recallTool.armDepth=1")
    narrow = document("evaluate", dataset, "--lanes", "fts", "--pipeline", "recall-tool", *settings)
    assert narrow["config"]["harness"]["recallTool"]["armDepth"] == 1
