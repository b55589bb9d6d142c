"""The recall tool's gate: which queries it silences, and whether it should have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.config import Config
from comis_eval.metrics.lists import given
from comis_eval.stages.recall_tool.gate import overlaps, query_words
from experiments.common.experiment import Arms
from experiments.common.pairs import Pair
from experiments.common.scene import Scene, Scored, among, scored

GATE = Pair("gate on", "gate off")


class Gated(NamedTuple):
    """What was found.

    Attributes:
        scored: By arm and metric.
        unshared: How many answerable queries share no word with their answer.
    """

    scored: dict[str, dict[str, Scored]]
    unshared: int


def gate_arms() -> dict[str, Config]:
    """The tool as it is, and never withholding an answer for want of a word."""
    return {
        GATE.first: Config(),
        GATE.second: Config().evolve(**{"harness.recall_tool.gate.noise": 0.0}),
    }


def gated(scene: Scene, compared: Arms) -> Gated:
    """Silence by kind of query, and what the answers are worth."""
    queries = scene.dataset.queries
    answerable = np.array([query.answerable for query in queries])
    unshared = answerable & ~_shares_a_word(scene)
    kinds = {
        "unanswerable: silent": ~answerable,
        "answerable: silent": answerable,
        "paraphrase: silent": np.array([query.category == "paraphrase" for query in queries]),
        "no shared word: silent": unshared,
    }
    found: dict[str, dict[str, Scored]] = {}
    for arm in GATE:
        inputs = scene.tool_inputs(compared[arm])
        silent = (given(inputs.context, "the context").length == 0).astype(np.float64)
        found[arm] = {name: among(silent, who) for name, who in kinds.items() if who.any()}
        found[arm]["hit@5"] = scored(inputs, "hit@5")
    return Gated(found, int(unshared.sum()))


def _shares_a_word(scene: Scene) -> NDArray[np.bool_]:
    """Whether a word of the query stands in one of its best judged memories, as the gate reads."""
    dataset = scene.dataset
    judged = dataset.judgments
    shares = np.zeros(len(dataset.queries), dtype=bool)
    for position, query in enumerate(dataset.queries):
        mine = judged.queries == position
        grades, rows = judged.grades[mine], judged.rows[mine]
        best = rows[(grades == grades.max(initial=0)) & (grades > 0)]
        texts = [dataset.memories[row].content for row in best.tolist()]
        shares[position] = overlaps(query_words(query.text), texts)
    return shares
