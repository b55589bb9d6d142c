"""The list by boosted score: sorted in column space, as if it had been in fused order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.config import Config
from comis_eval.datasets import Dataset
from comis_eval.pipelines.fusing import fuse_lanes
from comis_eval.pipelines.rank import rank
from comis_eval.pipelines.scoring import by_score
from comis_eval.stages import score
from comis_eval.stages.planes import along
from tests import strategies
from tests.builders import memory
from tests.tables import table
from tests.tuning.test_replay import EVERYTHING, like, retriever


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    dataset=strategies.datasets(),
    base=strategies.configs(),
    config=strategies.configs(),
    seed=st.integers(0, 99),
    step=st.sampled_from([0.0, 0.4e-9, 0.01]),
)
def test_the_order_is_that_of_the_fused_list_sorted_again(
    dataset: Dataset, base: Config, config: Config, seed: int, step: float
) -> None:
    base = base.evolve(**{"rag.enabled": True})
    held = retriever(dataset).covering(dataset.queries, base, EVERYTHING)
    fused = fuse_lanes(held, like(base, config))
    rng = np.random.default_rng(seed)
    tail = rng.random(fused.alive.shape) < 0.2
    few = 0.5 + step * rng.integers(0, 4, fused.alive.shape)
    for final, behind_them in ((few, tail), (few, tail & False), (fused.scores, tail & False)):
        planes = (final, fused.table.trust, behind_them, fused.alive)
        ranked = score.order(*(along(plane, fused.order) for plane in planes))
        expected = along(fused.order, ranked)
        assert by_score(fused, final, behind_them).tolist() == expected.tolist()


def test_ties_of_a_lane_cut_short_stand_as_they_were_then_first_seen() -> None:
    # The keyword lane has b third, so its column stands before c's. Read to a depth of two,
    # only the vector lane has them, c first, and with a weight of 0 both score nothing.
    config = Config.model_validate({
        "rag": {"minScore": 0.0, "lanes": {"vector": {"weight": 0.0}}, "scoring": {
            "recencyAlpha": 0.0, "temporalAlpha": 0.0, "proofAlpha": 0.0, "trustAlpha": 0.1,
        }},
        "semantics": {"laneDepth": 2},
    })  # fmt: skip
    deep = config.evolve(**{"semantics.lane_depth": 4})
    memories = [memory(name) for name in "abcde"]
    held = table(memories, deep, fts=["a", "e", "b"], vector=["c", "b"])
    rankings = rank(held, config)
    names = [memories[row].id for row in rankings.ranked_rows()[0]]
    assert names == ["a", "e", "c", "b"]
