"""Candidates on disk: content-addressed, columnar, checked, shared by processes.

A file is named by what decides its content: the memories and queries, the retrieval
settings, the models, and the version of the lanes' code. It holds plain arrays in NumPy's
own format (never pickled) and, beside them, a checksum of each. It is written beside its
place and renamed, so that a reader sees a whole file or none, and two writers of the same
name write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comis_eval.candidates.table import Candidates, Lane, RerankScores

LANES_VERSION = 1
"""Raise it when a lane, the formulation or the reranking would answer differently."""

SUFFIX = ".candidates.npz"

log = logging.getLogger(__name__)

Arrays = Mapping[str, NDArray[Any]]


def key_of(**parts: Any) -> str:
    """sha256, in hex, of everything that decides a table's content, as JSON."""
    told = {"lanes": LANES_VERSION, "numpy": np.__version__, **parts}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def save(table: Candidates, folder: Path, key: str) -> Path:
    """Write what retrieval gave; facts, signals and links are derived again on loading."""
    arrays: dict[str, NDArray[Any]] = {"rows": table.rows}
    for name, lane in table.lanes.items():
        for part, array in lane._asdict().items():
            arrays[f"{name}.{part}"] = array
    if table.rerank is not None:
        arrays |= {"rerank.keys": table.rerank.keys, "rerank.values": table.rerank.values}
    manifest = {"key": key, "sha256": {name: _digest(array) for name, array in arrays.items()}}
    arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{key}{SUFFIX}"
    handle, partial = tempfile.mkstemp(dir=folder, prefix=f".{key[:16]}.", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return path


def load(
    folder: Path, key: str
) -> tuple[NDArray[np.int32], dict[str, Lane], RerankScores | None] | None:
    """Read a table's arrays back; None when there is no such file, or it is not whole.

    A damaged or foreign file is said in the log and left to be written anew.
    """
    path = folder / f"{key}{SUFFIX}"
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        manifest = json.loads(bytes(arrays.pop("manifest")))
        _check(manifest, arrays, key)
        return _laid_out(arrays)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        log.warning("%s: not a whole candidates file (%s); building it again", path, error)
        return None


def _check(manifest: Any, arrays: Arrays, key: str) -> None:
    if manifest["key"] != key:
        raise ValueError(f"holds the table {str(manifest['key'])[:16]}")
    if manifest["sha256"].keys() != arrays.keys():
        raise ValueError("arrays are missing or added")
    for name, array in arrays.items():
        if _digest(array) != manifest["sha256"][name]:
            raise ValueError(f"{name} does not have its checksum")


def _laid_out(arrays: Arrays) -> tuple[NDArray[np.int32], dict[str, Lane], RerankScores | None]:
    lanes = {
        name.removesuffix(".ranks"): Lane(
            array,
            arrays[f"{name.removesuffix('.ranks')}.scores"],
            arrays[f"{name.removesuffix('.ranks')}.exhausted"],
        )
        for name, array in arrays.items()
        if name.endswith(".ranks")
    }
    rerank = None
    if "rerank.keys" in arrays:
        rerank = RerankScores(arrays["rerank.keys"], arrays["rerank.values"])
    return arrays["rows"], lanes, rerank


def _digest(array: NDArray[Any]) -> str:
    shape = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(shape + np.ascontiguousarray(array).tobytes()).hexdigest()
