"""One call of the recall tool: its arguments checked, and every default filled in.

The order in which silence is filled: the caller's word, the profile's, the default. ``null``
is silence. Nothing is clamped: what lies outside is refused, all of it at once.
Source: specification of the recall tool, sections 0 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from comis_eval.config import MAX_LIMIT, ORDERS, RecallToolConfig, shown
from comis_eval.stages.recall_tool import checks
from comis_eval.stages.recall_tool.order_by import canonical, decays
from comis_eval.stages.recall_tool.profile import PROFILES, classify, first_said, preset

SCOPES = ("workspace", "project", "agent", "all")
COMPACT_LIMIT = 5
WIDE_LIMIT = 10
"""Rows when whole items, or a profile, are asked for."""

MAX_OFFSET = 2**53 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one call asks for.

    Attributes:
        query: What to look for.
        limit: Rows of the answer at most, 1..50.
        offset: Rows of the list to pass over, >= 0.
        full: Whether items are whole.
        tags: A memory must have all of them.
        tags_any: A memory must have one of them, when there are any.
        scope: workspace, project or agent; None: any.
        project_id: Only this project's rows; None: any.
        created_by: Only this author's rows; None: any.
        since, until: Earliest and latest time of writing, ms, inclusive; None: any.
        relevance_min: Least relevance, in [0, 1].
        min_importance: Least importance, in [0, 1].
        order_by: One of ORDERS; None: by rank.
        profile: The profile that filled in what was not said.
        decay: Whether age takes from the score.
        include_expired, include_archived, include_superseded: Rows that count too.
    """

    query: str
    limit: int
    offset: int = 0
    full: bool = False
    tags: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    scope: str | None = None
    project_id: str | None = None
    created_by: str | None = None
    since: int | None = None
    until: int | None = None
    relevance_min: float = 0.0
    min_importance: float = 0.0
    order_by: str | None = None
    profile: str = "default"
    decay: bool = False
    include_expired: bool = False
    include_archived: bool = False
    include_superseded: bool = False


def request_of(arguments: Mapping[str, object], settings: RecallToolConfig) -> Request:
    """Check the arguments of a call and fill in what they leave open.

    Args:
        arguments: By the names of the tool's description.
        settings: Profiles and defaults.

    Raises:
        RequestError: If a name is unknown, or values are not allowed: all of them at once.
    """
    given = checks.checked(arguments, _CHECKS, ("query",))
    query, profile = given["query"], given.get("recall_profile")
    chosen = profile or classify(query)
    fill = preset(chosen, settings)
    order = first_said(given.get("order_by"), fill.order_by)
    wide = given.get("full", False) or profile is not None
    limit = first_said(given.get("limit"), fill.limit, WIDE_LIMIT if wide else COMPACT_LIMIT)
    floor_ = first_said(given.get("min_importance"), fill.min_importance, settings.min_importance)
    scope = given.get("scope")
    return Request(
        query=query,
        limit=limit or COMPACT_LIMIT,
        offset=given.get("offset", 0),
        full=given.get("full", False),
        tags=given.get("tags", ()),
        tags_any=given.get("tags_any", ()),
        scope=None if scope == "all" else scope,
        project_id=given.get("project_id"),
        created_by=given.get("created_by"),
        since=_whole(given.get("since"), ceil),
        until=_whole(given.get("until"), floor),
        relevance_min=given.get("relevance_min", 0.0),
        min_importance=floor_ or 0.0,
        order_by=order,
        profile=chosen,
        decay=given.get("apply_recency_decay", False) or (order is not None and decays(order)),
        include_expired=given.get("include_expired", False),
        include_archived=given.get("include_archived", False),
        include_superseded=fill.include_superseded,
    )


def _order(value: object) -> str:
    if not isinstance(value, str) or canonical(value) not in ORDERS:
        raise checks.UnusableError(
            f"is {shown(value)}; it must be one of {', '.join(ORDERS)}; a bare name means :desc"
        )
    return canonical(value)


def _whole(moment: Fraction | None, rounded: Callable[[Fraction], int]) -> int | None:
    """A bound in whole milliseconds, rounded so that it lets in what it did before."""
    return None if moment is None else rounded(moment)


_CHECKS: dict[str, checks.Check] = {
    "query": checks.content,
    "limit": checks.integer(1, MAX_LIMIT),
    "offset": checks.integer(0, MAX_OFFSET),
    "full": checks.flag,
    "tags": checks.texts,
    "tags_any": checks.texts,
    "scope": checks.one_of(*SCOPES),
    "project_id": checks.text,
    "created_by": checks.text,
    "since": checks.time,
    "until": checks.time,
    "relevance_min": checks.share,
    "min_importance": checks.share,
    "order_by": _order,
    "recall_profile": checks.one_of(*PROFILES),
    "apply_recency_decay": checks.flag,
    "include_expired": checks.flag,
    "include_archived": checks.flag,
}

PARAMETERS = tuple(_CHECKS)
"""The names of the tool's arguments, as its description lists them."""
