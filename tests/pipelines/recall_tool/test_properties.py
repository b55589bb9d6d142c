"""Whatever is asked: the answer is a slice of the whole, and what is not eligible is nothing.

The tool is compared with itself written naively: one memory at a time, in plain Python.
"""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.pipelines.recall_tool.arms import request_for
from comis_eval.stages.recall_tool import key_match
from comis_eval.store.loading import filled
from comis_eval.types import Filters, Tenancy
from tests.builders import DAY, NOW, query
from tests.pipelines.recall_tool.world import ME, SHE, THERE, WordEmbedder, keys, mine, tool

WORDS = ["kiln", "glaze", "copper", "red", "the", "log", "fire"]
TAGS = ["x", "y", "kind:pinned", "kind:session-checkpoint"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
AGES = st.integers(0, 40)
LANES = st.sampled_from([("fts",), ("vector",), ("fts", "vector")])


@st.composite
def shelves(draw):
    """Memories of two agents and a second workspace, some retired, some alike."""
    return [
        mine(
            f"{number:02}",
            draw(TEXT),
            key=f"key-{draw(st.sampled_from(WORDS))}-{number:02}",
            tenancy=draw(st.sampled_from([ME, ME, SHE, THERE])),
            scope=draw(st.sampled_from(["project", "workspace", "agent", None])),
            project_id=draw(st.sampled_from([None, "p", "q"])),
            created_by=draw(st.sampled_from([None, "me", "she"])),
            tags=tuple(draw(st.lists(st.sampled_from(TAGS), max_size=2, unique=True))),
            created_at=NOW - draw(AGES) * DAY,
            expires_at=draw(st.sampled_from([None, None, NOW - DAY, NOW + DAY])),
            archived=draw(st.sampled_from([None, False, True])),
            status=draw(st.sampled_from([None, "active", "stale", "superseded", "archived"])),
            importance=draw(st.sampled_from([None, 0.2, 0.3, 0.5, 1.0])),
            relevance=draw(st.sampled_from([None, 0.3, 1.0])),
        )
        for number in range(draw(st.integers(1, 14)))
    ]


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "tags_any": st.lists(st.sampled_from(TAGS), max_size=2, unique=True),
        "scope": st.sampled_from(["workspace", "project", "agent", "all"]),
        "project_id": st.sampled_from(["p", "q", "none"]),
        "created_by": st.sampled_from(["me", "she"]),
        "since": AGES.map(lambda age: _moment(NOW - age * DAY)),
        "until": AGES.map(lambda age: _moment(NOW - age * DAY)),
        "relevance_min": st.sampled_from([0.0, 0.5, 0.95]),
        "min_importance": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        "order_by": st.sampled_from(
            ["created_at", "created_at:asc", "relevance", "decayed_relevance:desc"]
        ),
        "recall_profile": st.sampled_from(["multi-session", "factual", "default"]),
        "apply_recency_decay": st.booleans(),
        "include_expired": st.booleans(),
        "include_archived": st.booleans(),
        "full": st.booleans(),
    },
)
FILTER_TAGS = st.lists(st.sampled_from(TAGS), max_size=1)


def _moment(ms):
    return f"{np.datetime64(ms, 'ms')}Z"


def asked(text, tags, arguments, **more):
    parameters = {**arguments, **more}
    return query(text, tenancy=ME, filters=Filters(tags=tuple(tags), parameters=parameters))


# --- the same, written naively --------------------------------------------------------------


def allowed(memory, request, *, ranked):
    """Whether I may be shown a memory; ``ranked``: as a hit, else as a pinned row."""
    ok = memory.tenancy.tenant_id == ME.tenant_id
    ok &= memory.scope != "agent" or memory.created_by == ME.agent_id
    ok &= request.include_expired or memory.expires_at is None or memory.expires_at > NOW
    ok &= request.include_archived or not (memory.archived or memory.status == "archived")
    ok &= request.include_superseded or memory.status != "superseded"
    ok &= request.scope in (None, memory.scope)
    ok &= request.created_by in (None, memory.created_by)
    ok &= request.since is None or memory.created_at >= request.since
    ok &= request.until is None or memory.created_at <= request.until
    ok &= set(request.tags) <= set(memory.tags)
    ok &= not request.tags_any or bool(set(request.tags_any) & set(memory.tags))
    if ranked:
        ok &= request.project_id in (None, memory.project_id)
        ok &= np.float32(memory.importance) >= np.float32(request.min_importance)
        return ok
    pinned = "kind:pinned" in memory.tags and memory.scope != "agent"
    here = memory.scope == "workspace" or (
        request.project_id is not None and memory.project_id == request.project_id
    )
    return ok and pinned and here


STOPPED = {"the"}


def bm25(memories, words):
    """Scores of those that hold some word, and of those that hold all."""
    texts = {m.id: (m.key.replace("-", " ") + " " + m.content).split() for m in memories}
    average = sum(map(len, texts.values())) / max(len(texts), 1)
    scores = {}
    for word in words:
        holders = [i for i, text in texts.items() if word in text]
        ratio = (len(texts) - len(holders) + 0.5) / (len(holders) + 0.5)
        idf = max(math.log(ratio), 1e-6)
        for i in holders:
            tf, size = texts[i].count(word), len(texts[i])
            gain = idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * size / average))
            scores[i] = scores.get(i, 0.0) + gain
    complete = {i for i, text in texts.items() if words and set(words) <= set(text)}
    return scores, complete


def best_first(scores, memories):
    held = {m.id: m for m in memories}

    def place(i):
        return (-round(scores[i], 9), -held[i].created_at, held[i].key, i)

    return sorted(scores, key=place)


def arms(memories, text, lanes):
    found = {}
    words = list(dict.fromkeys(w for w in text.split() if w not in STOPPED))
    if "fts" in lanes:
        some, complete = bm25(memories, words)
        scores = {i: some[i] for i in complete}
        if len(complete) < 3:
            scores = {i: s * (1 if i in complete else 0.8) for i, s in some.items()}
        found["fts"] = best_first(scores, memories)
    if "vector" in lanes:
        model = WordEmbedder()

        def direction(words):
            vector = model.embed([words])[0].astype(float)
            return vector / np.linalg.norm(vector)

        question = direction(text)
        scores = {
            m.id: float(question @ direction(" ".join((m.key, *m.tags)) + " " + m.content))
            for m in memories
        }
        found["vector"] = best_first(scores, memories)
    return found


def naive(memories, text, request, lanes):
    """Ids of the whole list."""
    kept = [m for m in memories if allowed(m, request, ranked=True)]
    ranks = arms(kept, text, lanes)
    weights = {"fts": 0.3, "vector": 0.7}
    most = sum(weights[name] / 61 for name, ids in ranks.items() if ids)
    score = dict.fromkeys((m.id for m in kept), 0.0)
    raw = {}
    for name, ids in ranks.items():
        for rank, i in enumerate(ids, 1):
            raw[i] = raw.get(i, 0.0) + weights[name] / (60 + rank)
    score = {i: value / most for i, value in raw.items()}
    alive = [m for m in kept if m.id in score and score[m.id] >= request.relevance_min - 1e-12]
    if not alive:
        return []
    if ranks.get("vector") and max(raw[m.id] for m in alive) * 61 < 0.73:
        wanted = {word for word in text.split() if len(word) >= 4}
        texts = {
            w
            for m in alive
            for w in " ".join((m.key, m.content, *m.tags)).replace("-", " ").replace(":", " ")
            .split()
        }  # fmt: skip
        if wanted and not wanted & texts:
            return []
    fresh = {"stale": 0.25, "superseded": 0.1, "archived": 0.0}
    fading = {
        m.id: fresh.get(m.status, 1.0)
        * (0.95 ** (max(NOW - m.created_at, 0) / DAY) if request.decay else 1)
        for m in alive
    }
    final = {m.id: score[m.id] * fading[m.id] for m in alive}
    plane = {
        "created_at:desc": lambda m: m.created_at,
        "created_at:asc": lambda m: -m.created_at,
        "relevance:desc": lambda m: score[m.id],
        "decayed_relevance:desc": lambda m: final[m.id],
    }
    if request.order_by is None:
        alive.sort(key=lambda m: (-final[m.id], -m.created_at, m.key))
        same = (request.scope is not None) + (request.project_id is not None)
        boost = {m.id: key_match.boost(m.key, text) + same for m in alive}
        lead = sorted((m for m in alive if boost[m.id]), key=lambda m: -boost[m.id])
        rest = [m for m in alive if not boost[m.id]]
        alive = lead
        while rest:
            band = [m for m in rest if final[rest[0].id] - final[m.id] <= 0.061]
            rest = rest[len(band) :]
            alive += sorted(band, key=lambda m: -m.importance)
    else:
        first = plane[request.order_by]
        alive.sort(key=lambda m: (-first(m), -score[m.id], -m.created_at, m.key))
    pinned = [m for m in memories if allowed(m, request, ranked=False)]
    pinned.sort(key=lambda m: (-m.importance, -m.updated_at, m.key))
    return [m.id for m in pinned] + [m.id for m in alive if m not in pinned]


def whole(recall, text, tags, arguments):
    paged = recall.paged([asked(text, tags, arguments)])
    corpus = paged.table.corpus
    return [corpus.memories[row].id for row in paged.lists[0].rows]


@given(shelf=shelves(), text=TEXT, tags=FILTER_TAGS, arguments=ARGUMENTS, lanes=LANES)
@settings(max_examples=250, derandomize=True, deadline=None)
def test_the_list_is_what_a_naive_tool_would_say(shelf, text, tags, arguments, lanes):
    recall = tool(shelf, lanes=lanes)
    request = request_for(asked(text, tags, arguments), recall.config)
    expected = naive([filled(m) for m in shelf], text, request, lanes)
    assert whole(recall, text, tags, arguments) == expected


@given(shelf=shelves(), text=TEXT, tags=FILTER_TAGS, arguments=ARGUMENTS, lanes=LANES,
       limit=st.integers(1, 6), graph=st.booleans(), data=st.data())  # fmt: skip
@settings(max_examples=120, derandomize=True, deadline=None)
def test_pages_are_slices_of_the_list_and_never_longer_than_the_limit(
    shelf, text, tags, arguments, lanes, limit, graph, data
):
    ids = [m.id for m in shelf]
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=6))
    edges = [(a, b, 0.8) for a, b in pairs if a != b]
    recall = tool(shelf, lanes=lanes, edges=edges, settings={"graph": {"enabled": graph}})
    listed = whole(recall, text, tags, {**arguments, "limit": limit})
    assert len(set(listed)) == len(listed)
    named = {m.id: m.key.removeprefix("key-") for m in shelf}
    seen, offset = [], 0
    while offset is not None:
        page = recall.recall(asked(text, tags, arguments, limit=limit, offset=offset))
        assert page["total"] == len(page["items"]) <= limit
        seen += keys(page)
        offset = page["next_offset"]
    assert seen == [named[i] for i in listed]
    assert not {m.id for m in shelf if not visible(m)} & set(listed)


def visible(memory):
    one = filled(memory)
    return one.tenancy.tenant_id == "t" and (one.scope != "agent" or one.created_by == "me")


@given(shelf=shelves(), text=TEXT, tags=FILTER_TAGS, arguments=ARGUMENTS, lanes=LANES,
       more=shelves())  # fmt: skip
@settings(max_examples=150, derandomize=True, deadline=None)
def test_a_memory_that_is_not_eligible_changes_nothing(shelf, text, tags, arguments, lanes, more):
    recall = tool(shelf, lanes=lanes)
    request = request_for(asked(text, tags, arguments), recall.config)
    others = [
        replace(m, id=f"more{m.id}", key=f"{m.key}-more")
        for m in more
        if not any(allowed(filled(m), request, ranked=ranked) for ranked in (True, False))
    ]
    before = recall.recall(asked(text, tags, arguments))
    assert tool([*others, *shelf], lanes=lanes).recall(asked(text, tags, arguments)) == before


@given(shelf=shelves(), texts=st.lists(TEXT, min_size=2, max_size=4), arguments=ARGUMENTS,
       lanes=LANES)  # fmt: skip
@settings(max_examples=60, derandomize=True, deadline=None)
def test_a_query_is_answered_alike_alone_and_among_others(shelf, texts, arguments, lanes):
    recall = tool(shelf, lanes=lanes)
    agents = [ME, SHE, Tenancy("nobody")]
    asked_ = [
        replace(
            asked(text, (), arguments if n % 2 else {}), id=f"q{n}", tenancy=agents[n % 3]
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    together = recall.paged(asked_)
    for n, one in enumerate(asked_):
        alone = recall.paged([one])
        assert alone.lists[0] == together.lists[n]
        assert alone.rankings.context_chars[0] == together.rankings.context_chars[n]
