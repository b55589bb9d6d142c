"""The two protocols every model is used through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors.

    A text's vector depends on that text alone, never on the others of the call: a batch
    and a single call agree to the last bit.
    """

    @property
    def name(self) -> str:
        """Name in tables and reports."""

    @property
    def fingerprint(self) -> str:
        """sha256 over the weights, tokenizer and settings: the key of every cache."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def reportable(self) -> bool:
        """False for an embedder that only tests may use."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, in the order given.

        Args:
            texts: Any strings; the first 6144 UTF-16 units of each are seen.

        Returns:
            Vectors, shape (n, dim). A blank text gives a row of zeros.

        Raises:
            ModelError: If the model answers with a wrong shape or a non-finite number.
        """


class Reranker(Protocol):
    """Scores how well a memory answers a query, in [0, 1]."""

    @property
    def name(self) -> str:
        """Name in tables and reports."""

    @property
    def fingerprint(self) -> str:
        """sha256 over the weights, tokenizer and settings: the key of every cache."""

    def score(
        self,
        query: str,
        contents: Sequence[str],
        *,
        deadline: Callable[[], bool] | None = None,
    ) -> NDArray[np.float64]:
        """Score each content against one query, shape (n,), each in [0, 1].

        A pair's score depends on that pair alone.

        Args:
            query: The formulated query; its first 6144 UTF-16 units are seen.
            contents: Memory texts; the first 6144 UTF-16 units of each are seen.
            deadline: Asked before every step, from any thread; True stops the scoring.

        Raises:
            ModelError: If the model answers with a wrong shape or a non-finite number.
            TimeoutError: If ``deadline`` answered True.
        """
