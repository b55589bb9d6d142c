"""Parts of an evaluation file that nothing else says twice must at least be what they can be."""

import json
from pathlib import Path
from typing import Any

import pytest

from comis_eval.errors import EvaluationError
from comis_eval.evaluation import read_evaluation, write_evaluation
from tests.evaluation.world import measured, settings, world

LEVELS = ["system", "learned", "external"]

LEAK = {"query_id": "q1", "memory_id": "m1", "stage": "trust", "why": "trust"}
EDITS: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "a lane's count as text": (("lanes", "vector"), "3", r"lanes\.vector must be an integer"),
    "more hits than queries": (("lanes", "vector"), 9, r"lanes\.vector must be .* \[0, 3\]"),
    "a negative count": (("counts", "failed"), -1, r"counts\.failed must be an integer in \[0"),
    "a count that is true": (("counts", "failed"), True, "got True"),
    "a promise nobody knows": (("enforces",), ["honesty"], "enforces holds 'honesty'"),
    "a leak of no kind": (("leaks",), [{**LEAK, "why": "x"}], r"leaks\[0\]\.why is 'x'"),
    "a leak without a query": (("leaks",), [{"why": "trust"}], "KeyError: 'query_id'"),
    "a leak that no row counts": (
        ("leaks",), [LEAK], "leaks lists 1 queries.*'q1' is in one",
    ),
    "a leak without a memory": (
        ("leaks",), [{"query_id": "q1", "why": "trust"}], "KeyError: 'memory_id'",
    ),
    "a leak at a stage that is no text": (
        ("leaks",), [{**LEAK, "stage": 3}], r"leaks\[0\]\.stage must be a text",
    ),
    "a leak of no memory": (
        ("leaks",), [{**LEAK, "memory_id": None}], r"leaks\[0\]\.memory_id must be a text",
    ),
    "means that were taken out": (("means", "all"), {}, "means.all lacks"),
    "a count that is none": (("rows", "laundered", 0), 0.4, "rows.laundered is 0.4 for"),
    "a count below 0": (("rows", "laundered", 0), -1, "rows.laundered is -1 for"),
    "a latency without p95": (("latency_ms",), {"p50": 1.0}, "KeyError: 'p95'"),
    "a latency of nothing": (
        ("latency_ms",), {"p50": 1.0, "p95": None, "p99": 2.0}, r"latency_ms\.p95 must be a finite",
    ),
    "a fingerprint that is none": (("dataset", "fingerprint"), 7, "dataset.fingerprint must be"),
    "k0 of 0": (("metrics", "k0"), 0, r"metrics\.k0 must be an integer in \[1"),
    "a weight above 1": (("metrics", "utility", "unanswerableWeight"), 2, "unanswerableWeight"),
    "headline as text": (("metrics", "headline"), "x", "headline must be a list of texts"),
    "another utility": (("means", "all", "utility", "value"), 0.9, r"means\.all\.utility is 0\.9"),
}  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "e.json"
    write_evaluation(measured(world()), path)
    return path


@pytest.mark.parametrize(("keys", "value", "said"), EDITS.values(), ids=EDITS)
def test_an_edit_is_refused_with_the_reason(written, keys, value, said) -> None:
    tree = json.loads(written.read_text())
    inner = tree
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    written.write_text(json.dumps(tree))
    with pytest.raises(EvaluationError, match=f"e.json: damaged or edited by hand.*{said}"):
        read_evaluation(written)


def test_a_leak_that_was_taken_off_the_list_is_missed(tmp_path: Path) -> None:
    leaky = measured(world(), settings({"includeTrustLevels": LEVELS}))
    assert leaky.leaks
    write_evaluation(leaky, tmp_path / "e.json")
    assert read_evaluation(tmp_path / "e.json").leaks == leaky.leaks
    tree = json.loads((tmp_path / "e.json").read_text())
    (tmp_path / "e.json").write_text(json.dumps({**tree, "leaks": []}))
    with pytest.raises(EvaluationError, match=r"leaks lists 0 queries, rows\.policy_leak counts"):
        read_evaluation(tmp_path / "e.json")
