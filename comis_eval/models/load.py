"""From the words of a configuration to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from comis_eval.errors import ModelError
from comis_eval.models.base import Embedder, Reranker
from comis_eval.models.cache import CachedEmbedder, EmbeddingCache
from comis_eval.models.cross_encoder import OnnxCrossEncoder
from comis_eval.models.late_interaction import LateInteraction
from comis_eval.models.onnx_embedder import (
    OnnxEmbedder,
    Pooling,
    folder_embedder,
    packaged_minilm,
)

RerankerKind = Literal["late_interaction", "cross_encoder"]


def load_embedder(spec: str, *, pooling: Pooling) -> OnnxEmbedder:
    """Load the embedder that ``harness.embedder`` names.

    Args:
        spec: ``minilm`` for the packaged model, or a folder with model.onnx and
            tokenizer.json.
        pooling: How token states become one vector.

    Raises:
        ModelError: If there is no such model, or it is damaged.
    """
    if spec == "minilm":
        return packaged_minilm(pooling=pooling)
    if spec == "hashing":
        raise ModelError(
            "harness.embedder: hashing is for unit tests, its figures say nothing; "
            "use minilm, or a folder with model.onnx and tokenizer.json"
        )
    if not spec.strip() or not Path(spec).is_dir():
        raise ModelError(
            f"harness.embedder: {spec!r} is neither minilm nor a folder; name a folder that "
            "holds model.onnx and tokenizer.json"
        )
    return folder_embedder(Path(spec), pooling=pooling)


def load_reranker(
    kind: RerankerKind,
    path: str | None,
    *,
    embedder: Embedder | None,
    cache: EmbeddingCache | None = None,
) -> Reranker:
    """Load the reranker that ``harness.reranker`` names.

    Args:
        kind: Which rule scores a pair.
        path: The model's folder; late interaction without one shares the embedder's graph.
        embedder: The embedder in use, cached or not; None when there is none.
        cache: Where late interaction keeps token vectors.

    Raises:
        ModelError: If there is no such model, or it is damaged.
    """
    if kind == "cross_encoder":
        if path is None:
            raise ModelError(
                "harness.reranker.path: a cross_encoder needs one; name a folder that holds "
                "model.onnx and tokenizer.json"
            )
        return OnnxCrossEncoder(Path(path))
    if kind == "late_interaction":
        own = _unwrapped(embedder) if path is None else folder_embedder(Path(path), pooling="mean")
        return LateInteraction(own, cache=cache)
    raise ModelError(
        f"harness.reranker.kind: {kind!r} is unknown; allowed are late_interaction and "
        "cross_encoder"
    )


def _unwrapped(embedder: Embedder | None) -> OnnxEmbedder:
    inner = embedder.embedder if isinstance(embedder, CachedEmbedder) else embedder
    if isinstance(inner, OnnxEmbedder):
        return inner
    found = "none" if inner is None else inner.name
    raise ModelError(
        f"harness.reranker: late_interaction needs an ONNX embedder, found {found}; set "
        "harness.embedder to minilm or a folder, or harness.reranker.path to a folder"
    )
