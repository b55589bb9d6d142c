"""What every pipeline under evaluation is used through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from comis_eval.candidates import Rankings
from comis_eval.types import Query


class Pipeline(Protocol):
    """Answers a query set with ranked memories."""

    @property
    def name(self) -> str:
        """Name in tables and reports."""

    @property
    def enforces(self) -> tuple[str, ...]:
        """Which kinds of leak it promises to prevent: ``trust``, ``scope``."""

    def rank(self, queries: Sequence[Query]) -> Rankings:
        """Answer every query. Same queries, same memories, same settings: same answer."""
