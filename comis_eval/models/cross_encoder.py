"""A cross-encoder from any folder: the pair goes in, a relevance logit comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from comis_eval.models.onnx import OnnxModel, fingerprint, read_model
from comis_eval.models.steps import available_cores, each, stop_if

MAX_TOKENS = 512
"""Where a pair is cut, its longer text first: the longest input of BERT-like models."""


class OnnxCrossEncoder:
    """Scores a memory by the sigmoid of an ONNX graph's logit for (query, memory).

    Attributes:
        name: Name in tables and reports.
        fingerprint: sha256, in hex, over weights, tokenizer and token limit.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        """Load a model and run it once.

        Args:
            folder: Holds model.onnx, which answers a pair with one logit, shape (1, 1)
                or (1,), and tokenizer.json, which knows how to join a pair.
            threads: How many pairs are run at once, default one a core; no bit depends
                on it.

        Raises:
            ModelError: If a file is missing or damaged, or the model answers out of
                contract.
        """
        self.name = "cross_encoder"
        self._model = OnnxModel(read_model(folder), output="logits", max_tokens=MAX_TOKENS)
        self._threads = threads or available_cores()
        self.fingerprint = fingerprint(self.name, self._model)
        self._model.logit("query", "memory")

    def score(
        self,
        query: str,
        contents: Sequence[str],
        *,
        deadline: Callable[[], bool] | None = None,
    ) -> NDArray[np.float64]:
        """Score contents; see :meth:`comis_eval.models.base.Reranker.score`."""

        def score_one(content: str) -> float:
            stop_if(deadline)
            return sigmoid(self._model.logit(query, content))

        return np.array(each(score_one, contents, threads=self._threads), dtype=np.float64)


def sigmoid(logit: float) -> float:
    """Map a finite logit to [0, 1]: 1 / (1 + e**-logit), without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)
