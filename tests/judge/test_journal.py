"""A judge's file: what was acknowledged is there, whatever happened to the process."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.errors import JudgeError
from comis_eval.judge.journal import Act, Journal, Pair, grades, read_all, read_journal, standing

ONE, TWO = Pair("q1", "m1"), Pair("q1", "m2")


def take(journal, act, pair=ONE, grade=None, sitting=1):
    return journal.append(act, pair, sitting=sitting, grade=grade, seen="s")


def test_what_is_appended_is_read_again(tmp_path):
    with Journal(tmp_path, "ada", clock=lambda: 5) as journal:
        made = [take(journal, Act.GRADE, grade=3), take(journal, Act.SKIP, TWO)]
        assert read_journal(journal.path).entries == made
    line = json.loads((tmp_path / "ada.jsonl").read_text().splitlines()[0])
    assert line == {
        "at": 5, "act": "grade", "query": "q1", "memory": "m1", "sitting": 1, "seen": "s",
        "grade": 3,
    }  # fmt: skip
    with Journal(tmp_path, "ada") as again:
        assert again.entries == made
        assert again.healed is None


def test_the_file_and_its_folder_are_the_owners_alone(tmp_path):
    with Journal(tmp_path / "judgments", "ada") as journal:
        assert journal.path.stat().st_mode & 0o777 == 0o600
        assert journal.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_line_is_on_disk_before_anybody_is_told(tmp_path, monkeypatch):
    told = []
    real = os.fsync
    with Journal(tmp_path, "ada") as journal:

        def watched(descriptor):
            told.append(journal.path.read_bytes().count(b"\n"))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", watched)
        take(journal, Act.GRADE, grade=1)
        take(journal, Act.GRADE, TWO, grade=0)
    assert told == [1, 2]


def test_undo_takes_back_the_last_act_on_its_pair(tmp_path):
    with Journal(tmp_path, "ada") as journal:
        take(journal, Act.GRADE, grade=1)
        take(journal, Act.GRADE, TWO, grade=2)
        take(journal, Act.GRADE, grade=3)
        assert {p: e.grade for p, e in grades(journal.entries, sitting=1).items()} == {
            ONE: 3,
            TWO: 2,
        }
        take(journal, Act.UNDO)
        assert {p: e.grade for p, e in grades(journal.entries, sitting=1).items()} == {
            ONE: 1,
            TWO: 2,
        }
        take(journal, Act.UNDO)
        assert {p: e.grade for p, e in grades(journal.entries, sitting=1).items()} == {TWO: 2}
        assert len(journal.entries) == 5
        assert len(standing(journal.entries, sitting=1)) == 1


def test_sittings_are_apart(tmp_path):
    with Journal(tmp_path, "ada") as journal:
        take(journal, Act.GRADE, grade=1)
        take(journal, Act.GRADE, grade=3, sitting=2)
        assert grades(journal.entries, sitting=1)[ONE].grade == 1
        assert grades(journal.entries, sitting=2)[ONE].grade == 3


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(1, 200), count=st.integers(1, 4))
def test_wherever_a_kill_cuts_the_last_line_the_others_stand(tmp_path_factory, cut, count):
    folder = tmp_path_factory.mktemp("cut")
    with Journal(folder, "ada") as journal:
        for number in range(count + 1):
            take(journal, Act.GRADE, Pair("q", f"m{number}"), grade=number % 4)
        made = journal.entries[:count]
        path = journal.path
    content = path.read_bytes()
    last = len(content.splitlines(keepends=True)[-1])
    cut = min(cut, last - 1)
    path.write_bytes(content[: len(content) - cut])
    assert read_journal(path).torn == content[len(content) - last : len(content) - cut]
    with Journal(folder, "ada") as journal:
        assert journal.entries == made
        assert journal.healed is not None
        take(journal, Act.GRADE, Pair("q", "new"), grade=2)
    assert [e.pair for e in read_journal(path).entries] == [*(e.pair for e in made), ("q", "new")]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    with Journal(tmp_path, "ada") as journal:
        take(journal, Act.GRADE, grade=1)
        before = journal.path.read_bytes()
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
        with pytest.raises(OSError, match="No space") as raised:
            take(journal, Act.GRADE, TWO, grade=2)
        assert raised.value.errno == errno.ENOSPC
        assert journal.path.read_bytes() == before
        monkeypatch.undo()
        take(journal, Act.GRADE, TWO, grade=2)
        assert len(read_journal(journal.path).entries) == 2


KILLED = """
import sys
from pathlib import Path
from comis_eval.judge.journal import Act, Journal, Pair
journal = Journal(Path(sys.argv[1]), "ada")
for number in range(10**6):
    journal.append(Act.GRADE, Pair("q", f"m{number}" + "x" * 3000), sitting=1, grade=1, seen="s")
    print(number, flush=True)
"""


def test_kill_9_while_writing_loses_nothing_that_was_acknowledged(tmp_path):
    root = Path(__file__).parents[2]
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "0\n"
    time.sleep(0.3)
    running.send_signal(signal.SIGKILL)
    told = running.stdout.read().splitlines()
    running.stdout.close()
    assert running.wait() == -signal.SIGKILL
    last = int(told[-1]) if told else 0
    with Journal(tmp_path, "ada") as journal:
        kept = [entry.pair.memory_id.rstrip("x") for entry in journal.entries]
        assert kept[: last + 1] == [f"m{number}" for number in range(last + 1)]
        assert len(kept) <= last + 2
        take(journal, Act.UNDO, journal.entries[-1].pair)


def line_of(**changed):
    """A line that could be read, but for what is changed."""
    line = {"at": 1, "act": "skip", "query": "q1", "memory": "m", "sitting": 1, "seen": "s"}
    return json.dumps(line | changed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{}", "at is missing"),
        ("[1]", "must hold keys"),
        ("{", "not JSON"),
        ("", "not JSON"),
        (line_of(act="grade"), "grade must be"),
        (line_of(act="grade", grade=4), "allowed: 0, 1, 2, 3"),
        (line_of(act="grade", grade=1, sitting=3), "allowed: 1, 2"),
        (line_of(grade=1), "grade must be"),
        (line_of(act="undo", memory="m2"), "takes back"),
        (line_of(act="drop"), "grade, skip, undo"),
        (line_of(x=1), "unknown key"),
    ],
)
def test_a_damaged_line_is_named_and_the_file_left_alone(tmp_path, line, said):
    good = line_of()
    content = f"{good}\n{line}\n{good}\n"
    (tmp_path / "ada.jsonl").write_text(content)
    with pytest.raises(JudgeError, match=r"ada\.jsonl:2: ") as raised:
        Journal(tmp_path, "ada")
    assert said in str(raised.value)
    assert (tmp_path / "ada.jsonl").read_text() == content


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../ada", "a/b", "a\\b", "a\0b", "a b", "é", "a" * 65, "a\n", "-/x"]
)
def test_a_name_is_no_path(tmp_path, name):
    with pytest.raises(JudgeError, match="--judge"):
        Journal(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("dear")
    folder = tmp_path / "judgments"
    folder.mkdir()
    (folder / "ada.jsonl").symlink_to(victim)
    with pytest.raises(JudgeError, match="is a link"):
        Journal(folder, "ada")
    with pytest.raises(JudgeError, match="no file of judgments"):
        read_all(folder)
    (tmp_path / "linked").symlink_to(folder)
    for use in (lambda: Journal(tmp_path / "linked", "bob"), lambda: read_all(tmp_path / "linked")):
        with pytest.raises(JudgeError, match="is a link"):
            use()
    assert victim.read_text() == "dear"


def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "ada.jsonl")
    with pytest.raises(JudgeError, match="no plain file"):
        Journal(tmp_path, "ada")


def test_two_at_once_under_one_name_are_refused(tmp_path):
    with Journal(tmp_path, "ada"):
        with pytest.raises(JudgeError, match="open in another"):
            Journal(tmp_path, "ada")
        with Journal(tmp_path, "bob"):
            pass
    with Journal(tmp_path, "ada"):
        pass


def test_every_judge_is_read_by_name(tmp_path):
    assert read_all(tmp_path / "none") == {}
    for name in ("bob", "ada"):
        with Journal(tmp_path, name) as journal:
            take(journal, Act.GRADE, grade=1)
    (tmp_path / "apart.tsv").write_text("q1\tm1\n")
    assert list(read_all(tmp_path)) == ["ada", "bob"]
