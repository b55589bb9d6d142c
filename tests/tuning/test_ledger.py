"""The ledger of looks at held-out queries."""

import json
import subprocess
import sys

import pytest

from comis_eval.errors import DatasetError
from comis_eval.tuning.ledger import Opening, openings, record

ONE = Opening("f" * 64, "test", 0, "starter-1", "2030-01-01T00:00:00+00:00", "adopt")


def test_without_a_ledger_nothing_was_opened(tmp_path):
    assert openings(tmp_path / "ledger.jsonl", ONE.fingerprint) == []
    (tmp_path / "ledger.jsonl").touch()
    assert openings(tmp_path / "ledger.jsonl", ONE.fingerprint) == []


def test_openings_are_appended_and_read_in_their_order(tmp_path):
    path = tmp_path / "new" / "ledger.jsonl"
    two = ONE._replace(study="starter-2", held_out="folds", verdict="keep current")
    for opening in (ONE, two):
        record(path, opening)
    assert openings(path, ONE.fingerprint) == [ONE, two]
    first, second = path.read_text().splitlines()
    assert json.loads(first) == ONE._asdict()
    record(path, ONE)
    assert path.read_text().splitlines()[:2] == [first, second]


def test_each_dataset_has_its_own(tmp_path):
    path = tmp_path / "ledger.jsonl"
    record(path, ONE)
    record(path, ONE._replace(fingerprint="0" * 64))
    assert openings(path, ONE.fingerprint) == [ONE]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"null", b'{"study": "x"}', b"\xff\xfe", b"",
     json.dumps({**ONE._asdict(), "more": 1}).encode()],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "ledger.jsonl"
    record(path, ONE)
    with path.open("ab") as file:
        file.write(line + b"\n")
    record(path, ONE)
    with pytest.raises(DatasetError, match=r"ledger\.jsonl:2: not an opening .* version control"):
        openings(path, ONE.fingerprint)


def test_a_hostile_name_stays_within_its_line(tmp_path):
    path = tmp_path / "ledger.jsonl"
    odd = ONE._replace(study='a\u2028b\x85c\x0bd\n{"x": 1}', verdict="\x1b[2J")
    record(path, odd)
    record(path, ONE)
    assert openings(path, ONE.fingerprint) == [odd, ONE]


def test_concurrent_openings_are_all_there_and_whole(tmp_path):
    path = tmp_path / "ledger.jsonl"
    code = (
        "import sys; from pathlib import Path\n"
        "from comis_eval.tuning.ledger import Opening, record\n"
        "for n in range(15):\n"
        "    record(Path(sys.argv[1]), Opening('f', 'test', n, 's' * 9000, 'now', 'adopt'))\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert sorted(o.seed for o in openings(path, "f")) == sorted(list(range(15)) * 3)
