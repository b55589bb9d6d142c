"""The command line of judging: from an unlabelled set to qrels, with a real server between."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from comis_eval.datasets import load_dataset, validate
from comis_eval.judge.journal import Act, Journal, Pair, read_journal
from comis_eval.judge.pairs import seen
from tests.cli.world import document, error, is_tame, output, run, world

ROOT = Path(__file__).parents[2]
ONE, TWO = Pair("q-hot", "kiln-hot"), Pair("q-tax", "tax")


@pytest.fixture
def fresh(tmp_path):
    """The small set without its labels."""
    folder = Path(world(tmp_path))
    (folder / "qrels.tsv").unlink()
    return folder


def graded(folder, judge, grades, sitting=1):
    of = load_dataset(folder, labelled=False)
    with Journal(folder / "judgments", judge) as journal:
        for pair, grade in grades.items():
            journal.append(Act.GRADE, pair, sitting=sitting, grade=grade, seen=seen(of, pair))


class Running:
    """`comis-eval judge` as a process, asked as its page asks."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "comis_eval", "judge", *map(str, arguments), "--no-browser"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert self.process.stderr is not None
        self.told = ""
        while "Ctrl-C" not in self.told:
            read = self.process.stderr.readline()
            assert read, self.told
            self.told += read
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", self.told)
        assert found, self.told
        self.origin, self.token = found.groups()

    def ask(self, path, body=None):
        request = urllib.request.Request(  # noqa: S310  (our own loopback)
            self.origin + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Origin": self.origin, "X-Comis-Token": self.token,
                     "Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return json.load(answer)

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def test_from_a_pool_to_qrels_with_a_kill_between(fresh):
    options = ("--judge", "ada", "--pipelines", "keyword", "--no-cache")
    first = Running(fresh, *options)
    state = first.ask("/api/state")
    total = state["total"]
    assert total > 3
    state = first.ask("/api/act", {"act": "grade", "turn": state["turn"], "grade": 1})
    first.ask("/api/act", {"act": "grade", "turn": state["turn"], "grade": 1})
    assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with (fresh / "judgments" / "ada.jsonl").open("a") as file:
        file.write('{"at": 1, "act": "gr')

    second = Running(fresh, *options)
    assert "its last line was cut off" in second.told
    assert f"2 of {total} judged" in second.told
    state = second.ask("/api/state")
    while state["query"] is not None:
        state = second.ask("/api/act", {"act": "grade", "turn": state["turn"], "grade": 1})
    code, out, err = second.end()
    assert (code, err.strip()) == (0, "")
    assert f"ada: {total - 2} judged now, {total} of {total} in all" in out
    assert "--export" in out

    assert f"{total} judgments added" in output("judge", str(fresh), "--export")
    lines = (fresh / "qrels.tsv").read_text().splitlines()
    assert len(lines) == total
    assert {line.split("\t")[3] for line in lines} == {"1"}


def test_a_dataset_stays_clean_with_judgments_in_it(tmp_path):
    folder = Path(world(tmp_path))
    before = validate(folder)
    graded(folder, "ada", {ONE: 3})
    after = validate(folder)
    assert after.faults == before.faults == ()
    assert after.warnings == before.warnings
    assert after.dataset.fingerprint == before.dataset.fingerprint


def test_two_judges_a_third_and_an_export(fresh, tmp_path):
    graded(fresh, "ada", {ONE: 3, TWO: 3, Pair("q-turns", "tax"): 2})
    graded(fresh, "bob", {ONE: 3, TWO: 1})
    apart = tmp_path / "apart.tsv"
    told = output("judge", str(fresh), "--agreement", "--disagreements", str(apart))
    assert "1 pairs on which they differ" in told
    assert "ada: 3, bob: 1" in told
    assert apart.read_text() == "q-tax\ttax\n"

    told = output("judge", str(fresh), "--export")
    assert "2 judgments added, 0 were there already, 0 differ and were left, 1 unsettled" in told
    assert "2 queries have no memory" not in told
    assert "1 queries have no memory of grade 1 or more" in told
    graded(fresh, "chair", {TWO: 2})
    told = output("judge", str(fresh), "--export", "--resolver", "chair")
    assert "1 judgments added, 2 were there already" in told
    assert (fresh / "qrels.tsv").read_text() == (
        "q-hot\t0\tkiln-hot\t3\nq-turns\t0\ttax\t2\nq-tax\t0\ttax\t2\n"
    )
    assert validate(fresh).faults == ()


def test_what_is_there_is_replaced_only_when_asked(tmp_path):
    folder = Path(world(tmp_path))
    graded(folder, "ada", {ONE: 1})
    told = output("judge", str(folder), "--export")
    assert "1 differ and were left" in told
    assert load_dataset(folder).judgments.judged(0).grades.max() == 3
    found = document("judge", str(folder), "--export", "--replace")
    assert found["differing"] == [
        {"query": "q-hot", "memory": "kiln-hot", "there": 3, "judged": 1, "replaced": True}
    ]
    assert load_dataset(folder).judgments.judged(0).grades.max() == 1


def test_agreement_as_json(fresh):
    pairs = [Pair("q-hot", name) for name in ("kiln-hot", "kiln-old", "kiln-twin")]
    pairs += [Pair("q-tax", "tax")]
    graded(fresh, "ada", dict(zip(pairs, (0, 1, 2, 3), strict=True)))
    graded(fresh, "bob", dict(zip(pairs, (0, 1, 2, 2), strict=True)))
    found = document("judge", str(fresh), "--agreement")
    (one,) = found["compared"]
    assert one["kappa"] == pytest.approx(0.875)
    assert (one["n"], one["same"], one["groups"]) == (4, 3, 2)
    assert one["disagreements"] == [{"query": "q-tax", "memory": "tax", "first": 3, "second": 2}]
    assert found["stale"] == found["unknown"] == []


def test_a_second_pass_asks_a_share_again_without_the_first_grade(fresh):
    pairs = [Pair("q-hot", name) for name in ("kiln-hot", "kiln-old", "kiln-twin", "tax")]
    graded(fresh, "ada", dict.fromkeys(pairs, 3))
    running = Running(fresh, "--judge", "ada", "--second-pass", "0.5")
    state = running.ask("/api/state")
    assert (state["graded"], state["total"], state["can_undo"]) == (0, 2, False)
    running.ask("/api/act", {"act": "grade", "turn": state["turn"], "grade": 1})
    code, out, _ = running.end()
    assert code == 0
    assert "ada, second pass" in out
    assert read_journal(fresh / "judgments" / "ada.jsonl").entries[-1].sitting == 2


def test_another_may_give_the_second_opinion(fresh):
    graded(fresh, "ada", {ONE: 3, TWO: 3})
    running = Running(fresh, "--judge", "bob", "--second-pass", "1", "--of", "ada")
    state = running.ask("/api/state")
    assert state["total"] == 2
    running.ask("/api/act", {"act": "grade", "turn": state["turn"], "grade": 1})
    assert running.end()[0] == 0
    assert read_journal(fresh / "judgments" / "bob.jsonl").entries[-1].sitting == 1


def test_a_list_of_pairs_and_only_what_is_unjudged(tmp_path):
    folder = Path(world(tmp_path))
    (tmp_path / "pairs.tsv").write_text("q-hot\tkiln-hot\nq-hot\ttax\n")
    running = Running(folder, "--judge", "ada", "--pairs", tmp_path / "pairs.tsv", "--unjudged")
    state = running.ask("/api/state")
    assert state["total"] == 1
    assert state["memory"]["content"] == "the tax letter is in the blue folder"
    assert running.end()[0] == 0


def test_nobody_is_sent_to_another_address(fresh, monkeypatch):
    """The browser opens the printed address; --port gives the port."""
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("comis_eval.judge.server.JudgeServer.serve_forever", interrupted)
    told = run("judge", str(fresh), "--judge", "ada", "--pipelines", "keyword", "--no-cache")
    assert told.exit_code == 0
    assert opened == re.findall(r"http://\S+", told.stderr)
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--judge", "../ada"), "--judge is '../ada'"),
        (("--judge", ".."), "--judge is '..'"),
        (("--judge", "a\x1b[2Jb"), "--judge"),
        (("--agreement",), "there are no judgments"),
        (("--export",), "there are no judgments"),
        (("--export", "--agreement"), "ask for one"),
        (("--replace",), "belong to --export"),
        (("--json",), "belong to --agreement and --export"),
        (("--of", "ada"), "belongs to --second-pass"),
        (("--judge", "ada", "--second-pass", "0.2"), "ada has judged nothing"),
        (("--judge", "ada", "--pipelines", "keywrd"), "did you mean keyword?"),
        (("--judge", "ada", "--pipelines", "keyword", "--second-pass", "1"), "what is judged"),
    ],
)
def test_what_cannot_be_is_one_line(fresh, arguments, said):
    told = error("judge", str(fresh), *arguments)
    assert said in told
    assert is_tame(told)
    assert not (fresh / "judgments").exists()


def test_hostile_ids_do_not_steer_the_terminal(tmp_path):
    from comis_eval.types import Memory
    from tests.builders import memory
    from tests.cli.world import MEMORIES

    odd: Memory = memory("m\u202e\u2066x", "kiln")
    folder = Path(world(tmp_path, [*MEMORIES, odd]))
    for judge, grade in (("ada", 0), ("bob", 2)):
        graded(folder, judge, {Pair("q-hot", odd.id): grade})
    for told in (
        output("judge", str(folder), "--agreement"),
        output("judge", str(folder), "--export"),
    ):
        assert is_tame(told)
        assert "\u2066" not in told
