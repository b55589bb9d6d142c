"""What a study asks of whoever scores a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config


class Measured(Protocol):
    """What one configuration scores."""

    @property
    def figures(self) -> Mapping[str, float]:
        """By metric name, the figure of ``all``; NaN where it is undefined."""

    @property
    def values(self) -> tuple[float, ...]:
        """One figure an objective, in the order of the objectives."""

    @property
    def constraints(self) -> Mapping[str, float]:
        """How far each bound is overstepped; every one at most 0 when feasible."""

    @property
    def per_query(self) -> NDArray[np.float64]:
        """The first objective's value of each query, NaN where undefined, shape (q,)."""


Measure = Callable[[Config], Measured]
"""Scores a configuration; the same configuration always scores the same."""


class Objective(NamedTuple):
    """What a study searches for.

    Attributes:
        name: A metric, or whatever else the measure gives a figure for.
        direction: Which way is better.
    """

    name: str
    direction: Literal["maximize", "minimize"] = "maximize"

    @property
    def sign(self) -> float:
        """1.0 when more is better, else -1.0."""
        return 1.0 if self.direction == "maximize" else -1.0
