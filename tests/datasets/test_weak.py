"""Weak labels: which way counts lean, and that they never mix with judgments."""

import pytest

from comis_eval.datasets import load_dataset, validate
from comis_eval.datasets.labels import Usefulness
from comis_eval.datasets.weak import (
    Signal,
    WeakLabel,
    load_weak,
    signal_of,
    weak_labels,
    write_weak,
)
from comis_eval.errors import DatasetError
from tests.datasets.folders import tiny

LABELS = [
    WeakLabel("q1", "m1", Signal.USED, "usefulness"),
    WeakLabel("q2", "m3", Signal.IGNORED, "usefulness"),
]


@pytest.mark.parametrize(
    ("counts", "signal"),
    [
        (None, None),
        (Usefulness(0, 0), None),
        (Usefulness(2, 2), None),
        (Usefulness(2, 1), Signal.USED),
        (Usefulness(1, 2), Signal.IGNORED),
    ],
)
def test_which_way_counts_lean(counts, signal):
    assert signal_of(counts) is signal


def test_a_pair_is_labelled_once_and_only_when_it_was_surfaced():
    pairs = [("q1", "m1"), ("q1", "m1"), ("q1", "m2")]
    found = weak_labels(pairs, {"m1": Usefulness(1, 0), "m9": Usefulness(5, 0)})
    assert found == LABELS[:1]


def test_they_are_read_back_and_are_no_part_of_the_dataset(tmp_path):
    before = load_dataset(tiny(tmp_path / "tiny"))
    assert load_weak(before) == ()
    write_weak(LABELS, tmp_path / "tiny")
    report = validate(tmp_path / "tiny")
    assert not report.warnings
    assert load_weak(report.dataset) == tuple(LABELS)
    assert report.dataset.fingerprint == before.fingerprint
    assert len(report.dataset.judgments) == len(before.judgments)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("q1 m1 liked x", "signal is 'liked'; allowed: used, ignored"),
        ("q9 m1 used x", "query 'q9' is not in the dataset"),
        ("q1 m9 used x", "memory 'm9' is not in the dataset"),
        ("q1 m1 used", "has 3 columns, must have 4"),
        ("q1 m1 used x\nq1 m1 ignored x", "labelled on an earlier line"),
    ],
)
def test_a_wrong_line_is_told_by_number(tmp_path, line, why):
    dataset = load_dataset(tiny(tmp_path / "tiny"))
    (tmp_path / "tiny" / "weak.tsv").write_text(f"query memory signal source\n{line}\n")
    with pytest.raises(DatasetError, match=r"weak\.tsv:[23]: .*") as told:
        load_weak(dataset)
    assert why in str(told.value)


def test_a_wrong_head_is_told(tmp_path):
    dataset = load_dataset(tiny(tmp_path / "tiny"))
    (tmp_path / "tiny" / "weak.tsv").write_text("q1 m1 used x\n")
    with pytest.raises(DatasetError, match=r"weak\.tsv:1: must be query memory signal source"):
        load_weak(dataset)
