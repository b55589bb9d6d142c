"""comis-eval gate: exit statuses, what is written, and files that no verdict can be made of."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.world import document, error, is_tame, output, run

FTS = ("--lanes", "fts", "--set", "rag.minScore=0")
WORSE = ("--set", "rag.maxContextChars=60", "--set", "harness.utility.c0=4000")
LEAKY = ("--set", "rag.includeTrustLevels=[system, learned, external]")
LOOSE = "metrics: {recall@5: 1.0}\n"
STRICT = "metrics: {context_recall: 0}\nresamples: 200\n"


@pytest.fixture(scope="module")
def files(dataset, tmp_path_factory):
    """Evaluations of the small dataset: the default, one that forgets, one that leaks."""
    folder = tmp_path_factory.mktemp("evaluations")
    for name, options in {"good": (), "worse": WORSE, "leaky": LEAKY}.items():
        output("evaluate", dataset, *FTS, *options, "--out", str(folder / f"{name}.json"))
    (folder / "loose.yaml").write_text(LOOSE)
    (folder / "strict.yaml").write_text(STRICT)
    return folder


def gate(files, baseline, candidate, *options):
    return run("gate", str(files / baseline), str(files / candidate), *options)


def test_the_same_passes_and_says_so_last(files):
    result = gate(files, "good.json", "good.json")
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("PASS: no worse than the baseline (exit status 0)")
    assert is_tame(result.stdout)


def test_what_is_read_is_not_written_to(files):
    for option, read in (("--markdown", "worse.json"), ("--junit", "good.json")):
        before = (files / read).read_bytes()
        result = gate(files, "good.json", "worse.json", option, str(files / read))
        assert (result.exit_code, (files / read).read_bytes()) == (2, before)
        assert "is read, so it is not written to" in result.stderr


def test_a_leak_is_3_and_everything_written_agrees(files, tmp_path):
    comment, junit = tmp_path / "c.md", tmp_path / "j.xml"
    result = gate(files, "good.json", "leaky.json", "--markdown", str(comment), "--junit",
                  str(junit), "--json")  # fmt: skip
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert (told["outcome"], told["exit_status"]) == ("leak", 3)
    assert comment.read_text().startswith("### Recall gate: LEAK")
    assert 'name="outcome" value="leak"' in junit.read_text()
    assert "exit status 3" in result.stderr


def test_a_loss_that_four_queries_cannot_show_is_undecided(files):
    policy = ("--policy", str(files / "strict.yaml"))
    result = gate(files, "good.json", "worse.json", *policy)
    assert result.exit_code == 4
    assert "UNDECIDED" in result.stdout
    assert gate(files, "good.json", "worse.json", *policy, "--undecided", "pass").exit_code == 0
    assert gate(files, "good.json", "worse.json", *policy, "--undecided", "fail").exit_code == 1
    told = json.loads(gate(files, "good.json", "worse.json", *policy, "--json").stdout)
    assert told["explanation"]["stages"] == {"budget": told["explanation"]["lost"]}


def test_a_dead_lane_is_1(dataset, files, tmp_path):
    dead, lanes = str(tmp_path / "dead.json"), ("--lanes", "fts,causal")
    output("evaluate", dataset, *lanes, "--set", "rag.minScore=0", "--out", dead)
    result = run("gate", str(files / "good.json"), dead)
    assert result.exit_code == 1
    assert "1 lanes returned nothing for every query (causal)" in result.stdout


def test_a_baseline_by_name(files, tmp_path):
    output("baseline", "set", str(files / "good.json"), "--as", "main", "--dir", str(tmp_path))
    result = run("gate", "main", str(files / "good.json"), "--dir", str(tmp_path))
    assert result.exit_code == 0
    assert "neither a file nor a baseline" in error(
        "gate", "other", str(files / "good.json"), "--dir", str(tmp_path)
    )


def whole(files) -> str:
    return (files / "good.json").read_text()


BROKEN = {
    "truncated": (lambda text: text[: len(text) // 2], "not a whole evaluation file"),
    "empty": (lambda _: "", "not a whole evaluation file"),
    "of a later version": (lambda text: text.replace('"format": 1', '"format": 2', 1), "format is"),
    "of another kind": (lambda _: "[1, 2]", "format is 'list'"),
    "with NaN": (lambda text: text.replace("1.0", "NaN", 1), "holds NaN; undefined values are"),
    "with infinity": (lambda text: text.replace('"value": 1.0', '"value": 1e999', 1), "finite"),
    "edited in a figure": (
        lambda text: text.replace('"value": 1.0', '"value": 0.987', 1), "edited by hand",
    ),
    "edited in its lanes": (lambda text: text.replace('"fts": 3', '"fts": 99', 1), r"lanes.fts"),
}  # fmt: skip


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_2_with_the_reason_and_no_verdict(files, tmp_path, side, change, said):
    broken, good = tmp_path / "broken.json", files / "good.json"
    text = change(whole(files))
    assert text != whole(files)
    broken.write_text(text)
    comment, junit = tmp_path / "c.md", tmp_path / "j.xml"
    for stale in (comment, junit):
        stale.write_text("PASS, from last time")
    pair = (broken, good) if side == "baseline" else (good, broken)
    told = error("gate", *map(str, pair), "--markdown", str(comment), "--junit", str(junit))
    assert "broken.json: " in told
    assert said in told
    assert not comment.exists()
    assert not junit.exists()


def test_another_dataset_or_split_is_2(dataset, files, tmp_path):
    part = tmp_path / "part.json"
    output("evaluate", dataset, *FTS, "--split", "tune", "--out", str(part))
    told = error("gate", str(files / "good.json"), str(part))
    assert "measured on different splits: 'world all' | 'world tune'" in told


def test_a_bad_policy_is_2(files, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("metrics: {hot@5: 0}\nlimits: {slow: 1}")
    told = error("gate", str(files / "good.json"), str(files / "good.json"), "--policy",
                 str(policy))  # fmt: skip
    assert "metrics.hot@5: there is no metric" in told
    assert "limits.slow: unknown key" in told


def test_output_that_cannot_be_written_is_2(files, tmp_path):
    missing = str(tmp_path / "no" / "c.md")
    told = error("gate", str(files / "good.json"), str(files / "good.json"), "--markdown", missing)
    assert "c.md: cannot be written" in told


def test_other_constants_of_utility_are_2_with_the_remedy(dataset, files, tmp_path):
    other = tmp_path / "other.json"
    output("evaluate", dataset, *FTS, "--set", "rag.maxResults=3", "--out", str(other))
    told = error("gate", str(files / "good.json"), str(other))
    assert "utility rests on k0 (5 | 3)" in told
    assert "--set harness.utility.k0=5" in told


def test_baseline_ref_takes_what_the_commit_holds(dataset, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def git(*arguments):
        who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    output("baseline", "set", str(files / "good.json"), "--as", "main")
    Path("gate.yaml").write_text(STRICT)
    git("add", "-A")
    git("commit", "-q", "-m", "base")
    Path("gate.yaml").write_text(LOOSE)
    options = ("--policy", "gate.yaml", "--baseline-ref", "main", "--dataset", "kept")
    told = run("gate", "main", str(files / "worse.json"), *options, "--json")
    assert told.exit_code == 4, "the commit's policy is the strict one"
    found = json.loads(told.stdout)
    assert found["touched"] == ["gate.yaml"]
    assert any("holds no kept" in note for note in found["notes"])
    shown = run("gate", "main", str(files / "worse.json"), *options)
    assert "the change touches what it is judged by" in shown.stdout
    assert "no such commit" in error(
        "gate", "main", str(files / "good.json"), "--baseline-ref", "x"
    )


def test_a_verdict_is_a_document(files):
    told = document("gate", str(files / "good.json"), str(files / "good.json"))
    assert {"outcome", "checks", "gated", "reported", "policy", "explanation"} <= set(told)


def test_heavy_libraries_stay_at_home(files):
    """Without traces a gate needs no Arrow; it never needs what only ranking or tuning does."""
    import sys

    heavy = ("pandas", "pyarrow", "faiss", "onnxruntime", "optuna", "mlflow", "matplotlib", "mcp")
    program = (
        "import sys\nfrom comis_eval.cli import main\n"
        f"try:\n    main(['gate', {str(files / 'good.json')!r}, {str(files / 'good.json')!r}])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
