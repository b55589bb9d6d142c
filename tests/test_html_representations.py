"""What notebooks show of our records: nothing that a memory, an id or a label says is obeyed."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.comparison import compare
from comis_eval.datasets import Attack, without_poison
from comis_eval.evaluation import measure_attacks
from comis_eval.gating import gate
from comis_eval.pipelines.memory_recall import MemoryRecall
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.text import html_table, notebook_html
from comis_eval.tuning.sweep import SweepPlan, sweep
from comis_eval.tuning.whatif import WhatIf
from tests.evaluation.world import MEMORIES, QUERIES, HandEmbedder, measured, settings, world
from tests.tuning.worlds import ALPHAS, FTS, stale

MARKUP = "<script>alert(1)</script><img/src=x/onerror=alert(2)>&quot;\"'`$\\href{javascript:a}{b}$"
STEERING = "\x1b[2J\x1b]8;;http://x\x07\u202etxet\u202c\u200b\x9b31m\x00"
HOSTILE = f"{MARKUP} {STEERING}\n</td></table></div><iframe src=x>"
HOSTILE_ID = "".join(c for c in MARKUP if c != " ") + "\u202e"
"""What a dataset's file may have for an id: no white space, no control characters."""

ALLOWED = {
    "div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "caption",
}  # fmt: skip
ATTRIBUTES = {"class", "scope", "tabindex"}


class Reader(HTMLParser):
    """Collects the elements, attributes and text that a browser would see."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl):
        raise AssertionError(f"a declaration: {decl}")


def check(markup: str) -> str:
    """Refuse whatever is not ours; return the text that is seen."""
    read = Reader(markup)
    assert read.names <= ALLOWED
    assert read.attributes <= ATTRIBUTES
    assert not read.open
    assert markup.startswith('<div class="tex2jax_ignore mathjax_ignore">')
    bad = [
        c for c in read.text if (ord(c) < 32 and c not in "\n\t") or c in "\x9b\u202e\u202c\u200b"
    ]
    assert not bad
    return read.text


def hostile_world():
    memories = [replace(MEMORIES[0], content=HOSTILE), *MEMORIES[1:]]
    ids = {memory.id: f"{memory.id}{HOSTILE_ID}" for memory in memories}
    memories = [replace(m, id=ids[m.id]) for m in memories]
    queries = [
        replace(QUERIES[0], id=f"q1{HOSTILE_ID}", text=HOSTILE, category=HOSTILE),
        *QUERIES[1:],
    ]
    return world(
        memories,
        queries,
        {(queries[0].id, ids["b"]): 2, (queries[0].id, ids["w"]): 0, ("q2", ids["a"]): 1},
        description=HOSTILE,
        judged_by=HOSTILE,
        licence=HOSTILE,
        attacks=(Attack(queries[0].id, (ids["w"],), HOSTILE_ID),),
    )


@pytest.fixture(scope="module")
def dataset():
    return hostile_world()


@pytest.fixture(scope="module")
def retriever(dataset):
    return Retriever(dataset, embedder=HandEmbedder(), cache=None)


def test_a_dataset(dataset):
    told = check(dataset._repr_html_())
    assert "<script>alert(1)</script>" in told
    assert "5 memories (1 external, 3 learned, 1 system), 3 queries, 1 attacks" in told


def test_a_recall(dataset, retriever):
    recall = MemoryRecall(retriever, settings())
    told = check(recall.recall(dataset.queries[0])._repr_html_())
    assert "<iframe src=x>" in told
    assert "4 memories injected" not in told, "the external one is filtered"
    assert "trust_filtered" in told


def test_a_long_recall_says_what_it_leaves_out():
    dataset = stale(4, width=30)
    answer = MemoryRecall(Retriever(dataset, cache=None), FTS).recall(dataset.queries[0])
    left = len(answer.candidates) - 15
    assert left > 0
    assert f"... and {left} more: .explain() has all of them" in check(answer._repr_html_())


def test_an_evaluation(dataset, retriever):
    evaluation = measured(dataset, retriever=retriever)
    noted = replace(evaluation, notes=(HOSTILE,), lanes={MARKUP: 0})
    told = check(noted._repr_html_())
    assert "is dead: no query has a hit" in told
    assert f"{evaluation.mean('ndcg@10'):.3f}" in told


def test_an_undefined_figure_is_a_dash_not_a_zero(dataset, retriever):
    evaluation = measured(dataset, retriever=retriever)
    assert np.isnan(evaluation.mean("stale@5"))
    assert "stale@50-" in check(evaluation._repr_html_())


def test_a_comparison_and_a_verdict(dataset, retriever):
    first = measured(dataset, retriever=retriever)
    second = measured(dataset, settings({"includeTrustLevels": ["system"]}), retriever=retriever)
    compared = compare(first, second, resamples=200)
    told = check(replace(compared, notes=(HOSTILE,))._repr_html_())
    assert "difference, higher is better" in told
    verdict = gate(first, second, labels=(HOSTILE, "new"))
    told = check(replace(verdict, notes=(HOSTILE,))._repr_html_())
    assert told.startswith(f"{verdict.outcome}: new against <script>")


def test_figures_of_attacks(dataset, retriever):
    clean = Retriever(without_poison(dataset), embedder=HandEmbedder(), cache=None)
    found = measure_attacks(dataset, settings(), retriever=retriever, clean=clean)
    for figures in found:
        told = check(figures._repr_html_())
        assert told.startswith(f"Attack {HOSTILE_ID[:-1]}")
        assert "displacement" in told


def test_a_sweep():
    dataset = stale(8)
    plan = SweepPlan(name="s", trials=4, space=ALPHAS, sampler="random", ledger=None)
    result = sweep(dataset, FTS, plan, retriever=Retriever(dataset, cache=None))
    told = check(replace(result, name=HOSTILE, notes=(HOSTILE,))._repr_html_())
    assert result.decision.sentence in told
    assert "4 of 4 trials" in told
    assert "held out" in told
    assert repr(result) == f"<SweepResult s: 4 trials, {result.decision.outcome}>"


def test_what_if(dataset, retriever):
    recall = MemoryRecall(retriever, settings())
    what_if = WhatIf.of(recall, dataset.queries[0], ALPHAS)
    told = check(what_if.html({"rag.scoring.recencyAlpha": 0.5}))
    assert told.startswith("q1<script>")
    assert "rag.scoring.recencyAlpha 0.0 -> 0.5" in told
    assert check(what_if.sliders().children[-1].value) == check(what_if.html())


def test_the_table_that_explains_holds_no_control_characters(dataset, retriever):
    frame = MemoryRecall(retriever, settings()).explain(dataset.queries[0])
    shown = frame.to_html(escape=True)
    read = Reader(shown)
    assert read.names <= ALLOWED
    assert not [c for c in read.text + str(frame) if c in "\x1b\x9b\u202e\u202c\u200b\x00"]


def test_plain_representations_are_one_short_line(dataset, retriever):
    answer = MemoryRecall(retriever, settings()).recall(dataset.queries[0])
    for told in (repr(replace(dataset, version=HOSTILE[:100])), repr(answer)):
        assert len(told) < 400
        assert not [c for c in told if ord(c) < 32 or c in "\x9b\u202e\u202c\u200b"]
    assert repr(dataset) == "<Dataset world 1: 5 memories, 3 queries>"
    assert repr(answer).endswith(": 3 memories injected, 4 candidates>")


@given(st.text(st.characters(codec=None), max_size=60), st.text(max_size=20))
def test_no_text_becomes_markup(text, other):
    told = Reader(notebook_html(text, other, html_table([other], [[text]], caption=text)))
    assert told.names <= ALLOWED
    assert told.attributes <= ATTRIBUTES
    assert not told.open


def test_no_representation_is_without_its_test():
    package = Path(__file__).parents[1] / "comis_eval"
    having = {p.stem for p in package.rglob("*.py") if "def _repr_html_" in p.read_text("utf-8")}
    assert having == {
        "attacked", "dataset", "evaluation", "evaluations", "sweep", "types", "verdict",
    }  # fmt: skip
