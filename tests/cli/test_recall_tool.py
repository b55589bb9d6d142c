"""Every command on the recall tool, as a user runs it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from comis_eval.cli import main
from comis_eval.config import Config
from comis_eval.config_file import load_config
from comis_eval.datasets import write_dataset
from comis_eval.pipelines.recall_tool import RecallTool
from comis_eval.pipelines.retrieval import Retriever
from tests.cli.world import document, error, is_tame, output, run
from tests.tuning.test_tool_replay import SHELF

TOOL = ("--pipeline", "recall-tool", "--lanes", "fts")
STUDY = Path("experiments") / "studies"
SPACE = """knobs:
  harness.recallTool.fusion.k: {low: 1, high: 200, log: true}
  harness.recallTool.minImportance: {low: 0, high: 1, step: 0.25}
  harness.recallTool.profiles.factual.orderBy: {choices: [null, "relevance:desc"]}
  harness.recallTool.graph.enabled:
  harness.recallTool.graph.share: {low: 0, high: 1}
"""


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    place = tmp_path_factory.mktemp("tool")
    queries = tuple(
        replace(asked, group=asked.id.partition("-")[0], category="c") for asked in SHELF.queries
    )
    write_dataset(
        replace(SHELF, queries=queries, licence="CC0-1.0", version="1", judged_by="nobody"),
        place / "shelf",
    )
    (place / "space.yaml").write_text(SPACE)
    return place


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def sweep(shelf):
    def words(*more, trials=6):
        return [
            "sweep", str(shelf / "shelf"), *TOOL, "--trials", str(trials), "--no-track", "--space",
            str(shelf / "space.yaml"), "--sampler", "random", "--study", "mine", *more,
        ]  # fmt: skip

    return words


# --- sweep ----------------------------------------------------------------------------------


def test_a_sweep_runs_to_its_end_and_exports_what_it_searched(sweep, here):
    told = output(*sweep())
    assert "study mine: utility on shelf " in told
    assert "6 of 6 trials" in told
    assert "harness.recallTool.minImportance" in told
    assert "Held out: every query, answered by a search that never saw it" in told
    assert is_tame(told)
    found = json.loads((STUDY / "mine" / "result.json").read_text())
    assert found["pipeline"] == "recall-tool"
    assert sorted(p.name for p in (STUDY / "mine").iterdir() if p.suffix == ".yaml") == [
        "recall-tool.yaml"
    ]
    (here / "advice.yaml").write_text(output("config", "export", "mine"))
    advised = load_config(here / "advice.yaml").harness.recall_tool
    assert advised in (Config().harness.recall_tool, _of(found["winner"]["values"]))
    (here / "trial.yaml").write_text(output("config", "export", "mine", "--trial", "1"))
    trial = load_config(here / "trial.yaml").harness.recall_tool
    points = _points(STUDY / "mine" / "trials.parquet")
    assert trial == _of(points[1])


def _of(values):
    return Config().evolve(**values).harness.recall_tool


def _points(path):
    import pyarrow.parquet as pq

    rows = pq.read_table(path, columns=["number", "params"]).to_pylist()
    return {row["number"]: json.loads(row["params"]) for row in rows}


def test_a_study_goes_on_and_ends_as_it_would_have(sweep, tmp_path, monkeypatch):
    whole = document(*sweep(trials=8))
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    output(*sweep("--no-confirm", trials=3))
    resumed = document(*sweep("--resume", trials=8))
    assert resumed == whole


def test_another_pipeline_is_another_study(sweep, shelf):
    output(*sweep("--no-confirm", trials=2))
    given = [
        word for word in sweep("--resume") if word not in (str(shelf / "space.yaml"), "--space")
    ]
    given[given.index("recall-tool")] = "memory-recall"
    assert 'pipeline was "recall-tool", is "memory-recall"' in error(*given)


def test_knobs_of_the_other_pipeline_are_refused(sweep, shelf, here):
    (here / "both.yaml").write_text(SPACE + "  rag.maxResults: {low: 1, high: 8}\n")
    given = sweep()
    given[given.index(str(shelf / "space.yaml"))] = "both.yaml"
    assert "rag.maxResults: does nothing for recall-tool" in error(*given)
    given[given.index("recall-tool")] = "memory-recall"
    assert "harness.recallTool.fusion.k" in error(*given)
    assert not STUDY.exists()


@pytest.mark.parametrize(
    ("knob", "message"),
    [
        ("harness.recallTool.indexTags:", "never searched: it changes what is searched"),
        ("harness.recallTool.defaultExpiry:", "never searched: it changes which memories"),
        ("harness.recallTool.rerankScope:", "never searched: a search must not make pages"),
        ("harness.recallTool.fusion.textWeight: {low: 0, high: 1}", "only the ratio of the arms"),
        ("harness.recallTool.minImportance: {low: 0, high: 1}", "needs a step, such as 0.05"),
        ("harness.recallTool.fusion.vectorWeight: {low: 0.1, high: 1}", "without the vector arm"),
        ("harness.recallTool.graph.share: {low: 0, high: 1}", "does nothing while"),
        ("harness.recallTool.scope: {choices: [all, agent]}", "unknown key"),
        ("harness.recallTool.tags: {choices: [a, b]}", "unknown key"),
    ],
)
def test_what_is_never_searched_is_refused_before_the_first_trial(
    sweep, shelf, here, knob, message
):
    (here / "one.yaml").write_text(f"knobs:\n  {knob}\n")
    given = sweep()
    given[given.index(str(shelf / "space.yaml"))] = "one.yaml"
    assert message in error(*given)
    assert not STUDY.exists()


def test_several_processes_search_the_same_tables(sweep):
    told = document(*sweep("--workers", "2", "--storage", "journal:shared.log", "--no-confirm"))
    assert told["counts"]["run"] >= 6
    assert told["counts"]["failed"] == 0


def test_a_study_of_the_tool_has_a_report(sweep, here):
    output(*sweep("--no-confirm"))
    output("report", str(STUDY / "mine"), "--out", "study.html")
    page = (here / "study.html").read_text()
    assert "harness.recallTool.fusion.k" in page


# --- recall ---------------------------------------------------------------------------------


def test_a_call_is_told_stage_by_stage(shelf):
    told = output(
        "recall", str(shelf / "shelf"), "kiln clay", *TOOL,
        "--parameter", "limit=2", "--parameter", "tags_any=[even]",
    )  # fmt: skip
    parts = [
        "query asked: kiln clay", "0 call:", "limit: 2", "1 formulate", "2 search: fts, ",
        "3 fuse: score is the share", "4 gate: passes", "5 list: ", "6 answer: ",
        '"next_offset"', "Every candidate: ",
    ]  # fmt: skip
    places = [told.find(part) for part in parts]
    assert -1 not in places, dict(zip(parts, places, strict=True))
    assert places == sorted(places)
    assert is_tame(told)


def test_the_json_of_a_call_is_what_the_tool_answers(shelf):
    found = document("recall", str(shelf / "shelf"), "--query-id", "q0-1", *TOOL)
    config = Config().evolve(**{"harness.lanes": ("fts",)})
    query = SHELF.queries[1]
    assert found["answer"] == RecallTool(Retriever(SHELF, cache=None), config).recall(query)
    assert found["call"]["limit"] == 3
    placed = [c for c in found["candidates"] if c["fate"] == "included"]
    assert len(placed) == found["answer"]["total"] == len(found["context"])
    assert all(c["why"].startswith("place ") for c in placed)


def test_every_candidate_off_the_page_has_its_reason(shelf):
    def whys(*parameters):
        given = [word for p in parameters for word in ("--parameter", p)]
        found = document("recall", str(shelf / "shelf"), "kiln clay", *TOOL, *given)
        return {c["why"].partition(" ")[0] for c in found["candidates"]}, found

    assert whys("limit=1")[0] == {"place"}
    assert any("the page is 1 to 1" in c["why"] for c in whys("limit=1")[1]["candidates"])
    assert "relevance" in whys("relevance_min=0.99")[0]
    config = ("--set", "harness.recallTool.gate.floor=1")
    withheld = document("recall", str(shelf / "shelf"), "kiln clay", *TOOL, *config)
    if withheld["withheld"]:
        assert {c["why"].partition(":")[0] for c in withheld["candidates"]} == {"withheld"}


def test_two_configurations_part_at_a_stage(shelf, here):
    (here / "b.yaml").write_text("harness: {recallTool: {minImportance: 0.9}}\n")
    told = document("recall", str(shelf / "shelf"), "kiln clay", *TOOL, "--against", "b.yaml")
    assert told["parting"]["stage"] == "search"
    assert "first parts at search" in output(
        "recall", str(shelf / "shelf"), "kiln clay", *TOOL, "--against", "b.yaml"
    )


def test_what_belongs_to_the_other_pipeline_is_refused(shelf):
    place = str(shelf / "shelf")
    assert "--turn is of memory-recall" in error("recall", place, "kiln", *TOOL, "--turn", "a")
    assert "--parameter is of the recall tool" in error(
        "recall", place, "kiln", "--parameter", "limit=3"
    )
    assert "limit is 51; it must be an integer in [1, 50]" in error(
        "recall", place, "kiln", *TOOL, "--parameter", "limit=51"
    )
    assert "is not NAME=VALUE" in error("recall", place, "kiln", *TOOL, "--parameter", "limit")
    assert "given twice" in error(
        "recall", place, "kiln", *TOOL, "--parameter", "limit=1", "--parameter", "limit=2"
    )
    assert "is no argument" in error("recall", place, "kiln", *TOOL, "--parameter", "\x1b[2Jk=1")
    told = error("recall", place, "--query-id", "q0-0", *TOOL, "--parameter", "limit=1")
    assert "leave out --parameter" in told


# --- diff, ablate, plan, compare --------------------------------------------------------------


def test_diff_compares_two_settings_of_the_tool(shelf, here):
    (here / "a.yaml").write_text("rag: {}\n")
    (here / "b.yaml").write_text("harness: {recallTool: {band: 0}}\n")
    (here / "c.yaml").write_text("rag: {maxResults: 1, minScore: 0.9}\n")
    found = document("diff", str(shelf / "shelf"), "a.yaml", "b.yaml", *TOOL)
    assert found["queries"] == len(SHELF.queries)
    assert found["changed_share"] > 0
    same = document("diff", str(shelf / "shelf"), "a.yaml", "c.yaml", *TOOL)
    assert same["changed_share"] == 0  # rag is the other pipeline's
    assert same["partings"] == {}


def test_diff_tells_pages_that_hold_the_same_rows_in_other_words(shelf, here):
    (here / "a.yaml").write_text("rag: {}\n")
    (here / "b.yaml").write_text("harness: {recallTool: {fusion: {k: 7}}}\n")
    (here / "c.yaml").write_text("semantics: {lineFormat: short}\n")
    k = document("diff", str(shelf / "shelf"), "a.yaml", "b.yaml", *TOOL)
    assert k["partings"].get("present", 0) > 0  # scores are shown, and have other lengths
    lines = document("diff", str(shelf / "shelf"), "a.yaml", "c.yaml", *TOOL)
    assert lines["partings"] == {}


def test_ablate_and_plan_change_the_tools_own_things(shelf):
    found = document("ablate", str(shelf / "shelf"), *TOOL)
    names = {effect["name"] for effect in found["effects"]}
    assert names == {
        "harness.recallTool.defaultExpiry", "harness.recallTool.indexTags",
        "harness.recallTool.relevanceSource", "harness.recallTool.rerankScope", "bands",
        "importance threshold", "multiSession preset", "factual preset",
    }  # fmt: skip
    assert found["pipeline"] == "recall-tool"
    assert all(effect["leaking"] == 0 for effect in found["effects"])
    assert found["not_ablated"] == [
        "fts arm: the only one",
        "off already: vector arm, gate on noise, gate on score, graph",
    ]
    planned = document("plan", str(shelf / "shelf"), *TOOL, "--margin", "0.05")
    assert {need["change"].partition(":")[0] for need in planned["needs"]} <= names


def test_both_pipelines_are_compared_on_one_set(shelf):
    for name in ("recall-tool", "memory-recall"):
        output(
            "evaluate", str(shelf / "shelf"), "--pipeline", name, "--lanes", "fts",
            "--out", f"{name}.json",
        )  # fmt: skip
    told = output("compare", "memory-recall.json", "recall-tool.json")
    assert "ndcg@10" in told
    output("report", "recall-tool.json", "--dataset", str(shelf / "shelf"), "--out", "t.html")
    assert "recall-tool" in Path("t.html").read_text()


def test_the_gate_passes_what_is_the_same_and_blocks_what_is_worse(shelf):
    def measured(name, *more):
        output("evaluate", str(shelf / "shelf"), *TOOL, "--out", name, *more)

    measured("base.json")
    output("baseline", "set", "base.json", "--as", "tool")
    same = document("gate", "tool", "base.json")
    assert same["outcome"] == "pass"
    told = {check["name"]: check["outcome"] for check in same["checks"]}
    assert told["scope leaks"] == "ok"  # promised
    assert told["trust leaks"] == "ok"  # not promised: external rows are in both
    measured("worse.json", "--set", "harness.recallTool.gate.floor=1", "--set",
             "harness.recallTool.minImportance=1")  # fmt: skip
    worse = run("gate", "tool", "worse.json", "--json")
    assert json.loads(worse.stdout)["outcome"] != "pass"
    assert worse.exit_code not in (0, 2)


def test_help_names_the_pipeline():
    for command in ("sweep", "recall", "diff", "ablate", "plan", "evaluate"):
        assert "--pipeline" in output(command, "--help")
    assert main.name
    assert run("sweep", "x", "--pipeline", "oracle").exit_code == 2
