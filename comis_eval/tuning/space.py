"""What a sweep may vary: an ordered list of knobs, read from YAML or the default one.

A file has one key, and knobs in the order in which they are asked for::

    knobs:
      rag.scoring.recencyAlpha: {low: 0, high: 1}
      rag.rerank.enabled:                             # true and false
      rag.rerank.maxCandidates: {low: 5, high: 100, log: true}
      harness.fusion.kind: {choices: [rrf, convex]}   # a what-if: not exportable

A knob below a switch (``rag.rerank.maxCandidates`` below ``rag.rerank.enabled``) is asked
for only while the switch is on; ``when: {knob: value}`` adds conditions of one's own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from comis_eval.config import Config, find_knob, settings, shown
from comis_eval.config_file import read_yaml
from comis_eval.errors import ConfigError
from comis_eval.text import close_matches, printable, sha256_text
from comis_eval.tuning.knob import TOOL, Knob, Suggests, Value, is_one_of, read_knob

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_ENTITY_WEIGHT = "rag.entityLane.weight"
_SEED_COUNT = "rag.entityLane.seedCount"
_USEFULNESS = "rag.scoring.usefulnessAlpha"
_TOOL_WEIGHT = f"{TOOL}fusion.vectorWeight"
_TOOL_NOISE = f"{TOOL}gate.noise"


@dataclass(frozen=True)
class Space:
    """The knobs of a sweep. Made by :meth:`of`, :meth:`load` or :meth:`default`, which check it.

    A point of the space is a mapping of the active knobs' paths to their values, in the
    order of the knobs.

    Attributes:
        knobs: In the order in which they are asked for.
    """

    knobs: tuple[Knob, ...]

    @classmethod
    def of(cls, knobs: Iterable[Knob]) -> Self:
        """A space of these knobs, each below the switch of its part of the configuration.

        Raises:
            ConfigError: If there are none, a knob stands twice, or a condition names a knob
                that is not there, stands later or never has that value; all faults at once.
        """
        found = tuple(knobs)
        if not found:
            raise ConfigError("a space needs a knob")
        paths = [knob.path for knob in found]
        tied = tuple(_below_its_switch(knob, paths) for knob in found)
        faults = [fault for number in range(len(tied)) for fault in _faults(tied, number)]
        if faults:
            raise ConfigError("; ".join(faults))
        return cls(tied)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a space from a YAML file.

        Raises:
            ConfigError: If the file cannot be read or used; all faults at once.
        """
        where = printable(str(path))
        document = read_yaml(path)
        if not isinstance(document, Mapping) or list(document) != ["knobs"]:
            keys = ", ".join(printable(key, limit=40) for key in document) if document else ""
            got = f"keys {keys}" if isinstance(document, Mapping) else shown(document)
            raise ConfigError(f"{where}: a space is a mapping with the one key knobs; got {got}")
        given = document["knobs"]
        if not isinstance(given, Mapping) or not given:
            raise ConfigError(
                f"{where}: knobs must be a mapping of settings, at least one; got {shown(given)}"
            )
        knobs, faults = [], []
        for name, range_ in given.items():
            try:
                knobs.append(read_knob(name, range_))
            except ConfigError as error:
                faults.append(str(error))
        if not faults:
            try:
                return cls.of(knobs)
            except ConfigError as error:
                faults.append(str(error))
        raise ConfigError(f"{where}: {'; '.join(faults)}")

    @classmethod
    def default(
        cls, *, has_usefulness: bool, freeze_trust: bool, rerank: bool, entities: bool, vector: bool
    ) -> Self:
        """The knobs that users have, over the ranges in which they do something.

        Weights are relative to the fts lane's, which stays. Nothing of it is a what-if, so
        whatever wins can be exported.

        Args:
            has_usefulness: There are used / ignored signals.
            freeze_trust: Leave ``trustAlpha`` as it is.
            rerank: There is a reranker.
            entities: Memories have entities.
            vector: The vector lane runs.
        """
        share: dict[str, Any] = {"low": 0, "high": 1}
        weight: dict[str, Any] = {"low": 0.1, "high": 10, "log": True}
        ranges: dict[str, dict[str, Any] | None] = {
            "rag.scoring.recencyAlpha": share,
            "rag.scoring.temporalAlpha": share,
            "rag.scoring.proofAlpha": share,
        }
        if not freeze_trust:
            ranges["rag.scoring.trustAlpha"] = share
        ranges["rag.minScore"] = share
        ranges["rag.maxResults"] = {"low": 1, "high": 20}
        ranges["rag.maxContextChars"] = {"low": 500, "high": 12_000, "step": 250}
        if vector:
            ranges["rag.lanes.vector.weight"] = weight
        if has_usefulness:
            ranges |= {"rag.feedback.enabled": None, _USEFULNESS: share}
        if rerank:
            ranges |= {
                "rag.rerank.enabled": None,
                "rag.rerank.maxCandidates": {"low": 5, "high": 100, "log": True},
                "rag.rerank.minResults": {"low": 0, "high": 10},
            }
        if entities:
            ranges |= {
                "rag.entityLane.enabled": None,
                _ENTITY_WEIGHT: weight,
                _SEED_COUNT: {"low": 1, "high": 20},
                "rag.entityLane.perEntityCap": {"low": 5, "high": 400, "log": True},
            }
        return cls.of(read_knob(path, range_) for path, range_ in ranges.items())

    # --- points -----------------------------------------------------------------------

    def suggest(self, trial: Suggests) -> dict[str, Value]:
        """Have a point proposed; knobs whose condition does not hold are not asked for."""
        values: dict[str, Value] = {}
        for knob in self.knobs:
            if knob.active(values):
                values[knob.path] = knob.ask(trial)
        return values

    def apply(self, base: Config, values: Mapping[str, Value]) -> Config:
        """The configuration at a point; what the point does not name is as in the base."""
        return base.evolve(**values)

    def values_of(self, config: Config) -> dict[str, Value]:
        """A configuration as a point. Values may lie outside of the ranges: see :meth:`outside`."""
        values: dict[str, Value] = {}
        for knob in self.knobs:
            if knob.active(values):
                values[knob.path] = _setting(config, knob.path)
        return values

    def outside(self, values: Mapping[str, Value]) -> dict[str, str]:
        """Which values of a point the sampler could never propose, and what it could."""
        return {
            knob.path: f"{shown(values[knob.path])} is not {knob.values}"
            for knob in self.knobs
            if knob.path in values and not knob.contains(values[knob.path])
        }

    def check(self, base: Config) -> None:
        """Refuse knobs that do nothing in every configuration that grows out of the base.

        Raises:
            ConfigError: If the switch above a knob is off and not searched, or another
                setting overrules the knob; all faults at once.
        """
        faults = []
        paths = {knob.path for knob in self.knobs}
        for path in paths:
            switch = switch_of(path)
            if switch and switch not in paths and not _runs(base, path, switch, paths):
                faults.append(
                    f"{path}: does nothing while {switch} is false; "
                    f"search {switch} too, or set it to true"
                )
        faults += _weighs_nothing(base, paths)
        if _ENTITY_WEIGHT in paths and base.semantics.lane_weights.entity is not None:
            faults.append(
                f"{_ENTITY_WEIGHT}: semantics.laneWeights.entity overrules it; unset that"
            )
        if faults:
            raise ConfigError("; ".join(sorted(faults)))

    # --- what it is -------------------------------------------------------------------

    def describe(self) -> dict[str, str]:
        """Every knob in words, in order: its values, condition, and whether it is exportable."""
        return {knob.path: ", ".join(_words(knob)) for knob in self.knobs}

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of all knobs in their order."""
        return sha256_text(json.dumps(self.describe(), separators=(",", ":")))

    @property
    def spans(self) -> dict[str, float]:
        """Width of each number's range."""
        return {knob.path: knob.span for knob in self.knobs if not knob.choices}

    def rounded(self, proposed: Mapping[str, Any]) -> dict[str, Value]:
        """Proposed values as they are set."""
        return {
            knob.path: proposed[knob.path] if knob.choices else knob.rounded(proposed[knob.path])
            for knob in self.knobs
            if knob.path in proposed
        }

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The knobs' ranges for Optuna; what is drawn from them is :meth:`rounded`."""
        return {knob.path: _distribution(knob) for knob in self.knobs}

    @cached_property
    def together(self) -> list[tuple[Knob, dict[str, BaseDistribution]]]:
        """Knobs with the same condition, which are always asked for together, in order.

        Each with one of its knobs, which can tell whether they are active.
        """
        groups: dict[object, tuple[Knob, dict[str, BaseDistribution]]] = {}
        for knob in self.knobs:
            _, group = groups.setdefault(knob.when, (knob, {}))
            group[knob.path] = self.distributions[knob.path]
        return list(groups.values())


def switch_of(path: str) -> str | None:
    """The setting that must be true for another to do anything, or None."""
    if path == _USEFULNESS:
        return "rag.feedback.enabled"
    part = path.rpartition(".")[0]
    switch = f"{part}.enabled"
    return switch if part != "rag" and switch != path and switch in _paths() else None


@cache
def _paths() -> frozenset[str]:
    return frozenset(".".join(setting.keys) for setting in settings())


def _below_its_switch(knob: Knob, paths: Sequence[str]) -> Knob:
    switch = switch_of(knob.path)
    if switch is None or switch not in paths or switch in dict(knob.when):
        return knob
    return knob._replace(when=((switch, (True,)), *knob.when))


def _faults(knobs: tuple[Knob, ...], number: int) -> Iterator[str]:
    """What is wrong with a knob's place among the others."""
    knob = knobs[number]
    earlier = {other.path: other for other in knobs[:number]}
    if knob.path in earlier:
        yield f"{knob.path}: stands twice"
    for path, options in knob.when:
        if path == knob.path:
            yield f"{knob.path}: cannot depend on itself"
        elif path not in earlier:
            places = [other.path for other in knobs]
            where = "later; put it first" if path in places else "not in the space"
            hint = close_matches(path, earlier) if path not in places else ""
            yield f"{knob.path}: depends on {path}, which is {where}{'; ' + hint if hint else ''}"
        elif not (choices := earlier[path].choices):
            yield f"{knob.path}: depends on {path}, a number; only choices can be conditions"
        else:
            for option in options:
                if not is_one_of(option, choices):
                    yield (
                        f"{knob.path}: depends on {path} being {shown(option)}, "
                        f"which is never so: it is {earlier[path].values}"
                    )


def _runs(base: Config, path: str, switch: str, searched: Collection[str]) -> bool:
    if path == _SEED_COUNT:  # the seeds of all spread lanes
        switches = (switch, "rag.lanes.temporal.enabled", "rag.lanes.causal.enabled")
        return any(other in searched or _setting(base, other) is True for other in switches)
    return _setting(base, switch) is True


def _weighs_nothing(base: Config, paths: Collection[str]) -> Iterator[str]:
    """Knobs of the recall tool's arms that have nothing to weigh against."""
    lanes = base.harness.lanes
    for knob in (_TOOL_WEIGHT, _TOOL_NOISE):
        if knob in paths and "vector" not in lanes:
            yield f"{knob}: does nothing without the vector arm (harness.lanes)"
    if _TOOL_WEIGHT in paths and set(lanes) == {"vector"}:
        yield f"{_TOOL_WEIGHT}: does nothing without the text arm (harness.lanes)"
    elif _TOOL_WEIGHT in paths and not base.harness.recall_tool.fusion.text_weight:
        yield (
            f"{_TOOL_WEIGHT}: does nothing while {TOOL}fusion.textWeight is 0: "
            "only the ratio of the two counts"
        )


def _setting(config: Config, path: str) -> Value:
    """A value of a configuration; a lane weight that is left open is the one it comes to."""
    if path == "rag.lanes.vector.weight":
        return config.lane_weight("vector")
    value: Any = config
    for step in find_knob(path):
        value = getattr(value, step.name)
    read: Value = value
    return read


def _words(knob: Knob) -> Iterator[str]:
    yield knob.values
    if knob.kind == "float":
        yield f"{knob.decimals} decimals"
    for path, options in knob.when:
        yield f"when {path} is {' or '.join(map(shown, options))}"
    if not knob.exportable:
        yield "not exportable"


def _distribution(knob: Knob) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if knob.choices:
        return CategoricalDistribution(knob.choices)
    return FloatDistribution(*knob.edges, log=knob.log)
