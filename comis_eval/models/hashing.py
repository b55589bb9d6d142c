"""An embedder without a model, for unit tests. It knows words, not meanings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comis_eval.models.onnx import seen
from comis_eval.models.onnx_embedder import unit


@dataclass(frozen=True)
class HashingEmbedder:
    """Counts words into ``dim`` buckets chosen by their hash, scaled to length 1.

    Texts with the same words, in any order, have the same vector. Not reportable: its
    figures say nothing about any product.

    Attributes:
        dim: Length of a vector, >= 1.
    """

    dim: int = 64
    name: str = "hashing"
    reportable: bool = False

    @property
    def fingerprint(self) -> str:
        """Key of every cache."""
        return hashlib.sha256(f"hashing embedder 1, dim {self.dim}".encode()).hexdigest()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; see :meth:`comis_eval.models.base.Embedder.embed`."""
        counts = np.zeros((len(texts), self.dim), dtype=np.float64)
        for row, text in enumerate(texts):
            for word in seen(text).lower().split():
                digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
                counts[row, int.from_bytes(digest, "big") % self.dim] += 1
        return unit(counts).astype(np.float32)
