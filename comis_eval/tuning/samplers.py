"""Who proposes the next trial: Optuna's samplers, made anew for each trial from its number.

What a sampler proposes then depends on the seed, the number of the trial and the trials
before it, and on nothing that dies with the process: a study that is resumed goes on as if
it had never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from comis_eval.tuning.space import Space


class NumberedSampler(BaseSampler):
    """A sampler of Optuna's, seeded by the number of each trial.

    The seed of a trial is a hash of the study's seed and the number. Their sum would do to
    resume, but then studies of neighbouring seeds would share nearly all draws.

    Knobs without a condition are proposed together. Tree-structured Parzen estimators do
    so also for those below the same switch, where a conditional knob on its own would cost
    as much as all others together; the other samplers draw conditional knobs at random.

    Args:
        name: ``tpe``, ``random`` or ``nsga2``.
        space: What varies.
        seed: Of the study, >= 0.
        parallel: Other processes propose at the same time: keep away from what they run.
    """

    def __init__(self, name: str, space: Space, *, seed: int, parallel: bool) -> None:
        self._name = name
        self._space = space
        self._seed = seed
        self._parallel = parallel

    def infer_relative_search_space(
        self,
        study: Study,  # noqa: ARG002  Optuna's interface
        trial: FrozenTrial,  # noqa: ARG002
    ) -> dict[str, BaseDistribution]:
        """All knobs, known beforehand, where Optuna would go through all trials to find them."""
        return self._space.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A value for each knob that may be asked for, rounded: Optuna sees what is measured."""
        return self._space.rounded(self._proposed(study, trial, search_space))

    def _proposed(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        seed = self._seed_of(trial.number)
        (_, free), *conditional = self._space.together
        found: dict[str, Any] = {}
        if inner := self._inner(seed):
            found = inner.sample_relative(study, trial, free)
            if found and isinstance(inner, TPESampler):
                for knob, group in conditional:
                    if knob.active(found):
                        found |= inner.sample_relative(study, trial, group)
                return found
        drawn = RandomSampler(seed)
        return {
            path: found[path]
            if path in found
            else drawn.sample_independent(study, trial, path, distribution)
            for path, distribution in search_space.items()
        }

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A random value, should the proposed one be none that the knob can have."""
        seed = self._seed_of(trial.number, crc32(param_name.encode()))
        drawn = RandomSampler(seed)
        value = drawn.sample_independent(study, trial, param_name, param_distribution)
        return self._space.rounded({param_name: value})[param_name]

    def recall(self, study: Study, attributes: list[Mapping[str, Any]]) -> None:
        """Have the parents of every generation chosen again, in a study built from records.

        Later trials of a generation see its parents in another order than the first one, so
        that who chose them matters.

        Args:
            study: With all finished trials told.
            attributes: What the sampler noted about each.
        """
        inner = self._inner(0)
        if not isinstance(inner, NSGAIISampler):
            return
        last = max((_generation(noted) for noted in attributes), default=0)
        for generation in range(1, last + 1):
            inner.get_parent_population(study, generation)

    def _seed_of(self, *numbers: int) -> int:
        return int(np.random.SeedSequence((self._seed, *numbers)).generate_state(1)[0])

    def _inner(self, seed: int) -> BaseSampler | None:
        if self._name == "tpe":
            return TPESampler(seed=seed, multivariate=True, constant_liar=self._parallel)
        return NSGAIISampler(seed=seed) if self._name == "nsga2" else None


def noted(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What of a trial's system attributes the sampler wrote and will want to read again."""
    return {key: value for key, value in attributes.items() if key.startswith("NSGAIISampler:")}


def _generation(attributes: Mapping[str, Any]) -> int:
    return max(
        (value for key, value in attributes.items() if key.endswith(":generation")), default=0
    )
