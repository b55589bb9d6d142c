import json
import os
import stat
from math import inf, isnan, nan

import pytest

from comis_eval.errors import StudyError
from comis_eval.tuning import journal as journals
from comis_eval.tuning.journal import Journal, read_journal
from comis_eval.tuning.records import TrialRecord

HEADER = {
    "study": "s",
    "fingerprint": {"dataset": "abc", "space": {"rag.minScore": "a number in [0, 1]"}},
    "optuna": "5.0.0",
}


def record(number, **changes):
    made = TrialRecord(
        number,
        {"rag.minScore": 0.1, "rag.rerank.enabled": True, "semantics.fusion": "flat"},
        (0.1 + 0.2,),
        {"utility": 0.30000000000000004, "recall@5": nan, "odd": -inf},
        {"policy_leak": -1.0},
        True,
        None,
        "complete",
        1.5,
    )
    return made._replace(**changes)


def written(path, trials=3, **changes):
    with Journal(path, HEADER, resume=False) as journal:
        for number in range(trials):
            journal.started(number, {"rag.minScore": 0.1 + 0.2})
            journal.finished(record(number, **changes), {"NSGAIISampler:generation": number})
    return path


@pytest.fixture
def path(tmp_path):
    return written(tmp_path / "runs" / "s.jsonl")


def same(one, other):
    """Equal but for NaN."""
    return repr(one) == repr(other)


def test_what_was_written_is_read_back_to_the_last_bit(path):
    contents = read_journal(path)
    assert contents.header == HEADER
    assert contents.running is None
    assert contents.torn == 0
    assert [entry.attributes for entry in contents.entries] == [
        {"NSGAIISampler:generation": number} for number in range(3)
    ]
    for number, entry in enumerate(contents.entries):
        assert same(entry.record, record(number))
    assert isnan(contents.entries[0].record.figures["recall@5"])


def test_a_failed_trial_is_read_back(tmp_path):
    failed = {"state": "failed", "values": (), "feasible": False, "reason": "utility is nan"}
    entry = read_journal(written(tmp_path / "j", 1, **failed)).entries[0]
    assert same(entry.record, record(0, **failed))


def test_lines_are_json_that_only_the_owner_reads(path):
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [event["event"] for event in events] == ["study", *["started", "finished"] * 3]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_trial_is_on_file_as_soon_as_it_is_finished(tmp_path):
    path = tmp_path / "j"
    with Journal(path, HEADER, resume=False) as journal:
        journal.started(0, {})
        assert read_journal(path).running == 0
        journal.finished(record(0), {})
        assert len(read_journal(path).entries) == 1


def test_the_file_is_forced_to_disk_in_batches(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(journals.os, "fsync", synced.append)
    monkeypatch.setattr(journals, "SYNC_SECONDS", 1e9)
    with Journal(tmp_path / "j", HEADER, resume=False) as journal:
        before = len(synced)
        for number in range(120):
            journal.started(number, {})
            journal.finished(record(number), {})
        assert len(synced) - before == 2
        monkeypatch.setattr(journals, "SYNC_SECONDS", 0)
        journal.started(120, {})
        journal.finished(record(120), {})
        assert len(synced) - before == 3
    assert len(synced) - before == 4


# --- going on -----------------------------------------------------------------------------


def test_resuming_goes_on_with_what_is_there(path):
    with Journal(path, HEADER, resume=True) as journal:
        assert len(journal.contents.entries) == 3
        assert journal.notes == ()
        journal.started(3, {})
        journal.finished(record(3), {})
    assert len(read_journal(path).entries) == 4


def test_a_trial_that_was_running_is_told(path):
    with Journal(path, HEADER, resume=True) as journal:
        journal.started(3, {"rag.minScore": 0.5})
    with Journal(path, HEADER, resume=True) as journal:
        assert journal.contents.running == 3
        journal.started(3, {"rag.minScore": 0.6})
        journal.finished(record(3), {})
    assert len(read_journal(path).entries) == 4


def test_an_interrupted_line_is_cut_off_and_said(path, caplog):
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event":"started","tri')
    assert read_journal(path).torn == 23
    with Journal(path, HEADER, resume=True) as journal:
        assert len(journal.contents.entries) == 3
        assert "an interrupted line of 23 bytes was cut off its end" in journal.notes[0]
    assert path.read_bytes() == whole
    assert "interrupted line" in caplog.text


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_a_file_cut_anywhere_resumes(path, cut):
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Journal(path, HEADER, resume=True) as journal:
        assert len(journal.contents.entries) == 2
        assert journal.contents.running == 2


def test_a_file_without_a_whole_header_is_begun_anew(path):
    path.write_bytes(path.read_bytes()[:40])
    with Journal(path, HEADER, resume=True) as journal:
        assert journal.contents.entries == ()
    assert read_journal(path).header == HEADER


def test_a_note_tells_of_another_version_of_optuna(path):
    with Journal(path, {**HEADER, "optuna": "5.1.0"}, resume=True) as journal:
        assert "was begun with Optuna 5.0.0, goes on with 5.1.0" in journal.notes[0]


# --- refusals -----------------------------------------------------------------------------


def change_line(path, number, change):
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = change(lines[number - 1])
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("number", [1, 2, 5, 7])
@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b"0.1", b"0.2", 1).replace(b"abc", b"abd"),
        lambda line: line[:-5],
        lambda line: b"",
        lambda line: b"\0" * len(line),
        lambda line: b"[1, 2]",
        lambda line: b"\xff" + line,
    ],
    ids=["digit", "cut", "empty", "zeros", "list", "bytes"],
)
def test_damage_elsewhere_is_refused_with_its_line(path, number, change):
    before = path.read_bytes()
    change_line(path, number, change)
    if path.read_bytes() == before:
        pytest.skip("nothing to change in this line")
    with pytest.raises(StudyError, match=rf"s\.jsonl:{number}: .*damaged"):
        Journal(path, HEADER, resume=True)


@pytest.mark.parametrize(
    ("missing", "line"), [((1,), 1), ((4,), 4), ((5,), 5), ((4, 5), 4), ((2, 3), 2)]
)
def test_missing_lines_are_refused_at_the_next_one(path, missing, line):
    lines = path.read_bytes().split(b"\n")
    left = [text for number, text in enumerate(lines, start=1) if number not in missing]
    path.write_bytes(b"\n".join(left))
    with pytest.raises(StudyError, match=rf"s\.jsonl:{line}: .* cannot stand here"):
        read_journal(path)


def test_a_journal_of_a_later_format_is_left_alone(path):
    path.write_bytes(journals._sealed({"event": "study", "format": 2, **HEADER}))
    with pytest.raises(StudyError, match="is of format 2, this version reads 1"):
        Journal(path, HEADER, resume=True)


@pytest.mark.parametrize(
    "event", [{"event": "study", "format": 1}, {"event": "study"}, {"kind": "study"}]
)
def test_a_sealed_line_that_is_no_header_is_refused(path, event):
    path.write_bytes(journals._sealed(event))
    with pytest.raises(StudyError, match=r"s\.jsonl:1: not an event of a study"):
        read_journal(path)


def test_a_sealed_line_that_is_no_json_is_refused(path):
    body = b'{"event":"study"'
    path.write_bytes(body[:-1] + journals._SEAL + journals._seal_of(body[:-1]) + b"\n")
    with pytest.raises(StudyError, match=r"s\.jsonl:1: not an event of a study"):
        read_journal(path)


def test_a_sealed_line_that_is_no_record_is_refused(path):
    line = journals._sealed({"event": "started", "trial": 3, "params": {}})
    line += journals._sealed({"event": "finished", "trial": 3, "state": "won"})
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(StudyError, match=r"s\.jsonl:9: not an event of a study"):
        read_journal(path)


def test_a_study_that_is_there_is_not_begun_again(path):
    with pytest.raises(StudyError, match="the study exists, with 3 trials; go on with --resume"):
        Journal(path, HEADER, resume=False)


def test_a_study_that_is_not_there_is_not_resumed(tmp_path):
    with pytest.raises(StudyError, match="there is no study to resume"):
        Journal(tmp_path / "j", HEADER, resume=True)
    assert not (tmp_path / "j").exists()


def test_another_study_is_not_resumed_and_the_difference_is_named(path):
    other = {"dataset": "abd", "space": {"rag.minScore": "a number in [0, 0.5]"}, "seed": 1}
    with pytest.raises(StudyError) as caught:
        Journal(path, {**HEADER, "fingerprint": other}, resume=True)
    for part in (
        'dataset was "abc", is "abd"',
        'space.rag.minScore was "a number in [0, 1]", is "a number in [0, 0.5]"',
        "seed was absent, is 1",
    ):
        assert part in str(caught.value)
    assert read_journal(path).header == HEADER


def test_two_processes_do_not_write_one_journal(path):
    with (
        Journal(path, HEADER, resume=True),
        pytest.raises(StudyError, match="another process is running this study"),
    ):
        Journal(path, HEADER, resume=True)


def test_a_refused_journal_is_not_left_open(path):
    for _ in range(3):
        with pytest.raises(StudyError, match="the study exists"):
            Journal(path, HEADER, resume=False)
    Journal(path, HEADER, resume=True).close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StudyError, match="cannot be written: Permission denied"):
        Journal(tmp_path / "j", HEADER, resume=False)


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(StudyError, match="cannot be written: Is a directory"):
        Journal(tmp_path, HEADER, resume=False)
    with pytest.raises(StudyError, match="cannot be read: Is a directory"):
        read_journal(tmp_path)
