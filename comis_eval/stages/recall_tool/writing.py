"""One write of the tool ``remember``: its arguments checked.

Source: specification of the recall tool, sections 1 (fields), 2.1 (update), 2.3 (order of
the checks), 2.4 (expiry).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from comis_eval.config import shown
from comis_eval.stages.recall_tool import checks
from comis_eval.stages.recall_tool.duration import milliseconds
from comis_eval.stages.recall_tool.tags import KEY_RULE, is_key, tag_fault

SCOPES = ("workspace", "project", "agent")
DEFAULT_SCOPE = "project"
MAX_VERSION = 2**53 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What one write says.

    Attributes:
        key: What the memory is called.
        content: Its text, not blank.
        tags: At most 20.
        scope: workspace, project or agent.
        project_id: Whose it is, of project scope; None: no project's, or as a tag says.
        relevance: In (0, 1]; 1 unless given, and 0 counts as not given.
        importance: In (0, 1]; None: computed.
        expires_at: ms; None: as scope and tags give it.
        expected_version: The version that this write is to replace; None: any, or none.
        reason: Why, for the revision.
    """

    key: str
    content: str
    tags: tuple[str, ...] = ()
    scope: str = DEFAULT_SCOPE
    project_id: str | None = None
    relevance: float = 1.0
    importance: float | None = None
    expires_at: int | None = None
    expected_version: int | None = None
    reason: str | None = None


def writing_of(arguments: Mapping[str, object], now: int) -> Writing:
    """Check the arguments of a write.

    Args:
        arguments: By the names of WRITTEN.
        now: The moment of writing, ms; an expiry lies behind it.

    Raises:
        RequestError: If a name is unknown, or values are not allowed: all of them at once.
    """
    expiry = _Expiry(now)
    given = checks.checked(arguments, {**_CHECKS, "expires_at": expiry.check}, ("key", "content"))
    scope = given.get("scope", DEFAULT_SCOPE)
    return Writing(
        key=given["key"],
        content=given["content"],
        tags=given.get("tags", ()),
        scope=scope,
        # A project's id on a row that is no project's would split it into two memories.
        project_id=given.get("project_id") if scope == "project" else None,
        relevance=given.get("relevance") or 1.0,
        importance=given.get("importance_score") or None,
        expires_at=given.get("expires_at"),
        expected_version=given.get("expected_version") or None,
        reason=given.get("reason"),
    )


class _Expiry(NamedTuple):
    now: int

    def check(self, value: object) -> int:
        """Take RFC 3339 or a duration, in the future."""
        moment = checks.moment_of(value)
        if moment is None and isinstance(value, str):
            length = milliseconds(value)
            moment = None if length is None else self.now + length
        if moment is None or abs(moment) > _LARGEST:
            raise checks.UnusableError(
                f"is {shown(value)}; it must be RFC 3339, such as 2026-05-28T12:00:00Z, or a "
                "duration, such as 72h"
            )
        if moment <= self.now:
            raise checks.UnusableError(f"is {shown(value)}; it must be in the future")
        return ceil(moment)


_LARGEST = Fraction(2**53 - 2)


def _key(value: object) -> str:
    name = checks.text(value)
    if not is_key(name):
        raise checks.UnusableError(f"is {shown(name)}; {KEY_RULE}")
    return name


def _tags(value: object) -> tuple[str, ...]:
    given = checks.texts(value)
    fault = tag_fault(given)
    if fault is not None:
        raise checks.UnusableError(f"cannot be taken: {fault}")
    return given


_CHECKS: dict[str, checks.Check] = {
    "key": _key,
    "content": checks.content,
    "scope": checks.one_of(*SCOPES),
    "project_id": checks.text,
    "relevance": checks.share,
    "importance_score": checks.share,
    "tags": _tags,
    "expires_at": checks.text,
    "expected_version": checks.integer(0, MAX_VERSION),
    "reason": checks.text,
}

WRITTEN = tuple(_CHECKS)
"""The names of the arguments of ``remember``."""
