"""Whether the top hit goes beside the user message, and how long the section is then."""

from typing import Any

import numpy as np
import pytest

from comis_eval.candidates import Candidates, Facts, Retrieval
from comis_eval.config import Config
from comis_eval.pipelines.injecting import inject
from tests.builders import golden_memory, query
from tests.golden_data import cases
from tests.tables import batch_of, corpus_of, hits


@pytest.mark.parametrize("case", cases("memory-recall", "injector"), ids=lambda c: c["name"])
def test_golden_injector(case: dict[str, Any]) -> None:
    given = case["input"]
    threshold = 0.7 if given["inlineMinScore"] is None else given["inlineMinScore"]
    config = Config.model_validate({
        "rag": {"maxContextChars": given["maxChars"]},
        "semantics": {"preset": "production", "inlineMinScore": threshold},
    })  # fmt: skip
    memories = [golden_memory(result["entry"]) for result in given["results"]]
    corpus, asked = corpus_of(memories), query("anything")
    listed = hits(corpus, [[memory.id for memory in memories]])
    table = Candidates.assemble(
        Facts(corpus), [asked], batch_of(corpus, [asked]), Retrieval.of(config), {"fts": listed}
    )
    order = np.arange(len(memories))[None, :]
    final = np.array([[result["score"] for result in given["results"]]], dtype=np.float64)
    put = inject(table, config, order, np.ones_like(order, dtype=bool), final)

    assert put.inline.any() == case["expected"]["inline"]
    assert not put.inline[:, 1:].any(), "only the first of the list may go inline"
    assert [int(n) for n in put.chars if n] == case["expected"]["section_lengths_utf16"]
