"""The evaluation file and its trace: whole, stable, without text, and refused when damaged."""

import copy
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from comis_eval.config import Config
from comis_eval.errors import EvaluationError
from comis_eval.evaluation import Evaluation, file, read_evaluation, trace, write_evaluation
from comis_eval.pipelines.explain import candidates
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.types import Source, Turn
from tests.builders import NOW, memory, query
from tests.evaluation.world import MEMORIES, QUERIES, HandEmbedder, measured, settings, world

KEYS = [
    "format", "dataset", "pipeline", "enforces", "config", "config_hash", "versions", "seed",
    "counts", "lanes", "latency_ms", "metrics", "means", "references", "bounds", "leaks",
    "notes", "rows", "trace",
]  # fmt: skip
"""Stable: a baseline written today is read by later versions. Add to it, take nothing away."""

Tree = dict[str, Any]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    """Every lane's rank, a duplicate, a filtered memory and an undefined value are in it."""
    twin = memory("t", "gamma ", created_at=NOW)
    config = settings({"includeTrustLevels": ["learned", "external"]}, harness={})
    dataset = world((*MEMORIES, twin))
    return measured(dataset, config, retriever=Retriever(dataset, HandEmbedder(), cache=None))


@pytest.fixture
def written(found: Evaluation, tmp_path: Path) -> Path:
    path = tmp_path / "one.json"
    write_evaluation(found, path)
    return path


def test_the_keys_are_stable(written: Path) -> None:
    tree = json.loads(written.read_text())
    assert list(tree) == KEYS
    assert list(tree["dataset"]) == ["name", "version", "fingerprint", "split"]
    assert list(tree["config"]) == ["rag", "semantics", "harness"]
    assert list(tree["counts"]) == ["queries", "scored", "unanswerable", "failed", "unknown_ids"]
    assert list(tree["metrics"]) == [
        "k", "gain", "relevance_level", "k0", "c0", "headline", "utility",
    ]  # fmt: skip
    assert list(tree["means"]) == ["all", "x", "y", "z"]
    assert tree["means"]["x"]["recall@5"] == {"value": 0.5, "n": 1}, "b is of a level left out"
    assert list(tree["leaks"][0]) == ["query_id", "memory_id", "stage", "why"]
    assert list(tree["rows"])[:3] == ["query_id", "group", "category"]
    assert tree["rows"]["recall@5"] == [0.5, 1.0, None], "undefined is null, not 0"
    assert tree["format"] == 1


def test_what_is_read_is_what_was_written(found: Evaluation, written: Path) -> None:
    read = read_evaluation(written)
    assert file.as_json(read, trace=read.trace) == json.loads(written.read_text())
    assert read.rankings is None
    assert read.query_ids == found.query_ids
    assert {name: column.tobytes() for name, column in read.values.items()} == {
        name: column.tobytes() for name, column in found.values.items()
    }
    assert str(read.means) == str(found.means)
    assert read.mean("recall@5") == found.mean("recall@5")
    assert math.isnan(read.mean("recall@5", "z"))
    assert read.dead_lanes == found.dead_lanes == ("fts",)


def test_writing_again_writes_the_same_and_what_was_read_keeps_its_trace(
    found: Evaluation, written: Path
) -> None:
    before, beside = written.read_bytes(), written.with_name("one.trace.parquet")
    write_evaluation(found, written)
    assert written.read_bytes() == before
    again = written.with_name("again.json")
    write_evaluation(read_evaluation(written), again)
    assert json.loads(again.read_text())["trace"] == {
        "file": beside.name, "sha256": hashlib.sha256(beside.read_bytes()).hexdigest(),
    }  # fmt: skip
    names = sorted(path.name for path in written.parent.iterdir())
    assert names == ["again.json", "one.json", "one.trace.parquet"], "nothing half written stays"


def test_the_trace_tells_every_candidate_as_a_recall_does(found: Evaluation, written: Path) -> None:
    table = pq.read_table(written.with_name("one.trace.parquet")).to_pylist()
    assert found.rankings is not None
    expected = [
        {
            "query_id": asked.id,
            "memory_id": one.memory.id,
            "place": place,
            "fts_rank": one.ranks.get("fts"),
            "vector_rank": one.ranks.get("vector"),
            "fused": one.fused,
            "reranker": one.reranker,
            "base": one.base,
            **one.factors,
            "final": one.final,
            "fate": str(one.fate),
            "deduped_by": one.deduped_by,
        }
        for number, asked in enumerate(QUERIES)
        for place, one in enumerate(candidates(found.rankings, number), start=1)
    ]
    assert [{name: row[name] for name in expected[0]} for row in table] == expected
    assert [name for name in table[0] if name in expected[0]] == list(expected[0])
    fates = {row["memory_id"]: (row["fate"], row["deduped_by"]) for row in table[:5]}
    assert fates == {
        "a": ("included", None), "w": ("included", None), "c": ("included", None),
        "b": ("trust_filtered", None), "t": ("deduped", "c"),
    }  # fmt: skip


def test_the_trace_of_nothing_has_its_columns(tmp_path: Path) -> None:
    silent = measured(world(memories=(), queries=(), grades={}))
    write_evaluation(silent, tmp_path / "e.json")
    table = pq.read_table(tmp_path / "e.trace.parquet")
    assert table.num_rows == 0
    assert table.column_names[:3] == ["query_id", "memory_id", "place"]
    assert silent.rankings is not None
    assert list(trace.columns(silent.rankings)) == table.column_names
    assert read_evaluation(tmp_path / "e.json").counts["queries"] == 0


WORD = "zanzibar"


def test_no_text_of_a_memory_or_a_query_is_in_the_file_or_the_trace(tmp_path: Path) -> None:
    secret = memory(
        "m1", f"{WORD} one", source=Source(WORD, WORD, WORD), entities=(WORD,), tags=(WORD,)
    )
    twin = memory("m2", f"{WORD} one", key=WORD, created_by=WORD, project_id=WORD)
    asked = query(f"where is {WORD}", "q1", turns=(Turn("user", WORD),), tags=(WORD,))
    dataset = world((secret, twin), (asked,), {("q1", "m1"): 1}, description=WORD, judged_by=WORD)
    found = measured(dataset, settings(harness={}))
    assert WORD in dataset.memories[0].content
    write_evaluation(found, tmp_path / "e.json")
    assert WORD not in (tmp_path / "e.json").read_text().lower()
    table = pq.read_table(tmp_path / "e.trace.parquet")
    assert table.num_rows == 2
    assert WORD not in str(table.to_pylist()).lower()
    assert WORD.encode() not in (tmp_path / "e.trace.parquet").read_bytes()


def test_credentials_of_the_configuration_are_masked(tmp_path: Path) -> None:
    remote = {"url": "http://me:hunter2@host/?token=hunter2", "arguments": {"apiKey": "hunter2"}}
    found = measured(world(), settings(harness={"lanes": ["vector"], "remote": remote}))
    write_evaluation(found, tmp_path / "e.json")
    assert "hunter2" not in (tmp_path / "e.json").read_text()


# Refusals


def edited(written: Path, change: Callable[[Tree], object]) -> Path:
    tree = json.loads(written.read_text())
    change(tree)
    written.write_text(json.dumps(tree))
    return written


def put(value: object, *path: str | int) -> Callable[[Tree], None]:
    def change(tree: Any) -> None:
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[Tree], None]:
    def change(tree: Any) -> None:
        for key in path[:-1]:
            tree = tree[key]
        del tree[path[-1]]

    return change


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_refused(written: Path, share: float) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(EvaluationError, match=r"one\.json: not a whole evaluation file .*--out"):
        read_evaluation(written)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_json_does_not_have_is_refused(written: Path, constant: str) -> None:
    text = written.read_text().replace('"value": 0.5', f'"value": {constant}', 1)
    written.write_text(text)
    with pytest.raises(EvaluationError, match=f"holds {constant}; undefined values are null"):
        read_evaluation(written)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "format is 'list'; this version reads 1"),
        ("{}", "format is None; this version reads 1"),
        ('{"format": 2}', "format is 2"),
        ('{"format": "1"}', "format is '1'"),
        ("1e999", "format is 'float'"),
        ('{"format": 1, "rows": {}}', "lacks dataset, pipeline, .*trace; evaluate again"),
        ("[" * 100_000, "not a whole evaluation file"),
        ("\ufeff{}", "not a whole evaluation file"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_another_format_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EvaluationError, match=said):
        read_evaluation(path)


def test_what_is_no_file_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="cannot be read: No such file"):
        read_evaluation(tmp_path / "missing.json")
    with pytest.raises(EvaluationError, match="cannot be read: Is a directory"):
        read_evaluation(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00PAR1")
    with pytest.raises(EvaluationError, match="not a whole evaluation file"):
        read_evaluation(binary)


def test_a_huge_file_is_refused_unread(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_BYTES", 1 << 10)
    with pytest.raises(EvaluationError, match="larger than 0 MiB; not an evaluation"):
        read_evaluation(written)


@pytest.mark.parametrize("key", KEYS[1:])
def test_a_missing_key_is_named(written: Path, key: str) -> None:
    with pytest.raises(EvaluationError, match=f"lacks {key}; evaluate again"):
        read_evaluation(edited(written, drop(key)))


HAND_EDITS: dict[str, tuple[Callable[[Tree], object], str]] = {
    "a better figure": (
        put(0.99, "means", "x", "recall@5", "value"),
        r"means\.x\.recall@5 is 0\.99 over 1 queries, its rows give 0\.5 over 1",
    ),
    "a better figure of all": (
        put(0.99, "means", "all", "ndcg@10", "value"),
        r"means\.all\.ndcg@10 is 0\.99 over 2 queries",
    ),
    "a leak gone": (put(0.0, "means", "all", "policy_leak", "value"), r"means\.all\.policy_leak"),
    "a total": (put(0, "means", "all", "unwanted_after_search", "value"), "unwanted_after_search"),
    "another n": (put(7, "means", "all", "recall@5", "n"), "over 7 queries, its rows give"),
    "a defined figure made null": (put(None, "means", "x", "map", "value"), "is nan over 1"),
    "a value": (put(0.51, "rows", "recall@5", 0), r"all\.recall@5 is 0\.75 .* give 0\.755 over 2"),
    "a value that is text": (put("1", "rows", "recall@5", 0), r"recall@5\[0\] must be a finite"),
    "a value that is true": (put(True, "rows", "map", 2), r"rows\.map\[2\] .* got True"),
    "a figure that is text": (put("0.5", "means", "x", "recall@5", "value"), "must be a finite"),
    "a value beyond floats": (put(10**400, "rows", "map", 0), "OverflowError"),
    "a column cut": (lambda tree: tree["rows"]["map"].pop(), r"rows\.map has 2 entries for 3"),
    "a column that is a number": (put(1, "rows", "map"), r"rows\.map must be a list"),
    "groups cut": (lambda tree: tree["rows"]["group"].pop(), r"rows\.group has 2 entries for 3"),
    "groups as one text": (put("abc", "rows", "group"), r"rows\.group must be a list of texts"),
    "an id twice": (put("q1", "rows", "query_id", 1), "holds an id twice"),
    "an id that is a number": (put(1, "rows", "query_id", 0), r"rows\.query_id must be a list of"),
    "a figure without rows": (drop("rows", "map"), "KeyError: 'map'"),
    "a figure without n": (drop("means", "all", "map", "n"), "KeyError: 'n'"),
    "no headline": (drop("metrics", "headline"), "KeyError: 'headline'"),
    "another count": (put(4, "counts", "queries"), r"counts\.queries is 4, rows are 3"),
    "a renamed category": (put("y", "rows", "category", 0), r"means\.x\."),
    "enforces as text": (put("trust", "enforces"), "enforces is str"),
    "leaks as a mapping": (put({}, "leaks"), "leaks is dict"),
    "rows as a list": (put([], "rows"), "rows is list"),
    "seed as text": (put("0", "seed"), "seed is str"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), HAND_EDITS.values(), ids=HAND_EDITS)
def test_a_file_edited_by_hand_is_refused_with_the_reason(
    written: Path, change: Callable[[Tree], object], said: str
) -> None:
    with pytest.raises(EvaluationError, match=f"one.json: damaged or edited by hand.*{said}"):
        read_evaluation(edited(written, change))


def test_a_number_too_large_for_a_float_is_refused(written: Path) -> None:
    written.write_text(written.read_text().replace('"value": 0.5', '"value": 1e999', 1))
    with pytest.raises(EvaluationError, match="must be a finite number or null, got inf"):
        read_evaluation(written)


def test_a_later_versions_keys_and_metrics_are_no_fault(written: Path) -> None:
    def later(tree: Tree) -> None:
        tree["signature"] = "x"
        tree["metrics"]["new"] = 1
        tree["rows"]["novelty@5"] = [0.1, None, 0.3]
        tree["means"]["all"]["novelty@5"] = {"value": 0.2, "n": 2}

    read = read_evaluation(edited(written, later))
    assert read.mean("novelty@5") == 0.2
    assert np.isnan(read.values["novelty@5"][1])


def test_an_infinite_value_is_never_written(found: Evaluation, tmp_path: Path) -> None:
    broken = copy.copy(found)
    object.__setattr__(broken, "bounds", {"policy_leak": math.inf})
    object.__setattr__(broken, "rankings", None)
    with pytest.raises(ValueError, match="JSON compliant"):
        write_evaluation(broken, tmp_path / "e.json")
    assert list(tmp_path.iterdir()) == []


def test_the_configuration_in_the_file_is_one(written: Path) -> None:
    config = settings({"includeTrustLevels": ["learned", "external"]}, harness={})
    assert Config.model_validate(read_evaluation(written).config) == config
