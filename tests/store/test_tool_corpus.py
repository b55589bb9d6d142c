"""Who may be shown which memory."""

import numpy as np
import pytest

from comis_eval.stages.recall_tool.request import Request
from comis_eval.store.tool_corpus import Caller, ToolCorpus, Views
from comis_eval.types import Tenancy
from tests.builders import DAY, NOW, memory
from tests.golden_data import cases

HERE = Tenancy("t", "a")


def seen(memories, *, tenancy=HERE, by_agent=False, **asked):
    corpus = ToolCorpus.of(memories, by_agent=by_agent)
    mask = corpus.visible(Caller(tenancy, NOW), Request(query="q", limit=5, **asked))
    return [m.id for m, there in zip(corpus.memories, mask.tolist(), strict=True) if there]


@pytest.mark.parametrize("case", cases("recall-tool", "search_filter"), ids=lambda c: c["name"])
def test_golden_search_filter(case):
    wanted, held = case["input"]["filter"], case["input"]["memory"]
    one = memory("m", scope=held["scope"], tags=tuple(held["tags"]), tenancy=HERE)
    found = seen(
        [one],
        scope=wanted["scope"] or None,
        tags=tuple(wanted["tags"]),
        tags_any=tuple(wanted["tags_any"]),
    )
    assert bool(found) == case["expected"]


def mine(id_, **fields):
    return memory(id_, tenancy=HERE, **fields)


def test_a_row_of_agent_scope_is_its_authors_alone():
    rows = [
        mine("own", scope="agent"),
        mine("hers", scope="agent", created_by="b"),
        memory("given", scope="agent", created_by="a", tenancy=Tenancy("t", "b")),
        mine("shared", scope="workspace", created_by="b"),
    ]
    assert seen(rows) == ["own", "given", "shared"]
    assert seen(rows, tenancy=Tenancy("t", "b")) == ["hers", "shared"]
    assert seen(rows, scope="agent") == ["own", "given"]
    assert seen(rows, created_by="b") == ["shared"]
    assert seen(rows, tenancy=Tenancy("t", None)) == ["shared"]


def test_a_workspace_is_a_tenant_or_one_agent_of_it():
    rows = [mine("here"), memory("beside", tenancy=Tenancy("t", "b")), memory("far")]
    assert seen(rows) == ["here", "beside"]
    assert seen(rows, by_agent=True) == ["here"]
    assert seen(rows, tenancy=Tenancy("nobody", "a")) == []


def test_what_is_retired_counts_only_when_it_is_asked_for():
    rows = [
        mine("live"), mine("late", expires_at=NOW), mine("filed", archived=True),
        mine("shut", status="archived"), mine("old", status="superseded"),
    ]  # fmt: skip
    assert seen(rows) == ["live"]
    assert seen(rows, include_expired=True) == ["live", "late"]
    assert seen(rows, include_archived=True) == ["live", "filed", "shut"]
    assert seen(rows, include_superseded=True) == ["live", "old"]


def test_times_are_inclusive_at_both_ends():
    rows = [mine("m", created_at=NOW - DAY)]
    assert seen(rows, since=NOW - DAY, until=NOW - DAY) == ["m"]
    assert seen(rows, since=NOW - DAY + 1) == seen(rows, until=NOW - DAY - 1) == []


def test_a_project_is_taken_strictly_and_only_project_rows_have_one():
    rows = [
        mine("p", project_id="p"), mine("q", project_id="q"), mine("none"),
        mine("wide", scope="workspace", project_id="p"),
    ]  # fmt: skip
    assert seen(rows, project_id="p") == ["p"]
    assert seen(rows) == ["p", "q", "none", "wide"]


def test_the_lowest_importance_passes_the_default_bound():
    rows = [mine("m", tags=("kind:session-checkpoint",))]
    assert seen(rows, min_importance=0.3) == ["m"]
    assert seen(rows, min_importance=0.31) == []


def test_pinned_rows_need_no_importance_but_scope_tags_times_and_life():
    def pinned(corpus_rows, **asked):
        corpus = ToolCorpus.of(corpus_rows)
        rows = corpus.pinned(Caller(HERE, NOW), Request(query="q", limit=5, **asked))
        return [corpus.memories[row].id for row in rows.tolist()]

    def pin(id_, **fields):
        return mine(id_, tags=("kind:pinned", *fields.pop("more", ())), **fields)

    rows = [
        pin("low", scope="workspace", importance=0.1),
        pin("high", scope="workspace", importance=0.9, more=("red",)),
        pin("project", project_id="p"),
        pin("agent", scope="agent"),
        pin("gone", scope="workspace", archived=True),
        pin("expired", scope="workspace", expires_at=NOW),
    ]
    assert pinned(rows) == ["high", "low"]
    assert pinned(rows, min_importance=1.0) == ["high", "low"]
    assert pinned(rows, project_id="p") == ["project", "high", "low"]
    assert pinned(rows, tags=("red",)) == ["high"]
    assert pinned(rows, scope="project") == []
    assert pinned(rows, until=NOW - 2 * DAY) == []
    assert pinned([mine("m")]) == []


def test_calls_that_ask_alike_share_a_view():
    corpus = ToolCorpus.of([mine("m"), mine("n", tags=("x",))])
    requests = [
        Request(query="a", limit=1), Request(query="b", limit=9, offset=3),
        Request(query="a", limit=1, tags=("x",)),
    ]  # fmt: skip
    views = Views.of(corpus, [Caller(HERE, NOW)] * 3, requests)
    assert views.which.tolist() == [0, 0, 1]
    assert views.row(2).tolist() == [False, True]
    assert views.allow(np.array([0, 2]), np.array([0, 0])).tolist() == [True, False]
