"""A sweep as a user runs it, and MLflow read back."""

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from comis_eval.cli import main
from comis_eval.config_file import load_config
from comis_eval.datasets import write_dataset
from comis_eval.errors import CoverageError
from comis_eval.tracking import Tracker
from comis_eval.tracking.place import place_of
from comis_eval.tracking.writer import ENVIRONMENT
from comis_eval.tuning.replay import Replay
from tests.cli.world import HOSTILE, document, error, is_tame, output, run
from tests.tracking.conftest import imported
from tests.tuning.worlds import stale

SPACE = """knobs:
  rag.scoring.recencyAlpha: {low: 0, high: 1}
  rag.maxResults: {low: 1, high: 8}
"""
STUDY = Path("experiments") / "studies"


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A dataset that keyword search alone can answer, and a space; tests only read them."""
    place = tmp_path_factory.mktemp("sweep")
    queries = tuple(
        replace(asked, category=HOSTILE if asked.category == "newer" else "new")
        for asked in stale(12).queries
    )
    write_dataset(
        replace(stale(12), queries=queries, licence="CC0-1.0", version="7", judged_by="nobody"),
        place / "stale",
    )
    (place / "space.yaml").write_text(SPACE)
    return place


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def command(data):
    """A sweep of few trials without models and, unless told otherwise, without MLflow."""

    def words(*more, trials=6, track=False, space="space.yaml"):
        given = ["sweep", str(data / "stale"), "--lanes", "fts", "--trials", str(trials)]
        given += ["--space", str(data / space), "--sampler", "random"]
        return [*given, *([] if track else ["--no-track"]), *more]

    return words


# --- what is printed ----------------------------------------------------------------------


def test_a_sweep_says_what_it_found_what_to_do_and_where_it_is(command):
    result = run(*command())
    told = result.stdout
    assert result.exit_code == 0
    assert result.stderr == ""  # no progress where there is no terminal
    assert told.startswith("study stale-1: utility on stale ")
    assert "6 of 6 trials: 6 distinct, 0 repeated, 0 infeasible, 0 failed\n" in told
    for part in (
        "rag.scoring.recencyAlpha", "makes no difference within", "by luck alone the best of 6",
        "24 scored, 0 unanswerable, 0 failed; in use: config ", "k0 5, c0 4000\n",
        "On the whole dataset, which the search has seen, beside plain rankings", "rank_bm25",
        "Held out: every query, answered by a search that never saw it", "gain in utility +",
        "utility by category", "study folder: experiments/studies/stale-1\n",
        "comis-eval config export stale-1\n",
        "optuna-dashboard experiments/studies/stale-1/optuna.journal\n",
    ):  # fmt: skip
        assert part in told
    assert "MLflow:" not in told
    assert sorted(path.name for path in (STUDY / "stale-1").iterdir()) == [
        "figures", *(f"fold-{n}.jsonl" for n in range(5)), "optuna.journal", "rag.yaml",
        "result.json", "study.jsonl", "trials.parquet",
    ]  # fmt: skip
    assert list((STUDY / "stale-1" / "figures").glob("*.svg"))


def test_hostile_categories_cannot_steer_a_terminal(command):
    told = output(*command(trials=3))
    assert is_tame(told)
    assert "[bold red]no[/]" in told.replace("\n", "")


def test_json_is_the_result_and_nothing_else(command):
    told = document(*command("--study", "mine"))
    assert told == json.loads((STUDY / "mine" / "result.json").read_text())
    assert told["study"] == "mine"
    assert told["counts"]["run"] == 6


def test_each_study_takes_a_name_that_is_free(command):
    for _ in range(2):
        output(*command("--no-confirm", trials=2))
    assert sorted(path.name for path in STUDY.iterdir()) == ["stale-1", "stale-2"]


def test_a_study_can_lie_elsewhere(command, here):
    told = output(*command("--no-confirm", "--out", "my study", trials=2))
    assert "comis-eval config export 'my study'\n" in told
    assert yaml.safe_load(output("config", "export", "my study")) is not None
    assert not STUDY.exists()


def test_several_objectives_print_their_front(command):
    told = output(*command("--objective", "ndcg@10", "--objective", "context_chars", trials=12))
    assert "The front: no trial is better on every objective" in told
    assert "Held out" not in told
    assert "No change is justified" not in told
    assert "confirm the choice by a sweep with one objective" in told


def test_earlier_looks_at_the_dataset_are_told(command):
    assert "were held out" not in output(*command(trials=2))
    told = output(*command(trials=2))
    assert "queries of this dataset were held out 1 times before" in told
    assert len(Path("experiments/ledger.jsonl").read_text().splitlines()) == 2


def test_progress_is_shown_on_a_terminal_alone(command, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    main(command(trials=3), standalone_mode=False)
    printed = capsys.readouterr()
    assert "trials, best 0." in printed.err
    assert "searching without part 5" in printed.err
    assert printed.out.startswith("study stale-1")
    assert "searching without" not in printed.out


# --- going on -----------------------------------------------------------------------------


def test_a_study_goes_on_under_its_name(command):
    mine = ("--study", "mine", "--json")
    output(*command(*mine, trials=4))
    resumed = json.loads(output(*command(*mine, "--resume", trials=7)))
    assert resumed["counts"]["run"] == 7
    again = json.loads(output(*command(*mine, "--resume", trials=0)))
    assert again == resumed
    whole = json.loads(output(*command("--study", "whole", "--json", trials=7)))
    assert {**whole, "study": "mine", "confirmation": None} == {**resumed, "confirmation": None}
    assert whole["confirmation"] | {"opened_before": 0} == resumed["confirmation"]


def test_a_study_in_a_storage_goes_on_without_its_journal(command):
    shared = ("--study", "mine", "--storage", "journal:s.log", "--no-confirm", "--json")
    output(*command(*shared, trials=3))
    assert not (STUDY / "mine" / "study.jsonl").exists()
    assert json.loads(output(*command(*shared, "--resume", trials=5)))["counts"]["run"] == 5


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--objective", "nonsense"], "nonsense"),
        (["--objective", "ndcg@0"], "ndcg@0"),
        (["--sampler", "cmaes"], "'cmaes' is not one of"),
        (["--study", "../x"], "--study: '../x' is no name"),
        (["--study", "\x1b[31m"], "is no name"),
        (["--resume"], "say --study NAME"),
        (["--resume", "--study", "gone"], "gone: there is no study to go on with"),
        (["--trials", "0"], "a study needs at least one trial, got 0"),
        (["--trials", "-1"], "-1 is not in the range"),
        (["--workers", "2"], "give --storage journal:FILE"),
        (["--log-trials", "best"], "all, top:N with N >= 1, or none; got 'best'"),
        (["--set", "rag.maxResults=0"], "rag.maxResults"),
    ],
    ids=lambda value: " ".join(value).encode("unicode_escape").decode()[:24],
)
def test_what_cannot_work_is_refused_before_anything_is_made(command, more, why):
    told = error(*command(*more))
    assert why in told
    assert is_tame(told)
    assert not Path("experiments").exists()
    assert not Path("cache").exists()


@pytest.mark.parametrize(
    ("knob", "why"),
    [
        ("rag.minScore: {low: 0, high: 2}", "high is 2, but the setting takes a number in [0, 1]"),
        ("rag.maxResults: {low: 0, high: 9}", "low is 0"),
        ("rag.nonsense: {low: 0, high: 1}", "rag.nonsense"),
        ("rag.includeTrustLevels: {choices: [[system], [external]]}", "is never searched"),
        ("rag.rerank.maxCandidates: {low: 5, high: 9}", "while rag.rerank.enabled is false"),
        ("? [a]\n  : {low: 0}", ""),
    ],
    ids=lambda value: value[:24],
)
def test_a_space_that_cannot_be_searched_is_refused_before_the_first_trial(
    command, here, knob, why
):
    (here / "bad.yaml").write_text(f"knobs:\n  {knob}\n")
    told = error(*command("--space", str(here / "bad.yaml")))
    assert why in told
    assert not Path("experiments").exists()


@pytest.mark.parametrize("uri", ["file:./mlruns", "nonsense", "sqlite:///space.yaml"])
def test_a_place_that_cannot_be_logged_to_is_refused_before_the_search(command, here, uri):
    (here / "space.yaml").write_text("not a database, " * 100)
    error(*command("--tracking-uri", uri, track=True))
    assert not Path("experiments").exists()


def test_a_study_that_is_there_is_not_overwritten(command):
    output(*command("--study", "mine", "--no-confirm", trials=2))
    before = (STUDY / "mine" / "study.jsonl").read_bytes()
    told = error(*command("--study", "mine", "--no-confirm", trials=2))
    assert "the study is there already; go on with --resume, or take another --study" in told
    told = error(*command("--study", "mine", "--resume", "--seed", "1"))
    assert "is another study, so it cannot be resumed: " in told
    assert (STUDY / "mine" / "study.jsonl").read_bytes() == before


# --- export -------------------------------------------------------------------------------


def test_the_advice_and_any_trial_can_be_exported(command, here):
    told = document(*command("--study", "mine"))
    text = output("config", "export", "mine")
    assert text == (STUDY / "mine" / "rag.yaml").read_text()
    assert text.startswith(f"# study mine, dataset stale {told['dataset']['fingerprint'][:12]}")
    trial = output("config", "export", "mine", "--trial", str(told["best"]["number"]))
    assert trial.startswith(f"# study mine, trial {told['best']['number']}: not confirmed\n")
    (here / "rag.yaml").write_text(trial)
    best = load_config(here / "rag.yaml").rag
    assert best.max_results == told["best"]["values"]["rag.maxResults"]
    for words, why in (
        (["mine", "--trial", "99"], "there is no trial 99; there are 0 to 5"),
        (["gone"], "gone: there is no such study; `comis-eval sweep` makes one"),
        (["\x1b[2J"], "there is no such study"),
    ):
        told = error("config", "export", *words)
        assert why in told
        assert is_tame(told)


# --- MLflow -------------------------------------------------------------------------------


@pytest.fixture
def client(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def opened(uri):
        return imported().MlflowClient(tracking_uri=place_of(uri).uri)

    return opened


def runs_of(client):
    """The parent runs and their children."""
    (experiment,) = client.search_experiments(filter_string="name = 'comis_eval'")
    found = client.search_runs([experiment.experiment_id])
    parents = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    return parents, [run for run in found if run not in parents]


def test_a_sweep_is_one_parent_run_and_a_child_a_trial(command, client):
    told = json.loads(output(*command("--study", "mine", "--json", track=True)))
    logged = client("sqlite:///experiments/mlflow.db")
    (parent,), children = runs_of(logged)
    assert len(children) == told["counts"]["planned"] == told["counts"]["run"] == 6
    tags = parent.data.tags
    assert (tags["comis_eval.planned"], tags["comis_eval.logged"]) == ("6", "6")
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    assert {run.info.status for run in (parent, *children)} == {"FINISHED"}
    assert tags["comis_eval.semantics"] == "documented"
    assert tags["comis_eval.decision"] == told["decision"]["outcome"]
    assert {"version.optuna", "version.comis_eval"} <= set(tags)
    (given,) = parent.inputs.dataset_inputs
    assert told["dataset"]["fingerprint"].startswith(given.dataset.digest[:32])

    best = next(
        run for run in children if run.info.run_name == f"trial-{told['best']['number']:05d}"
    )
    values = told["best"]["values"]
    assert best.data.params == {path: str(value) for path, value in values.items()}
    assert best.data.metrics["recall_at_5"] == told["best"]["figures"]["recall@5"]
    assert best.data.metrics["utility"] == told["best"]["figures"]["utility"]
    assert parent.data.metrics["held_out.gain"] == told["confirmation"]["mean"]

    names = {entry.path for entry in logged.list_artifacts(parent.info.run_id)}
    assert {"trials.parquet", "rag.yaml", "result.json", "study.jsonl", "figures"} <= names
    files = [path for path in Path("experiments").rglob("*") if path.is_file()]
    everything = b"".join(path.read_bytes() for path in files)
    assert b"w0x1 " not in everything  # no text of a memory leaves the dataset


def test_a_tracking_failure_loses_nothing_and_is_made_up_for(command, client, monkeypatch):
    with socket.socket() as taken:  # bound and never listened on: whoever connects is refused
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        monkeypatch.setattr(Tracker, "open", lambda uri: Tracker(place_of(uri), backoff=(0.0,)))
        result = run(*command("--study", "mine", "--json", "--tracking-uri", dead, track=True))
    assert result.exit_code == 5
    told = json.loads(result.stdout)
    assert told == json.loads((STUDY / "mine" / "result.json").read_text())
    assert result.stderr.startswith("comis-eval: mine: 6 of 6 runs are not in MLflow at http://")
    remedy = "The results are saved; log what is missing with: the same command with --study mine"
    assert f"{remedy} --resume --trials 0" in result.stderr

    place = ("--study", "mine", "--json", "--tracking-uri", "sqlite:///later.db")
    again = json.loads(output(*command(*place, "--resume", trials=0, track=True)))
    assert again == told
    (parent,), children = runs_of(client("sqlite:///later.db"))
    assert len(children) == 6
    assert parent.info.status == "FINISHED"


@pytest.mark.slow
def test_text_leaves_the_machine_only_when_told_to(command, client, data):
    place = ("--study", "mine", "--tracking-uri", "sqlite:///m.db", "--no-confirm", "--with-text")
    output(*command(*place, trials=2, track=True))
    logged = client("sqlite:///m.db")
    (parent,), _ = runs_of(logged)
    names = {entry.path for entry in logged.list_artifacts(parent.info.run_id, "dataset")}
    assert names == {f"dataset/{path.name}" for path in (data / "stale").iterdir()}
    fetched = logged.download_artifacts(parent.info.run_id, "dataset/memories.jsonl")
    assert Path(fetched).read_bytes() == (data / "stale" / "memories.jsonl").read_bytes()


@pytest.mark.slow
def test_going_on_adds_to_the_same_parent_run(command, client):
    place = ("--study", "mine", "--tracking-uri", "sqlite:///m.db", "--json")
    output(*command(*place, trials=4, track=True))
    output(*command(*place, "--resume", trials=0, track=True))
    output(*command(*place, "--resume", trials=7, track=True))
    (parent,), children = runs_of(client("sqlite:///m.db"))
    assert len(children) == 7
    assert parent.data.metrics["trials.run"] == 7
    assert parent.data.tags["comis_eval.logged"] == "7"


@pytest.mark.slow
def test_another_study_of_the_same_name_has_a_run_of_its_own(command, client, here):
    place = ("--study", "mine", "--tracking-uri", "sqlite:///m.db", "--no-confirm")
    output(*command(*place, "--out", "one", trials=3, track=True))
    (here / "other.yaml").write_text("knobs:\n  rag.maxResults: {low: 1, high: 3}\n")
    output(*command(*place, "--out", "two", "--space", "other.yaml", trials=3, track=True))
    parents, children = runs_of(client("sqlite:///m.db"))
    assert len(parents) == 2
    assert len(children) == 6


@pytest.mark.slow
def test_the_best_or_none_can_be_logged(command, client):
    place = ("--tracking-uri", "sqlite:///m.db", "--no-confirm")
    told = json.loads(
        output(*command(*place, "--log-trials", "top:2", "--json", trials=12, track=True))
    )
    _, children = runs_of(client("sqlite:///m.db"))
    names = {run.info.run_name for run in children}
    assert f"trial-{told['best']['number']:05d}" in names
    assert "trial-00000" in names
    assert len(names) in (2, 3)
    output(*command(*place, "--log-trials", "none", trials=3, track=True))
    parents, children = runs_of(client("sqlite:///m.db"))
    assert (len(parents), len(children)) == (2, len(names))


@pytest.mark.slow
def test_a_search_that_fails_closes_its_run(command, client, monkeypatch):
    real, calls = Replay.__call__, []

    def failing(self, config):
        calls.append(config)
        if len(calls) > 3:
            raise CoverageError("not in the table")
        return real(self, config)

    place = ("--study", "mine", "--tracking-uri", "sqlite:///m.db")
    with monkeypatch.context() as patch:
        patch.setattr(Replay, "__call__", failing)
        told = run(*command(*place, track=True))
    assert told.exit_code == 2
    assert "trial 3 (rag.scoring.recencyAlpha=" in told.stderr
    (parent,), children = runs_of(client("sqlite:///m.db"))
    assert (parent.info.status, len(children)) == ("KILLED", 3)
    output(*command(*place, "--resume", track=True))
    (parent,), children = runs_of(client("sqlite:///m.db"))
    assert (parent.info.status, len(children)) == ("FINISHED", 6)


@pytest.mark.slow
def test_an_evaluation_is_tracked_the_same_way(data, client):
    given = ["evaluate", str(data / "stale"), "--lanes", "fts", "--out", "e.json"]
    result = run(*given, "--track", "--tracking-uri", "sqlite:///m.db")
    assert result.exit_code == 0
    assert "MLflow run " in result.stderr
    (parent,), children = runs_of(client("sqlite:///m.db"))
    assert children == []
    told = json.loads(Path("e.json").read_text())
    assert parent.data.metrics["utility"] == told["means"]["all"]["utility"]["value"]
    assert parent.data.params["rag.scoring.recencyAlpha"] == "0.2"
    assert parent.data.tags["comis_eval.kind"] == "evaluation"


@pytest.mark.slow
def test_an_evaluation_that_cannot_be_tracked_is_written_all_the_same(data, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr(Tracker, "open", lambda uri: Tracker(place_of(uri), backoff=(0.0,)))
    given = ["evaluate", str(data / "stale"), "--lanes", "fts", "--out", "e.json"]
    result = run(*given, "--tracking-uri", "http://127.0.0.1:9")
    assert result.exit_code == 5
    assert json.loads(Path("e.json").read_text())["counts"]["queries"] == 24
    assert "is not in MLflow at http://127.0.0.1:9" in result.stderr
