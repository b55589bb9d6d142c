"""Replay recall@k and MRR of later versions of the system.

Those functions are laxer than ours: a repeated id keeps its rank, k may be 0, and a query
without a relevant memory scores 0. The test translates that much; a repeat is laid out as
an unjudged memory, so that it holds its rank and counts once.
"""

import numpy as np
import pytest

from comis_eval.metrics.mrr import mrr
from comis_eval.metrics.recall import recall
from tests.golden_data import cases
from tests.metrics.build import U, inputs, ranked

CASES = [case for case in cases("memory-recall", "later") if case["fn"] == "recallAtK+MRR"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden_recall_and_mrr(case):
    listed, relevant, k = (case["input"][part] for part in ("ranked", "relevant", "k"))
    grades = [
        1 if memory in relevant and memory not in listed[:at] else U
        for at, memory in enumerate(listed)
    ]
    lists = ranked([grades])
    set_ = inputs([[1] * len(relevant)], ranking=lists)
    found = {"recallAtK": recall(lists, set_, k), "mrrSingle": mrr(lists, set_, lists.depth)}
    for name, expected in case["expected"].items():
        assert np.nan_to_num(found[name]) == pytest.approx([expected], rel=1e-12), name
