from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings

from comis_eval.datasets import Dataset, Judgments, load_dataset, write_dataset
from comis_eval.errors import DatasetError
from comis_eval.types import Memory, TrustLevel
from tests.datasets.folders import HEADER, MEMORIES, QUERIES, lines, memory, tiny
from tests.datasets.strategies import datasets

SLOW_DATA = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@SLOW_DATA
@given(dataset=datasets())
def test_what_is_written_reads_back_the_same(dataset):
    with TemporaryDirectory() as home:
        folder = write_dataset(dataset, Path(home) / "out")
        found = load_dataset(folder)
    assert found.fingerprint == dataset.fingerprint
    for field in fields(Dataset):
        if field.name not in {"judgments", "folder"}:
            assert getattr(found, field.name) == getattr(dataset, field.name), field.name
    for column in ("queries", "rows", "grades"):
        mine, theirs = getattr(dataset.judgments, column), getattr(found.judgments, column)
        assert mine.tolist() == theirs.tolist()


def test_a_folder_that_holds_something_is_never_overwritten(tmp_path):
    dataset = load_dataset(tiny(tmp_path / "in"))
    full = tmp_path / "full"
    full.mkdir()
    (full / "note").write_text("mine")
    with pytest.raises(DatasetError, match="exists and is not empty"):
        write_dataset(dataset, full)
    assert [path.name for path in full.iterdir()] == ["note"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert load_dataset(write_dataset(dataset, empty)).fingerprint == dataset.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full", "in"]


def test_an_invalid_dataset_is_not_written_at_all(tmp_path):
    dataset = load_dataset(tiny(tmp_path / "in"))
    bad = replace(dataset.memories[0], confidence=2.0)
    with pytest.raises(DatasetError, match=r"out not written: .*confidence is 2\.0"):
        write_dataset(replace(dataset, memories=(bad, *dataset.memories[1:])), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_value_that_changes_on_the_way_is_refused(tmp_path):
    dataset = load_dataset(tiny(tmp_path / "in"))
    odd = replace(dataset.memories[0], confidence=1)  # an int where the record says float
    with pytest.raises(DatasetError, match="would read back as another dataset"):
        write_dataset(replace(dataset, memories=(odd, *dataset.memories[1:])), tmp_path / "out")


@pytest.mark.parametrize("text", ["1e3", "007", "yes", "null", "-", "# no", ".nan", "a: b", " x"])
def test_text_that_yaml_would_retype_stays_text(tmp_path, text):
    dataset = replace(load_dataset(tiny(tmp_path / "in")), version=text, description=text)
    found = load_dataset(write_dataset(dataset, tmp_path / "out"))
    assert (found.version, found.description) == (text, text)


def test_minus_zero_is_zero(tmp_path):
    plus, minus = (
        load_dataset(tiny(tmp_path / str(zero), memories_jsonl=memory(confidence=zero)))
        for zero in (0.0, -0.0)
    )
    assert plus.fingerprint == minus.fingerprint


def test_embeddings_travel_with_the_dataset(tmp_path):
    folder = tiny(tmp_path / "in")
    (folder / "embeddings.npy").write_bytes(b"abc")
    dataset = load_dataset(folder)
    copied = write_dataset(dataset, tmp_path / "out") / "embeddings.npy"
    assert copied.read_bytes() == b"abc"
    with pytest.raises(DatasetError, match=r"embeddings\.npy is stated but no folder"):
        write_dataset(replace(dataset, folder=None), tmp_path / "again")


def test_the_fingerprint_is_pinned():
    # Baselines refer to it: a change here makes every stored one unusable.
    dataset = Dataset(
        name="x",
        memories=(Memory(id="m", content="c", trust_level=TrustLevel.SYSTEM, created_at=1),),
        queries=(),
        judgments=Judgments.of([], n_queries=0),
    )
    assert dataset.fingerprint == (
        "39ed9413024c8430008ccd3b88a199d00b3acbbac7a0810a2c6e7bbf518e161e"
    )


def test_form_and_order_of_lines_other_than_memories_do_not_matter(tmp_path):
    first = load_dataset(tiny(tmp_path / "a"))
    shuffled = [dict(reversed(row.items())) for row in MEMORIES]
    spelled = [row | {"tenantId": "default", "tags": [], "occurredAt": None} for row in shuffled]
    second = load_dataset(
        tiny(
            tmp_path / "b",
            dataset_yaml=HEADER.replace("three memories", "other words").replace("tiny", "huge"),
            memories_jsonl="".join(json.dumps(row, indent=None, separators=(" , ", " : ")) + "\r\n"
                                   for row in spelled),
            queries_jsonl=lines(QUERIES[::-1]),
            qrels_tsv="q2 0 m3 0\nq1  0  m2  1\nq1 0 m1 3\n",
        )
    )  # fmt: skip
    assert second.fingerprint == first.fingerprint


@pytest.mark.parametrize(
    "files",
    [
        {"memories_jsonl": lines(MEMORIES[::-1])},
        {"memories_jsonl": memory()},
        {"memories_jsonl": lines([MEMORIES[0] | {"content": "else"}, *MEMORIES[1:]])},
        {"queries_jsonl": lines([QUERIES[0] | {"text": "else"}, QUERIES[1]])},
        {"queries_jsonl": lines([QUERIES[0] | {"group": "else"}, QUERIES[1]])},
        {"qrels_tsv": "q1 0 m1 3\nq1 0 m2 1\n"},
        {"qrels_tsv": "q1 0 m1 3\nq1 0 m2 2\nq2 0 m3 0\n"},
        {"dataset_yaml": HEADER + "policy: {trustLevels: [system]}\n"},
        {"dataset_yaml": HEADER + "policy: {scope: tenant}\n"},
        {"dataset_yaml": HEADER + "categories: {uncategorised: {headline: false}}\n"},
        {"dataset_yaml": HEADER + "splits: {tune: [q1], test: [q2]}\n"},
        {"attacks_jsonl": lines([{"query": "q1", "poison": ["m3"], "kind": "k"}])},
        {"links_jsonl": lines([{"from": "m1", "to": "m2", "confidence": 1}])},
        {"edges_jsonl": lines([{"from": "m1", "to": "m2", "kind": "k", "weight": 1}])},
        {"usefulness_csv": "memory,used,ignored\nm1,1,0\n"},
    ],
    ids=lambda files: next(iter(files)),
)
def test_everything_that_can_change_a_figure_changes_the_fingerprint(tmp_path, files):
    before = load_dataset(tiny(tmp_path / "a")).fingerprint
    assert load_dataset(tiny(tmp_path / "b", **files)).fingerprint != before
