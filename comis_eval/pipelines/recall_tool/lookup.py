"""The two tools that look up instead of searching: one memory by key, a project's memories.

Nothing is ranked, and no gate withholds anything; who may see what is decided by the same
masks as in a search. Source: specification of the recall tool, sections 0 and 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from comis_eval.errors import RequestError
from comis_eval.pipelines.recall_tool.answer import stored
from comis_eval.stages.recall_tool import checks
from comis_eval.stages.recall_tool.request import MAX_OFFSET, Request
from comis_eval.stages.recall_tool.view import compact
from comis_eval.store.tool_corpus import Caller, ToolCorpus
from comis_eval.text import printable

PAGE = 200
"""Memories of a project that one answer holds at most."""


def get_memory(
    corpus: ToolCorpus, caller: Caller, arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Return the whole memory that has a key.

    Several may have it, in different scopes or projects: current ones come before replaced
    ones, then the one written last; the others are listed in ``same_key``.

    Raises:
        RequestError: If an argument is not allowed, or the caller sees no such memory.
    """
    key = checks.checked(arguments, {"key": checks.text}, ("key",))["key"]
    seen = corpus.visible(caller, Request(query="", limit=1, include_superseded=True))
    rows = [row for row in np.flatnonzero(seen).tolist() if corpus.memories[row].key == key]
    if not rows:
        raise RequestError(
            f"there is no memory with key {printable(key, limit=80)!r} that you may see; keys are "
            "matched exactly, so find one with recall"
        )
    rows.sort(
        key=lambda row: (
            corpus.memories[row].status == "superseded",
            -int(corpus.updated_at[row]),
            -int(corpus.created_at[row]),
            corpus.memories[row].id,
        )
    )
    first, *others = (stored(corpus, row) for row in rows)
    if others:
        names = ("id", "scope", "project_id", "status", "updated_at")
        first["same_key"] = [{n: other[n] for n in names if n in other} for other in others]
    return first


def get_project_knowledge(
    corpus: ToolCorpus, caller: Caller, arguments: Mapping[str, object]
) -> dict[str, Any]:
    """Return a project's live memories in short, the most important first, 200 at most.

    Raises:
        RequestError: If an argument is not allowed.
    """
    given = checks.checked(arguments, PROJECT_CHECKS, ("project_id",))
    project, offset = given["project_id"], given.get("offset", 0)
    request = Request(query="", limit=1, scope="project", project_id=project)
    rows = np.flatnonzero(corpus.visible(caller, request))
    keys = (corpus.key_rank[rows], -corpus.updated_at[rows], -corpus.importance[rows])
    rows = rows[np.lexsort(keys)]
    page = rows[offset : offset + PAGE].tolist()
    answer: dict[str, Any] = {
        "project_id": project,
        "items": [compact(stored(corpus, row)) for row in page],
        "total": len(page),
        "limit": PAGE,
        "offset": offset,
        "next_offset": offset + PAGE if offset + PAGE < len(rows) else None,
    }
    if not len(rows):
        answer["explanation"] = (
            "no live memory of this project that you may see; recall finds other memories"
        )
    return answer


PROJECT_CHECKS: dict[str, checks.Check] = {
    "project_id": checks.text,
    "offset": checks.integer(0, MAX_OFFSET),
}
