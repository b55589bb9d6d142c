"""Vectors kept on disk, under the sha256 of the text and the fingerprint of the model."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import ModelError
from comis_eval.models.base import Embedder
from comis_eval.models.blobs import BlobFile, connect

Kind = Literal["embeddings", "tokens"]
Progress = Callable[[int, int], None]

_OURS = re.compile(r"(embeddings|tokens)-[0-9a-f]{64}\.sqlite(-journal)?")
_CHUNK = 256
_FLOAT32 = np.dtype("<f4")

_log = logging.getLogger(__name__)


class CacheEntry(NamedTuple):
    """What the cache holds of one model.

    Attributes:
        kind: ``embeddings``, or ``tokens`` for late interaction's token vectors.
        name: The model's name; None when the file is damaged or still empty.
        files: How many files.
        bytes: Their size together.
        rows: How many texts; None when the file is damaged.
    """

    kind: str
    name: str | None
    files: int
    bytes: int
    rows: int | None


@dataclass(frozen=True)
class EmbeddingCache:
    """A folder of cache files, one a model and kind.

    Attributes:
        folder: Made at first use, for its owner alone.
    """

    folder: Path

    def file(self, kind: Kind, model: str, *, name: str) -> BlobFile:
        """The file of a model.

        Args:
            kind: What is stored.
            model: The model's fingerprint, 64 hex digits.
            name: The model's name, for ``cache ls``.
        """
        return BlobFile(self.folder / f"{kind}-{model}.sqlite", name=name)


@dataclass(frozen=True)
class CachedEmbedder:
    """An embedder that embeds a text only if the cache does not know it.

    Attributes:
        embedder: What embeds.
        cache: Where vectors are kept.
        progress: Told (done, total) of the texts that had to be embedded.
    """

    embedder: Embedder
    cache: EmbeddingCache
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """Name in tables and reports."""
        return self.embedder.name

    @property
    def fingerprint(self) -> str:
        """The embedder's own: a cache changes no bit."""
        return self.embedder.fingerprint

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self.embedder.dim

    @property
    def reportable(self) -> bool:
        """As the embedder says."""
        return self.embedder.reportable

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; see :meth:`comis_eval.models.base.Embedder.embed`.

        New vectors are stored after every 256, so that a run that is stopped goes on
        where it was.

        Raises:
            ModelError: If the embedder answers with a wrong shape, or the cache cannot
                be used.
        """
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        file = self.cache.file("embeddings", self.fingerprint, name=self.name)
        keys = [content_key(text) for text in texts]
        vectors = self._stored(file, list(dict.fromkeys(keys)))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        for fresh in self._embedded(missing):
            file.write(fresh)
            vectors.update(fresh)
        joined = b"".join(vectors[key] for key in keys)
        return np.frombuffer(joined, _FLOAT32).reshape(-1, self.dim).astype(np.float32)

    def _stored(self, file: BlobFile, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        stored = file.read(keys)
        sound = {key: blob for key, blob in stored.items() if self._is_sound(blob)}
        if len(sound) < len(stored):
            _log.warning(
                "%s: %d of %d vectors are damaged and are embedded again",
                file.path,
                len(stored) - len(sound),
                len(stored),
            )
        return sound

    def _is_sound(self, blob: bytes) -> bool:
        return len(blob) == self.dim * _FLOAT32.itemsize and bool(
            np.isfinite(np.frombuffer(blob, _FLOAT32)).all()
        )

    def _embedded(self, missing: dict[bytes, str]) -> Iterator[dict[bytes, bytes]]:
        keys = list(missing)
        for start in range(0, len(keys), _CHUNK):
            some = keys[start : start + _CHUNK]
            rows = self.embedder.embed([missing[key] for key in some])
            if rows.shape != (len(some), self.dim):
                raise ModelError(
                    f"embedder {self.name} gave shape {rows.shape} for {len(some)} texts, "
                    f"needs ({len(some)}, {self.dim})"
                )
            yield {key: row.astype(_FLOAT32).tobytes() for key, row in zip(some, rows, strict=True)}
            if self.progress is not None:
                self.progress(start + len(some), len(keys))


def cached(
    embedder: Embedder, cache: EmbeddingCache, *, progress: Progress | None = None
) -> CachedEmbedder:
    """Put a cache before an embedder; no vector changes by a bit.

    Args:
        embedder: What embeds the texts the cache does not know.
        cache: Where vectors are kept.
        progress: Told (done, total) of the texts that had to be embedded, every 256.
    """
    return CachedEmbedder(embedder, cache, progress)


def cache_dir() -> Path:
    """Where caches are: $COMIS_EVAL_CACHE, $XDG_CACHE_HOME/comis_eval, ~/.cache/comis_eval."""
    if own := os.environ.get("COMIS_EVAL_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "comis_eval"


def content_key(text: str) -> bytes:
    """The sha256 of a text, 32 bytes; any string has one, lone surrogates too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def entries(folder: Path) -> list[CacheEntry]:
    """List what the cache holds, by file name."""
    return [
        _entry(path, sizes=[p.stat().st_size for p in _files(folder) if _belongs(p, path)])
        for path in _files(folder)
        if path.suffix == ".sqlite"
    ]


def clear(folder: Path) -> list[Path]:
    """Delete the cache's files, and nothing else that lies in the folder.

    Returns:
        What was deleted.
    """
    files = _files(folder)
    for path in files:
        path.unlink(missing_ok=True)
    return files


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if _OURS.fullmatch(p.name) and p.is_file())


def _belongs(path: Path, main: Path) -> bool:
    return path.name.startswith(main.name)


def _entry(path: Path, *, sizes: Sequence[int]) -> CacheEntry:
    kind = path.name.partition("-")[0]
    try:
        with closing(connect(path)) as connection:
            (rows,) = connection.execute("SELECT COUNT(*) FROM blobs").fetchone()
            named = connection.execute("SELECT name FROM about").fetchone()
    except sqlite3.Error:
        return CacheEntry(kind, None, len(sizes), sum(sizes), None)
    return CacheEntry(kind, named[0] if named else None, len(sizes), sum(sizes), rows)
