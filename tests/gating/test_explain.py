"""A fault seeded in each of the seven stages is named by the gate, from stored files alone."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.datasets import Dataset, Judgments
from comis_eval.evaluation import evaluate, read_evaluation, write_evaluation
from comis_eval.gating import Explanation, Policy, gate
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stages import budget, dedup, fuse, score, trust
from comis_eval.types import Memory, TrustLevel
from tests.builders import DAY, NOW, memory, query
from tests.evaluation.world import PLAIN
from tests.gating.build import evaluation

WORDS = ("apple", "berry", "cherry", "damson")
MEMORIES = (
    memory("a", "apple pie", created_at=NOW - 9 * DAY),
    memory("twin", "apple pie", created_at=NOW - DAY),
    memory("b", "berry pie", trust_level=TrustLevel.SYSTEM),
    memory("c", "cherry pie"),
    memory("d", "damson pie"),
    memory("web", "apple pie online", trust_level=TrustLevel.EXTERNAL),
)
QUERIES = tuple(query("which pie?", f"q{number:02}", group=f"g{number}") for number in range(24))
POLICY = Policy(metrics={"ndcg@10": 0.01, "context_recall": 0.01}, resamples=300)


class Embedder:
    """Cosine with any query by the first word: apple highest, then in the order of WORDS."""

    name = "by word"
    fingerprint = "1" * 64
    dim = 2
    reportable = True

    def __init__(self, words: Sequence[str] = WORDS) -> None:
        self.words = words

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        found = [
            next((i for i, w in enumerate(self.words) if t.startswith(w)), None) for t in texts
        ]
        cosines = np.array([1.0 if i is None else 0.9 - i / 10 for i in found])
        return np.column_stack([cosines, np.sqrt(1 - cosines**2)]).astype(np.float32)


class Reranker:
    """Scores by the first word, in the order it is told."""

    name = "by word"
    fingerprint = "2" * 64

    def __init__(self, words: Sequence[str] = WORDS) -> None:
        self.words = words

    def score(self, query: str, contents: Sequence[str], *, deadline: Any = None) -> np.ndarray:
        return np.array([0.9 - self.words.index(text.split()[0]) / 10 for text in contents])


def dataset(memories: Sequence[Memory] = MEMORIES) -> Dataset:
    rows = {one.id: row for row, one in enumerate(memories)}
    grades = {"a": 3, "b": 2, "c": 1}
    triples = [(q, rows[m], grade) for q in range(len(QUERIES)) for m, grade in grades.items()]
    return Dataset(
        name="pies",
        version="1",
        memories=tuple(memories),
        queries=QUERIES,
        judgments=Judgments.of(triples, n_queries=len(QUERIES)),
    )


def run(path: Path, *, embedder: Embedder, reranker: Reranker, rag: Mapping[str, Any]) -> Path:
    """Measure and store, as `evaluate --out` does."""
    settings = {"scoring": PLAIN, "minScore": 0.0, "maxResults": 3, **rag}
    config = Config.model_validate({"rag": settings, "harness": {"lanes": ["vector"]}})
    made = dataset()
    retriever = Retriever(made, embedder=embedder, reranker=reranker, cache=None)
    write_evaluation(evaluate(made, config, retriever=retriever, references=False), path)
    return path


def patched(
    module: Any, name: str, change: Callable[..., Any]
) -> Callable[[pytest.MonkeyPatch], None]:
    """A fault in a stage's own code."""
    original = getattr(module, name)

    def seed(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, name, lambda *a, **k: change(original, *a, **k))

    return seed


def upside_down(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return 1.0 - original(*args, **kwargs)


def no_learned(original: Callable[..., Any], ranks: Any, levels: Any) -> Any:
    return original(ranks, levels) & (ranks != TrustLevel.LEARNED.rank)


def newest(original: Callable[..., Any], *args: Any, keep: str) -> Any:
    return original(*args, keep="newest")


def one_only(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    limit = np.ones_like(kwargs.pop("max_results"))
    return original(*args, max_results=limit, **kwargs)


ODD = ("damson", "cherry", "berry", "apple")
RERANKED = {"rerank": {"enabled": True}}
FAULTS: dict[str, dict[str, Any]] = {
    "search": {"embedder": Embedder(ODD)},
    "fuse": {"seed": patched(fuse, "rrf", upside_down)},
    "rerank": {"rag": RERANKED, "reranker": Reranker(ODD)},
    "score": {"seed": patched(score, "boost", upside_down)},
    "trust": {"seed": patched(trust, "allowed", no_learned)},
    "dedup": {"seed": patched(dedup, "drop", newest)},
    "budget": {"seed": patched(budget, "fit", one_only)},
}


def explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> Explanation:
    rag = fault.get("rag", {})
    before = run(tmp_path / "a.json", embedder=Embedder(), reranker=Reranker(), rag=rag)
    if "seed" in fault:
        fault["seed"](monkeypatch)
    after = run(
        tmp_path / "b.json",
        embedder=fault.get("embedder", Embedder()),
        reranker=fault.get("reranker", Reranker()),
        rag=rag,
    )
    verdict = gate(read_evaluation(before), read_evaluation(after), POLICY, files=(before, after))
    assert verdict.outcome == "regression"
    assert verdict.explanation is not None
    return verdict.explanation


@pytest.mark.parametrize("stage", FAULTS)
def test_the_stage_of_a_seeded_fault_is_named(tmp_path, monkeypatch, stage):
    found = explained(tmp_path, monkeypatch, FAULTS[stage])
    assert found.untraced is None
    assert found.stages == {stage: len(QUERIES)}
    assert found.lost == len(QUERIES)
    assert {moved.parting.stage for moved in found.moved if moved.parting} == {stage}


def test_fresh_evaluations_are_explained_without_files():
    made = dataset()
    config = Config.model_validate({"rag": {"scoring": PLAIN}, "harness": {"lanes": ["vector"]}})
    one, two = (
        evaluate(made, config, references=False,
                 retriever=Retriever(made, embedder=embedder, cache=None))
        for embedder in (Embedder(), Embedder(ODD))
    )  # fmt: skip
    found = gate(one, two, POLICY).explanation
    assert found is not None
    assert found.stages == {"search": len(QUERIES)}


def test_without_a_trace_the_queries_are_told_and_why_no_stage_is(tmp_path, monkeypatch):
    before = run(tmp_path / "a.json", embedder=Embedder(), reranker=Reranker(), rag={})
    after = run(tmp_path / "b.json", embedder=Embedder(ODD), reranker=Reranker(), rag={})
    (tmp_path / "a.trace.parquet").unlink()
    found = gate(
        read_evaluation(before), read_evaluation(after), POLICY, files=(before, after)
    ).explanation
    assert found is not None
    assert found.lost == len(QUERIES)
    assert "no trace of the baseline: " in (found.untraced or "")
    assert found.stages == {}


POLICY_OF_HITS = Policy(metrics={"hit@5": 0.0}, resamples=100)


def test_losses_come_first_the_largest_on_top_then_gains():
    a = evaluation({"hit@5": [1.0, 0.9, 0.0, 0.5, 0.2, 0.5]})
    b = evaluation({"hit@5": [0.5, 0.0, 0.3, 0.5, 0.9, 0.0]})
    found = gate(a, b, POLICY_OF_HITS).explanation
    assert found is not None
    assert [moved.query_id for moved in found.moved] == ["q001", "q000", "q005", "q004", "q002"]
    assert (found.lost, found.gained) == (3, 2)
    assert found.moved[0][:5] == ("q001", "x", 0.9, 0.0, -0.9)


def test_the_gravest_figure_is_explained_and_nothing_moved_is_none():
    n = 60
    a = evaluation({"hit@5": np.zeros(n), "mrr@10": np.ones(n)})
    b = evaluation({"hit@5": np.ones(n), "mrr@10": np.zeros(n)})
    both = Policy(metrics={"hit@5": 0.0, "mrr@10": 0.0}, resamples=100)
    found = gate(a, b, both).explanation
    assert found is not None
    assert found.metric == "mrr@10"
    assert gate(a, a, both).explanation is None


def test_followed_are_at_most_fifty_and_all_are_counted():
    a, b = evaluation({"hit@5": np.ones(80)}), evaluation({"hit@5": np.zeros(80)})
    found = gate(a, b, POLICY_OF_HITS).explanation
    assert found is not None
    assert (found.lost, len(found.moved)) == (80, 50)
