"""Sentences of an answer that a re-run can contradict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from experiments.common.pairs import Pair

Expected = Literal["more", "less", "same"]

LEVEL = 0.05
"""A direction needs an interval off 0, and a p at or below this after correction."""


class Claim(NamedTuple):
    """What one difference must look like.

    Attributes:
        says: The sentence, without figures: those stand beside it.
        pair: Two arms.
        metric: What they differ in.
        expected: Of the first arm beside the second.
        sets: On which sets it is claimed.
        margin: For ``same``: the most that still counts as none.
        where: Under what the pair was compared, when a set has it more than once.
    """

    says: str
    pair: Pair
    metric: str
    expected: Expected
    sets: tuple[str, ...]
    margin: float = 0.0
    where: str = ""

    @property
    def key(self) -> str:
        """How results call the pair."""
        return f"{self.where}: {self.pair.name}" if self.where else self.pair.name

    def found(self, results: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
        """The difference on one set; None when the set was not run."""
        measured = results["sets"].get(name)
        told: Mapping[str, Any] | None = None
        if measured is not None:
            told = measured["pairs"].get(self.key, {}).get(self.metric)
        return told

    def holds(self, results: Mapping[str, Any], name: str, *, reduced: bool = False) -> bool:
        """Whether a set bears it out.

        Args:
            results: Of a run.
            name: Of the set, which must be among them.
            reduced: Only the direction counts, since a small sample shows no interval off 0;
                and what is said to be the same must not be shown to differ.
        """
        told = self.found(results, name)
        if told is None or told["mean"] is None:
            return False
        mean, low, high = told["mean"], told["low"], told["high"]
        if self.expected == "same":
            if reduced:
                return bool(low <= self.margin and high >= -self.margin)
            return bool(-self.margin <= low <= high <= self.margin)
        end = mean if reduced else low if self.expected == "more" else high
        away = end > 0 if self.expected == "more" else end < 0
        return bool(away and (reduced or told["p_adjusted"] <= LEVEL))


def exchanged(arms: Mapping[str, Any], pair: Pair) -> dict[str, Any]:
    """The same arms, two of them under each other's name."""
    swap = {pair.first: pair.second, pair.second: pair.first}
    return {name: arms[swap.get(name, name)] for name in arms}
