"""When a memory expires whose writer did not say.

Source: specification of the recall tool, section 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence

DAY_MS = 86_400_000

_CHECKPOINTS = frozenset(("session-checkpoint", "kind:session-checkpoint"))


def days_to_live(scope: str | None, tags: Sequence[str]) -> int | None:
    """Return how many days a memory lives; None: for ever.

    A session checkpoint lives 7 days whatever else is said of it. Rows of a project live
    180 days unless they are tagged ``permanent``, rows of agent scope 180 days in any case.
    """
    if not _CHECKPOINTS.isdisjoint(tags):
        return 7
    if scope == "agent" or (scope == "project" and "permanent" not in tags):
        return 180
    return None
