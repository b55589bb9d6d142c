"""What a commit holds: a change cannot bless itself, and git runs nothing of the change's."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from comis_eval.datasets import load_dataset, write_dataset
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation
from comis_eval.gating import Policy, at_reference, gate, load, load_policy, write_baseline
from tests.evaluation.world import MEMORIES, QUERIES, measured, world

BASELINE = Path("experiments/baselines/main.json")
POLICY = Path("gate.yaml")
DATASET = Path("datasets/world")
DATA = world(memories=MEMORIES[:4], queries=[replace(query, group=query.id) for query in QUERIES])


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


@pytest.fixture
def found() -> Evaluation:
    return measured(DATA)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Evaluation) -> Path:
    """A repository with a baseline on main, at which a branch starts."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    monkeypatch.chdir(folder)
    DATASET.parent.mkdir()
    write_dataset(DATA, DATASET)
    write_baseline(found, "main")
    POLICY.write_text("metrics: {ndcg@10: 0.02}\n")
    commit(folder, "base")
    git(folder, "checkout", "-q", "-b", "change")
    return folder


def refused(said: str, reference) -> None:
    with pytest.raises(EvaluationError, match=said), reference:
        pass


def at(ref: str = "main", *, policy: Path | None = POLICY, dataset: Path = DATASET):
    return at_reference(ref, baseline=BASELINE, policy=policy, dataset=dataset)


def test_everything_is_taken_from_the_commit_whatever_the_change_did(repository, found):
    write_baseline(replace(found, config_hash="0" * 64), "main")
    POLICY.write_text("metrics: {ndcg@10: 9.0}\n")
    (DATASET / "queries.jsonl").write_text("")
    (DATASET / "new.txt").write_text("untracked")
    with at() as reference:
        baseline, _ = load(str(reference.baseline))
        assert baseline.config_hash == found.config_hash
        assert load_policy(reference.policy).metrics == {"ndcg@10": 0.02}
        assert load_dataset(reference.dataset).fingerprint == found.dataset["fingerprint"]
        assert reference.touched == (
            "datasets/world/new.txt", "datasets/world/queries.jsonl",
            "experiments/baselines/main.json", "gate.yaml",
        )  # fmt: skip
        assert reference.commit == git(repository, "rev-parse", "main")
        held = reference.baseline
    assert not held.exists()


def test_committed_changes_count_as_much(repository, found):
    POLICY.write_text("metrics: {ndcg@10: 9.0}\n")
    commit(repository, "loosen")
    with at() as reference:
        assert reference.touched == ("gate.yaml",)


def test_what_the_other_branch_did_meanwhile_is_no_change_of_ours(repository):
    git(repository, "checkout", "-q", "main")
    POLICY.write_text("metrics: {ndcg@10: 0.5}\n")
    commit(repository, "main moves on")
    git(repository, "checkout", "-q", "change")
    with at() as reference:
        assert reference.touched == ()
        assert load_policy(reference.policy).metrics == {"ndcg@10": 0.5}


def test_the_verdict_lists_what_was_touched(repository, found):
    POLICY.write_text("metrics: {ndcg@10: 9.0}\n")
    with at() as reference:
        verdict = gate(found, found, load_policy(reference.policy), reference=reference)
    assert verdict.touched == ("gate.yaml",)
    assert verdict.reference == reference.commit
    assert verdict.policy.metrics == {"ndcg@10": 0.02}


def test_a_candidate_on_another_dataset_than_the_commits_is_refused(repository, found):
    other = {**found.dataset, "fingerprint": "0" * 64}
    odd = replace(found, dataset=other)
    with (
        at() as reference,
        pytest.raises(EvaluationError, match=r"measured on 'world' 0000.*the com"),
    ):
        gate(odd, odd, Policy(), reference=reference)


def test_a_commit_without_the_dataset_is_said(repository):
    with at(dataset=Path("datasets/elsewhere")) as reference:
        assert reference.dataset is None
        assert reference.notes[0].startswith("'main' holds no datasets/elsewhere")


def test_a_commit_without_baseline_or_policy_is_refused(repository):
    new = at_reference(
        "main", baseline=BASELINE.with_name("new.json"), policy=None, dataset=DATASET
    )
    refused(r"holds no experiments/baselines/new\.json; ", new)
    with (
        pytest.raises(EvaluationError, match=r"holds no other\.yaml; the policy must be there"),
        at(policy=Path("other.yaml")),
    ):
        pass


@pytest.mark.parametrize("ref", ["nowhere", "--output=x", "-h", "", "main:gate.yaml", "a\x1bb"])
def test_what_is_no_commit_is_refused(repository, ref):
    with (
        pytest.raises(EvaluationError, match="there is no such commit here; fetch it first"),
        at(ref),
    ):
        pass
    assert not Path("x").exists()


def test_a_history_without_a_common_commit_is_refused(repository):
    git(repository, "checkout", "-q", "--orphan", "alone")
    commit(repository, "no parents")
    refused("fetch-depth: 0", at())


def test_a_path_outside_and_a_folder_without_git_are_refused(repository, tmp_path, monkeypatch):
    with (
        pytest.raises(EvaluationError, match="is outside of the repository"),
        at(policy=tmp_path / "gate.yaml"),
    ):
        pass
    bare = tmp_path / "bare"
    bare.mkdir()
    monkeypatch.chdir(bare)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    refused(r"git rev-parse: .*not a git repository", at())


def test_a_link_in_the_commit_is_refused_and_one_of_the_change_is_not_followed(repository):
    original = POLICY.read_text()
    POLICY.unlink()
    POLICY.symlink_to("/etc/passwd")
    with at() as reference:
        assert reference.policy.read_text() == original
        assert reference.touched == ("gate.yaml",)
    commit(repository, "a link")
    with (
        pytest.raises(EvaluationError, match=r"gate\.yaml is no plain file in that commit"),
        at("change"),
    ):
        pass


def test_nothing_of_the_repository_is_run(repository, tmp_path):
    """Filters, drivers and monitors that a change's attributes name are left alone."""
    ran = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o700)
    for key in ("diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "diff.external",
                "core.pager"):  # fmt: skip
        git(repository, "config", key, str(script))
    Path(".gitattributes").write_text("* diff=evil\n")
    POLICY.write_text("metrics: {ndcg@10: 9.0}\n")
    with at() as reference:
        assert json.loads(reference.baseline.read_text())["baseline"]["name"] == "main"
        assert reference.touched == ("gate.yaml",)
    assert not ran.exists()


def test_paths_are_taken_from_the_folder_one_stands_in(repository, monkeypatch):
    monkeypatch.chdir(repository / "datasets")
    up = Path("..")
    with at_reference(
        "main", baseline=up / BASELINE, policy=up / POLICY, dataset=Path("world")
    ) as at_:
        assert at_.dataset is not None
        assert at_.touched == ()


def test_the_trace_that_lies_beside_is_taken_too(repository, found):
    write_baseline(found, "main", trace=b"PAR1 of main")
    commit(repository, "with a trace")
    git(repository, "branch", "-f", "main")
    BASELINE.with_suffix(".trace.parquet").write_bytes(b"PAR1 of the change")
    with at() as reference:
        baseline, path = load(str(reference.baseline))
        assert baseline.trace["file"] == "main.trace.parquet"
        assert path.with_name("main.trace.parquet").read_bytes() == b"PAR1 of main"
