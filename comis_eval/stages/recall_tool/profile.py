"""What kind of question a query is, and what the kind fills in.

Source: specification of the recall tool, sections 4.2 and 4.3.
"""

from __future__ import annotations

import re
from typing import Literal, TypeVar

from comis_eval.config import ProfileConfig, RecallToolConfig
from comis_eval.stages.recall_tool.words import fields, lowered

Profile = Literal["multi-session", "factual", "default"]
PROFILES: tuple[Profile, ...] = ("multi-session", "factual", "default")

_T = TypeVar("_T")

_OVER_TIME = ("pattern", "trend", "history", "always", "recurring", "baseline")
_ID_START = re.compile(r"[0-9A-Fa-f]{8}-")
_CONSTANT = re.compile(r"[A-Z0-9_]{4,}")
_SHORT = 7
"""A query of that many words is no look-up any more."""


def classify(query: str) -> Profile:
    """Tell which profile a query belongs to; the first rule that holds decides.

    A word of development over time anywhere, inside other words too: ``multi-session``. Fewer
    than seven words, and the start of a UUID, a path, a URL or a CONSTANT_NAME among them:
    ``factual``. Else ``default``.
    """
    lower = lowered(query)
    if any(word in lower for word in _OVER_TIME):
        return "multi-session"
    words = fields(query)
    if len(words) < _SHORT and (
        _ID_START.search(query)
        or query.startswith(("/", "~/"))
        or "//" in query
        or any("_" in word and _CONSTANT.fullmatch(word) for word in words)
    ):
        return "factual"
    return "default"


def preset(name: str, settings: RecallToolConfig) -> ProfileConfig:
    """Return what a profile fills in; a name that is none fills in nothing."""
    profiles = {
        "multi-session": settings.profiles.multi_session,
        "factual": settings.profiles.factual,
    }
    return profiles.get(name, ProfileConfig())


def first_said(*values: _T | None) -> _T | None:
    """Return the first value that somebody gave: the caller, then the profile, then a default.

    Only None is silence: an explicit 0 stands.
    """
    return next((value for value in values if value is not None), None)
