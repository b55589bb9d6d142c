"""A sweep as MLflow is told it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from comis_eval.config import config_hash
from comis_eval.evaluation import evaluate
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.tracking.records import as_json
from comis_eval.tuning import tracked
from comis_eval.tuning.records import TrialRecord
from comis_eval.tuning.replay import objectives_of
from comis_eval.tuning.tracked import git_commit, parent_of, run_of, single
from tests.tuning.worlds import ALPHAS, FTS, plan, space, stale, swept

UTILITY, CHARS = objectives_of(["utility"]), objectives_of(["context_chars"])
RECORD = TrialRecord(
    7,
    {"rag.maxResults": 3, "rag.rerank.enabled": True},
    (0.5,),
    {"utility": 0.5, "recall@5": 0.25},
    {"silence": -0.01},
    True,
    None,
    "complete",
    12.4,
)
DATASET = stale(12)
PLAN = plan(ALPHAS, trials=5)


# --- a trial ------------------------------------------------------------------------------


def test_a_trial_is_a_child_run_with_its_knobs_and_figures():
    run = run_of(RECORD, UTILITY, at_ms=5_000)
    assert (run.key, run.name, run.status) == ("7", "trial-00007", "FINISHED")
    assert run.params == RECORD.params
    assert run.metrics == {"utility": 0.5, "recall@5": 0.25, "constraint.silence": -0.01}
    assert (run.started_ms, run.ended_ms) == (4_988, 5_000)
    assert run.score == 0.5
    assert run.tags == {
        "comis_eval.feasible": "true",
        "comis_eval.duplicate_of": "",
        "comis_eval.current": "false",
    }
    assert not run.always


def test_the_best_are_ranked_by_the_first_objective_and_its_direction():
    assert run_of(RECORD, CHARS, at_ms=0).score == -0.5
    assert run_of(RECORD._replace(feasible=False), UTILITY, at_ms=0).score is None


def test_the_current_configuration_is_always_logged():
    run = run_of(RECORD._replace(number=0), UTILITY, at_ms=0)
    assert run.always
    assert run.tags["comis_eval.current"] == "true"


def test_a_repeated_and_a_failed_trial_say_so():
    assert run_of(RECORD._replace(duplicate_of=3), UTILITY, at_ms=0).tags[
        "comis_eval.duplicate_of"
    ] == "3"  # fmt: skip
    failed = RECORD._replace(
        values=(), feasible=False, constraints={}, state="failed", reason="utility is nan"
    )
    run = run_of(failed, UTILITY, at_ms=0)
    assert (run.status, run.score) == ("FAILED", None)
    assert run.tags["comis_eval.reason"] == "utility is nan"
    assert run.tags["comis_eval.feasible"] == "false"


# --- the sweep ----------------------------------------------------------------------------


def parent(changed=PLAN, dataset=DATASET, current=FTS, **more):
    return parent_of(changed, dataset, current, **{"started_ms": 1, **more})


def test_the_parent_says_what_was_searched_on_what():
    told = parent()
    assert (told.name, told.experiment, told.status) == ("s", "comis_eval", "FINISHED")
    assert told.dataset.fingerprint == DATASET.fingerprint
    assert told.params == {
        "pipeline": "memory-recall", "sampler": "random", "seed": 0, "objectives": "utility",
        "config_hash": config_hash(FTS), "gain": "linear", "relevance_level": 1, "k0": 5,
        "c0": 4000,
    }  # fmt: skip
    assert told.tags["comis_eval.semantics"] == "documented"
    assert {"version.optuna", "version.comis_eval"} <= set(told.tags)
    assert told.ended_ms is None
    assert told.resume == "the same command with --study s --resume --trials 0"


def test_a_sweep_that_goes_on_keeps_its_key():
    more = replace(PLAN, trials=900, resume=True, workers=4, confirm=False, folder=Path("x"))
    assert parent(more).key == parent().key


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "t"}, {"seed": 1}, {"sampler": "tpe"}, {"objectives": ("ndcg@10",)},
        {"space": space(rag__maxResults={"low": 1, "high": 3})}, {"freeze_trust": True},
        {"pipeline": "recall-tool"},
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_whatever_makes_other_trials_makes_another_key(changed):
    assert parent(replace(PLAN, **changed)).key != parent().key


def test_another_dataset_or_configuration_makes_another_key():
    keys = {
        parent().key,
        parent(dataset=stale(12, seed=1)).key,
        parent(current=FTS.evolve(**{"rag.max_results": 6})).key,
        parent(current=FTS.evolve(**{"semantics.preset": "production"})).key,
    }
    assert len(keys) == 4


def test_the_result_is_told_at_the_end():
    result = swept(DATASET, PLAN)
    told = parent(result=result)
    assert told.key == parent().key
    assert told.tags["comis_eval.decision"] == result.decision.outcome
    assert told.metrics["trials.run"] == 5
    assert told.metrics["best.utility"] == result.study.best.values[0]
    assert told.metrics["held_out.gain"] == result.held_out.comparison.mean
    assert told.ended_ms is not None


def test_nothing_that_is_tracked_holds_text_of_memories_or_queries():
    result = swept(DATASET, PLAN)
    told = [as_json(parent(result=result))]
    told += [as_json(run_of(record, UTILITY, at_ms=1)) for record in result.study.trials]
    evaluation = evaluate(DATASET, FTS, retriever=Retriever(DATASET, cache=None))
    told += [as_json(single(evaluation, DATASET, FTS, started_ms=1))]
    assert "w0x1" not in json.dumps(told)


def test_one_evaluation_is_a_run_with_its_settings_and_its_categories():
    evaluation = evaluate(DATASET, FTS, retriever=Retriever(DATASET, cache=None))
    told = single(evaluation, DATASET, FTS, started_ms=1)
    assert told.key is None
    assert told.params["rag.scoring.recencyAlpha"] == 0.2
    assert told.params["rag.includeTrustLevels"] == "['system', 'learned']"
    assert told.params["split"] == "all"
    assert told.metrics["utility"] == evaluation.means["all"]["utility"].value
    assert told.metrics["newer.utility"] == evaluation.means["newer"]["utility"].value


# --- the code that ran --------------------------------------------------------------------


def git(folder, *words):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The package as if it lay elsewhere."""
    path = tmp_path / "repo" / "lib" / "tracked.py"
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.setattr(tracked, "__file__", str(path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return path


def test_the_commit_is_that_of_the_checkout(module):
    folder = module.parent
    git(folder, "init", "-q")
    git(folder, "add", module.name)
    git(folder, "commit", "-q", "-m", "x")
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()
    assert git_commit() == head
    assert len(head) == 40


def test_outside_of_a_checkout_there_is_no_commit(module):
    assert git_commit() is None


def test_a_checkout_that_does_not_keep_the_code_says_nothing_of_it(module):
    # Installed into a virtual environment below somebody's project.
    (module.parent.parent / "app.py").touch()
    git(module.parent.parent, "init", "-q")
    git(module.parent.parent, "add", "app.py")
    git(module.parent.parent, "commit", "-q", "-m", "x")
    assert git_commit() is None


def test_without_git_there_is_no_commit(module, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert git_commit() is None
