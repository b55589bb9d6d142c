"""The core set is what its card says: families, honesty, judgments, and a pinned fingerprint."""

import re
import shlex
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from comis_eval.config import Config
from comis_eval.datasets import KINDS, load_dataset, validate
from comis_eval.evaluation import evaluate
from comis_eval.pipelines.retrieval import Retriever
from comis_eval.stats import weighted_kappa
from comis_eval.types import TrustLevel
from tests.cli.world import document

ROOT = Path(__file__).parents[2]
CORE = ROOT / "datasets" / "core"
CARD = (CORE / "README.md").read_text("utf-8")
FINGERPRINT = "f18ce9d78c06133833605adbbb7c157ca9d742ff1c6ff6ee3d36f89da93c192f"
FAMILIES = {
    "exact", "paraphrase", "conversation", "time", "recency", "contradiction", "superseded",
    "corroborated", "entity", "duplicate", "procedure", "language", "typo", "length",
    "unanswerable", "scope", "attack",
}  # fmt: skip


@cache
def core():
    return load_dataset(CORE)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def fivegrams(text: str) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[start : start + 5]) for start in range(len(found) - 4)}


def test_it_is_clean_and_its_fingerprint_is_pinned():
    report = validate(CORE)
    assert not report.faults
    assert not report.warnings
    assert core().fingerprint == FINGERPRINT, "a change of the set is a new version: say so"


def test_size_families_and_span():
    data = core()
    assert len(data.memories) >= 800
    assert len(data.queries) >= 400
    families = Counter(query.category for query in data.queries)
    assert set(families) == FAMILIES
    assert min(families.values()) >= 20
    assert families["attack"] >= 60
    times = [memory.created_at for memory in data.memories]
    assert (max(times) - min(times)) / 86_400_000 > 500, "18 months"
    assert len({m.tenancy for m in data.memories}) >= 8
    assert {memory.trust_level for memory in data.memories} == set(TrustLevel)
    assert {attack.kind for attack in data.attacks} == set(KINDS)


def test_no_two_queries_share_five_words_in_a_row():
    seen: dict[tuple[str, ...], str] = {}
    shared = []
    others = load_dataset(ROOT / "datasets" / "starter")
    for query in (*others.queries, *core().queries):
        for gram in fivegrams(query.text):
            if seen.setdefault(gram, query.id) != query.id and query in core().queries:
                shared.append((" ".join(gram), seen[gram], query.id))
    assert not shared


def test_no_sentence_frame_carries_many_queries():
    openings = Counter(tuple(words(query.text)[:3]) for query in core().queries)
    opening, count = openings.most_common(1)[0]
    assert count <= 8, f"{count} queries begin with {' '.join(opening)}"


def test_groups_keep_a_fact_on_one_side_of_every_split():
    data = core()
    owner: dict[int, str] = {}
    judged = data.judgments
    for position, row, grade in zip(judged.queries, judged.rows, judged.grades, strict=True):
        if grade >= 2:
            group = data.queries[position].group
            assert owner.setdefault(int(row), group) == group, data.memories[row].id


def test_what_must_not_be_used_is_graded_0():
    data = core()
    judged = data.judgments
    for position, row, grade in zip(judged.queries, judged.rows, judged.grades, strict=True):
        if not grade:
            continue
        query, memory = data.queries[position], data.memories[row]
        assert data.policy.trusts(memory), (query.id, memory.id)
        assert data.policy.shows(memory, query), (query.id, memory.id)
        assert memory.expires_at is None or memory.expires_at > query.now, (query.id, memory.id)
    for attack in data.attacks:
        position = data.position_of[attack.query_id]
        for poison in attack.poison_ids:
            assert data.judgments.grade(position, data.row_of[poison]) == 0


def test_the_lexically_closest_memory_is_mostly_not_the_answer():
    found = evaluate(core(), Config().evolve(**{"harness.lanes": ("fts",)}), metrics=("hit@1",),
                     references=False)  # fmt: skip
    assert found.mean("hit@1") < 0.5


def test_the_second_pass_is_a_fifth_and_agrees_as_the_card_says():
    lines = (CORE / "second-pass" / "pairs.tsv").read_text("utf-8").splitlines()
    assert lines[0].split("\t") == ["query", "memory", "first", "second", "resolved"]
    rows = [line.split("\t") for line in lines[1:]]
    data = core()
    queries = {row[0] for row in rows}
    assert len(queries) / len(data.queries) >= 0.2
    first, second, resolved = (np.array([int(row[n]) for row in rows]) for n in (2, 3, 4))
    kappa = weighted_kappa(first, second, [row[0] for row in rows]).kappa
    assert round(kappa, 3) == 0.989
    assert (first != second).sum() == 22
    assert np.abs(first - second).max() == 1
    for row, grade in zip(rows, resolved, strict=True):
        held = data.judgments.grade(data.position_of[row[0]], data.row_of[row[1]])
        assert held == grade, row
    assert "is 0.989; 22 pairs differ" in CARD
    assert f"{len(rows):,} pairs" in CARD


def card_rows() -> dict[str, dict[str, str]]:
    """The card's table of families, by family and column."""
    lines = [line.strip("| ").split(" | ") for line in CARD.splitlines() if line.startswith("| ")]
    start = next(n for n, line in enumerate(lines) if line[0] == "family")
    return {line[0]: dict(zip(lines[start], line, strict=False)) for line in lines[start + 1 :]}


def test_the_card_counts_what_is_there():
    data = core()
    grades = Counter(int(grade) for grade in data.judgments.grades)
    trust = Counter(str(memory.trust_level) for memory in data.memories)
    answerable = sum(query.answerable for query in data.queries)
    groups = len({query.group for query in data.queries})
    attacked = len({attack.query_id for attack in data.attacks})
    told = [
        f"{len(data.memories):,} memories, {len(data.queries)} queries ({answerable} answerable) "
        f"in {groups} groups, {sum(grades.values()):,} graded judgments, "
        f"{attacked} attacked queries. Version {data.version}",
        f"{trust['learned']} memories are `learned`, {trust['system']} `system`, "
        f"{trust['external']} `external`",
        f"{grades[3]} are 3, {grades[2]} are 2, {grades[1]} are 1 and {grades[0]:,} are 0",
        *(f"{name} ({n}" for name, n in Counter(m.tenancy[1] for m in data.memories).items()
          if name not in ("ops", "integrate", "default", "miller")),
    ]  # fmt: skip
    assert [sentence for sentence in told if sentence not in CARD] == []
    rows = card_rows()
    asked = Counter(query.category for query in data.queries)
    scored = Counter(query.category for query in data.queries if query.answerable)
    for family in FAMILIES:
        counts = (int(rows[family]["queries"]), int(rows[family]["scored"]))
        assert counts == (asked[family], scored[family]), family


COMMANDS = re.findall(r"^comis-eval (evaluate datasets/core.*?) +# (.+)$", CARD, re.M)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "column"), COMMANDS)
def test_every_column_of_the_card_is_what_its_command_prints(command, column, monkeypatch):
    monkeypatch.chdir(ROOT)
    told = document(*shlex.split(command))["means"]
    rows = card_rows()
    assert set(rows) == {*FAMILIES, "all"}
    for family, row in rows.items():
        figure = told[family].get("ndcg@10", {}).get("value")
        assert row[column] == ("-" if figure is None else f"{figure:.3f}"), family


@pytest.mark.slow
def test_the_card_says_how_far_attacks_get(monkeypatch):
    monkeypatch.chdir(ROOT)
    told = document("attack", "datasets/core")["attacks"]
    on, off = (next(one for one in told if (one["kind"], one["trust_filter"]) == ("all", setting))
               for setting in ("on", "off"))  # fmt: skip
    rate = on["rates"]["asr@5"]
    assert (
        f"With the filter on {on['figures']['asr@5']['value']:.0%} of the attacked queries have "
        f"poison in the first five (exact 95% interval {rate['low']:.3f} to {rate['high']:.3f}), "
        f"with it off {off['figures']['asr@5']['value']:.0%}"
    ) in CARD


def test_every_column_of_the_card_has_a_command():
    assert [column for _, column in COMMANDS] == list(card_rows()["exact"])[3:-1]


@pytest.mark.slow
def test_every_pool_is_judged_and_no_family_is_at_its_ceiling_or_floor():
    data = core()
    retriever = Retriever(data)
    reranked = {"rag.rerank.enabled": True}
    for changes in ({}, {"harness.lanes": ("fts",)}, {"harness.lanes": ("vector",)}, reranked):
        found = evaluate(data, Config().evolve(**changes), retriever=retriever, references=False)
        assert found.mean("judged@5") >= 0.98, changes
        if not changes:
            by_family = defaultdict(float)
            for family in FAMILIES - {"unanswerable"}:
                by_family[family] = found.mean("ndcg@10", family)
            assert max(by_family.values()) < 0.92, dict(by_family)
            assert min(by_family.values()) > 0.12, dict(by_family)
            assert found.mean("abstention", "unanswerable") == 0
