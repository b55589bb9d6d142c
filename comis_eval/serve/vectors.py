"""Vectors that outlive an index, so that a write does not embed everything again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from comis_eval.models.base import Embedder

LEAST_KEPT = 2**14
"""Texts whose vectors are kept in any case: 25 MB of 384 dimensions."""


class KeptVectors:
    """An embedder that remembers the texts it saw last.

    Args:
        load: Gives the embedder behind it, when the first text is embedded.
    """

    def __init__(self, load: Callable[[], Embedder]) -> None:
        self._load = load
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @cached_property
    def _embedder(self) -> Embedder:
        return self._load()

    @property
    def name(self) -> str:
        """Name in tables and reports."""
        return self._embedder.name

    @property
    def fingerprint(self) -> str:
        """The embedder's own: what is remembered is what it said."""
        return self._embedder.fingerprint

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._embedder.dim

    @property
    def reportable(self) -> bool:
        """As the embedder says."""
        return self._embedder.reportable

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; see :meth:`comis_eval.models.base.Embedder.embed`."""
        new = list(dict.fromkeys(text for text in texts if text not in self._kept))
        if new:
            self._kept.update(zip(new, self._embedder.embed(new), strict=True))
        for text in texts:
            self._kept.move_to_end(text)
        vectors = np.array([self._kept[text] for text in texts], dtype=np.float32)
        while len(self._kept) > max(LEAST_KEPT, 2 * len(texts)):
            self._kept.popitem(last=False)
        return vectors.reshape(len(texts), self.dim)
