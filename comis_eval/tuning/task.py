"""What a study is: what is searched, by whom, from which seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from comis_eval.config import Config
from comis_eval.errors import StudyError
from comis_eval.text import close_matches, printable
from comis_eval.tuning.fingerprint import fingerprint_of
from comis_eval.tuning.knob import Value
from comis_eval.tuning.measured import Measure, Objective
from comis_eval.tuning.space import Space

SAMPLERS = ("tpe", "random", "nsga2")
"""Who can propose trials."""

_REFUSED = {
    "cmaes": "it runs whatever code its storage holds: it unpickles from there",
    "gp": "it needs torch",
}


@dataclass(frozen=True, eq=False)
class Task:
    """What is searched, and who says how good a point is.

    Attributes:
        measure: Scores a configuration.
        space: What varies.
        base: The current configuration, which is trial 0.
        objectives: What is searched for, in the order of the measure's values.
    """

    measure: Measure
    space: Space
    base: Config
    objectives: tuple[Objective, ...]

    def config(self, number: int, params: Mapping[str, Value]) -> Config:
        """The configuration of a trial."""
        return self.base if number == 0 else self.space.apply(self.base, params)

    @property
    def first(self) -> dict[str, Value]:
        """The current configuration as the sampler may know it: what the space holds of it."""
        params = self.space.values_of(self.base)
        outside = self.space.outside(params)
        return {path: value for path, value in params.items() if path not in outside}

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the current configuration the sampler cannot learn from."""
        return tuple(
            f"{path} of the current configuration is outside of the space: {text}; trial 0 has "
            "it, no other trial can, and the sampler does not learn from it"
            for path, text in self.space.outside(self.space.values_of(self.base)).items()
        )


@dataclass(frozen=True)
class Plan:
    """How a study is searched, and under which name.

    Attributes:
        name: Of the study.
        seed: Of the sampler, >= 0.
        sampler: ``tpe``, ``random`` or ``nsga2``.
        given: What the study depends on besides: dataset, split, semantics.
    """

    name: str
    seed: int
    sampler: str = "tpe"
    given: Mapping[str, Any] = field(default_factory=dict)

    def fingerprint(self, task: Task) -> dict[str, Any]:
        """All that the trials of this study depend on.

        Raises:
            ConfigError: If a knob does nothing.
            StudyError: If there is no objective, no such sampler or no such seed.
        """
        names = [objective.name for objective in task.objectives]
        if not names or len(set(names)) < len(names):
            raise StudyError(f"a study needs objectives, each once; got {', '.join(names)}")
        if reason := _REFUSED.get(self.sampler):
            raise StudyError(f"sampler {self.sampler} is not offered: {reason}; take tpe")
        if self.sampler not in SAMPLERS:
            hint = close_matches(self.sampler, SAMPLERS) or f"there are {', '.join(SAMPLERS)}"
            raise StudyError(f"no sampler {printable(self.sampler, limit=60)}; {hint}")
        if self.seed < 0:
            raise StudyError(f"the seed must be an integer >= 0, got {self.seed}")
        task.space.check(task.base)
        return fingerprint_of(
            self.given,
            space=task.space,
            base=task.base,
            objectives=task.objectives,
            sampler=self.sampler,
            seed=self.seed,
        )
