"""A second stage without a model of its own: match each word of the query in the memory.

Late interaction, not a cross-encoder: query and memory are encoded apart, and meet only
in the cosines of their token vectors.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from comis_eval.models.cache import EmbeddingCache, content_key
from comis_eval.models.onnx import fingerprint
from comis_eval.models.onnx_embedder import OnnxEmbedder, unit
from comis_eval.models.steps import each, stop_if

KEPT_BYTES = 256 * 2**20
"""How much memory token vectors may take: about 11,000 memories of 30 tokens."""

_FLOAT16 = np.dtype("<f2")

Tokens = NDArray[np.float16]

_log = logging.getLogger(__name__)


class LateInteraction:
    """Scores a memory by the mean, over the query's tokens, of their best cosine in it.

    Token vectors are rounded to float16 before any use, so that it makes no difference
    whether they were just computed, kept in memory or read from disk.

    Attributes:
        name: Name in tables and reports.
        fingerprint: sha256, in hex, over the model's digest and this rule.

    Source:
        Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via
        Contextualized Late Interaction over BERT", SIGIR 2020: their MaxSim, here as a
        mean over query tokens, over the states of a sentence encoder.
    """

    def __init__(
        self,
        embedder: OnnxEmbedder,
        *,
        cache: EmbeddingCache | None = None,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """Use an embedder's graph.

        Args:
            embedder: Whose graph gives the token vectors.
            cache: Where token vectors outlive the process; None: they do not.
            kept_bytes: How much memory they may take; those used longest ago go first.
        """
        self.name = "late_interaction"
        self.fingerprint = fingerprint(self.name, embedder.model)
        self._embedder = embedder
        self._file = (
            None if cache is None else cache.file("tokens", self.fingerprint, name=embedder.name)
        )
        self._kept = _Kept(kept_bytes)

    def score(
        self,
        query: str,
        contents: Sequence[str],
        *,
        deadline: Callable[[], bool] | None = None,
    ) -> NDArray[np.float64]:
        """Score contents; see :meth:`comis_eval.models.base.Reranker.score`.

        A query or a memory without tokens scores 0. What was encoded before a deadline
        is kept for the next call.
        """
        scores = np.zeros(len(contents), dtype=np.float64)
        if not contents:
            return scores
        asked, *tokens = self._tokens([query, *contents], deadline)
        for place, memory in enumerate(tokens):
            stop_if(deadline)
            scores[place] = max_sim(asked, memory)
        return scores

    def _tokens(self, texts: Sequence[str], deadline: Callable[[], bool] | None) -> list[Tokens]:
        keys = [content_key(text) for text in texts]
        text_of = dict(zip(keys, texts, strict=True))
        found = {key: kept for key in text_of if (kept := self._kept.get(key)) is not None}
        if len(found) < len(text_of):
            found |= self._stored([key for key in text_of if key not in found])
        missing = {key: text for key, text in text_of.items() if key not in found}
        if missing:
            found |= self._encoded(missing, deadline)
        return [found[key] for key in keys]

    def _stored(self, keys: Sequence[bytes]) -> dict[bytes, Tokens]:
        if self._file is None:
            return {}
        blobs = self._file.read(keys)
        sound = {key: self._matrix(blob) for key, blob in blobs.items() if self._is_sound(blob)}
        if len(sound) < len(blobs):
            _log.warning(
                "%s: %d of %d token lists are damaged and are encoded again",
                self._file.path,
                len(blobs) - len(sound),
                len(blobs),
            )
        self._kept.add(sound)
        return sound

    def _matrix(self, blob: bytes) -> Tokens:
        return np.frombuffer(blob, _FLOAT16).reshape(-1, self._embedder.dim)

    def _is_sound(self, blob: bytes) -> bool:
        whole = len(blob) % (self._embedder.dim * _FLOAT16.itemsize) == 0
        return whole and bool(np.isfinite(self._matrix(blob)).all())

    def _encoded(
        self, missing: dict[bytes, str], deadline: Callable[[], bool] | None
    ) -> dict[bytes, Tokens]:
        fresh: dict[bytes, Tokens] = {}

        def encode(key: bytes) -> None:
            stop_if(deadline)
            fresh[key] = self._vectors(missing[key])

        try:
            each(encode, list(missing), threads=self._embedder.threads)
        finally:
            self._kept.add(fresh)
        if self._file is not None:
            self._file.write({key: tokens.tobytes() for key, tokens in fresh.items()})
        return fresh

    def _vectors(self, text: str) -> Tokens:
        tokens = self._embedder.model.token_states(text)
        if tokens is None:
            return np.zeros((0, self._embedder.dim), dtype=_FLOAT16)
        return unit(tokens.states[~tokens.special].astype(np.float64)).astype(_FLOAT16)


def max_sim(query: Tokens, memory: Tokens) -> float:
    """The mean, over the query's tokens, of the best cosine with a token of the memory.

    The result is the same to the bit however the products are summed: entries are
    multiples of 2**-24 and a product of two unit vectors is below 2, so that every
    partial sum fits into a float64 exactly.

    Args:
        query: Token vectors of length 1, shape (q, dim).
        memory: Token vectors of length 1, shape (m, dim).

    Returns:
        A value in [0, 1], a negative mean being 0; 0 when either has no token.

    Example: cosines [[0.9, 0.1], [0.2, 0.4]] -> (0.9 + 0.4) / 2
    """
    if len(query) == 0 or len(memory) == 0:
        return 0.0
    cosines = query.astype(np.float64) @ memory.astype(np.float64).T
    mean = math.fsum(cosines.max(axis=1)) / len(query)
    return min(max(mean, 0.0), 1.0)


class _Kept:
    """Token vectors in memory, at most so many bytes, those used longest ago going first."""

    def __init__(self, most_bytes: int) -> None:
        self._room = most_bytes
        self._tokens: OrderedDict[bytes, Tokens] = OrderedDict()

    def get(self, key: bytes) -> Tokens | None:
        if key in self._tokens:
            self._tokens.move_to_end(key)
        return self._tokens.get(key)

    def add(self, tokens: dict[bytes, Tokens]) -> None:
        for key, value in tokens.items():
            if key not in self._tokens:
                self._tokens[key] = value
                self._room -= value.nbytes
        while self._room < 0:
            _, oldest = self._tokens.popitem(last=False)
            self._room += oldest.nbytes
