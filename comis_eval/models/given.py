"""Vectors that come with a dataset, instead of a model.

A dataset folder may hold three files:

- ``embeddings.npy``: a 2-d array of float16, float32 or float64, one row a vector;
- ``embeddings.ids``: UTF-8, the id of each row on a line of its own; a memory id, or
  ``query:`` and a query id;
- ``embeddings.yaml``: ``model`` (what made them) and ``dim``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from comis_eval.errors import DatasetError

_NAMES = ("embeddings.npy", "embeddings.ids", "embeddings.yaml")
_MAX_FAULTS = 10
_MAX_YAML_BYTES = 10_000


class GivenRows(NamedTuple):
    """Vectors looked up by id.

    Attributes:
        matrix: One row an id asked for, shape (n, dim); zeros where there is none.
        has: True where the dataset gives a vector, shape (n,).
    """

    matrix: NDArray[np.float32]
    has: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GivenVectors:
    """A dataset's own vectors, by id.

    Attributes:
        ids: One a row, all different.
        matrix: Finite, shape (n, dim), as given: not scaled.
        model: What made them, in the dataset's words.
        fingerprint: sha256, in hex, over ids, vectors and model.
    """

    ids: tuple[str, ...]
    matrix: NDArray[np.float32]
    model: str
    fingerprint: str

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def _row_of(self) -> Mapping[str, int]:
        return {key: row for row, key in enumerate(self.ids)}

    def rows_for(self, ids: Sequence[str]) -> GivenRows:
        """Look up vectors, in the order of the ids; ids without one are marked, not refused."""
        rows = np.array([self._row_of.get(key, -1) for key in ids], dtype=np.int64)
        has = rows >= 0
        matrix = np.zeros((len(rows), self.dim), dtype=np.float32)
        matrix[has] = self.matrix[rows[has]]
        return GivenRows(matrix, has)


def query_key(query_id: str) -> str:
    """The line of embeddings.ids under which a query's vector stands."""
    return f"query:{query_id}"


def load_given(folder: Path) -> GivenVectors | None:
    """Load the vectors of a dataset folder; None when it has none of the three files.

    Raises:
        DatasetError: If one of the three is missing, unreadable or disagrees with another.
    """
    missing = [name for name in _NAMES if not (folder / name).is_file()]
    if len(missing) == len(_NAMES):
        return None
    if missing:
        raise DatasetError(
            f"{folder}: {' and '.join(missing)} missing; given vectors need all of "
            f"{', '.join(_NAMES)}: add what is missing, or remove the rest"
        )
    npy, ids_file, about_file = (folder / name for name in _NAMES)
    ids = _read_ids(ids_file)
    matrix = _read_matrix(npy, ids)
    model = _read_model_name(about_file, dim=matrix.shape[1])
    return GivenVectors(ids, matrix, model, _fingerprint(ids, matrix, model))


def _read_ids(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read as UTF-8 ({error})") from error
    # Only a line feed ends a line: an id may hold any of str.splitlines' other breaks.
    lines = text.removesuffix("\n").split("\n") if text else []
    first: dict[str, int] = {}
    faults = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            faults.append(f"{path}:{number}: blank; write the id of vector {number}")
        elif line.endswith("\r"):
            faults.append(f"{path}:{number}: ends in CR LF; save the file with LF line ends")
        elif line in first:
            faults.append(
                f"{path}:{number}: id {line!r} stands on line {first[line]} already; "
                "keep one vector an id"
            )
        first.setdefault(line, number)
    if faults:
        more = [f"and {len(faults) - _MAX_FAULTS} more"] if len(faults) > _MAX_FAULTS else []
        raise DatasetError("\n".join(faults[:_MAX_FAULTS] + more))
    return tuple(lines)


def _read_matrix(path: Path, ids: Sequence[str]) -> NDArray[np.float32]:
    try:
        # Mapped, because a damaged header may claim more than there is memory for.
        stored = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, OverflowError) as error:
        raise DatasetError(f"{path}: not a readable .npy file ({error})") from error
    if stored.dtype.newbyteorder("=") not in (np.float16, np.float32, np.float64):
        raise DatasetError(
            f"{path}: holds {stored.dtype}, allowed are float16, float32 and float64"
        )
    if stored.ndim != 2 or stored.shape[1] == 0:
        raise DatasetError(f"{path}: has shape {stored.shape}, needs (vectors, dim)")
    if len(stored) != len(ids):
        raise DatasetError(
            f"{path}: {len(stored)} vectors, but embeddings.ids has {len(ids)} lines; "
            "there must be one id a vector"
        )
    with np.errstate(over="ignore"):  # a float64 too large becomes infinite: found below
        matrix = np.array(stored, dtype=np.float32, order="C")
    bad = ~np.isfinite(matrix).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        raise DatasetError(
            f"{path}: {bad.sum()} vectors hold NaN, infinity or a number beyond float32, "
            f"the first in row {row} (embeddings.ids:{row + 1}: {ids[row]!r}); "
            "leave such vectors out of both files"
        )
    return matrix


def _read_model_name(path: Path, *, dim: int) -> str:
    about = _read_yaml(path)
    if not isinstance(about, dict) or set(about) != {"model", "dim"}:
        raise DatasetError(f"{path}: needs exactly two keys, model and dim")
    if not isinstance(about["model"], str) or not about["model"].strip():
        raise DatasetError(f"{path}: model must be the name of what made the vectors")
    if type(about["dim"]) is not int or about["dim"] != dim:
        raise DatasetError(f"{path}: dim must be {dim}, the length of the vectors given")
    return about["model"]


def _read_yaml(path: Path) -> Any:
    try:
        content = path.read_bytes()
        if len(content) > _MAX_YAML_BYTES:
            raise DatasetError(f"{path}: {len(content)} bytes, allowed are {_MAX_YAML_BYTES}")
        return yaml.safe_load(content)
    except (
        OSError, yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError,
        OverflowError, RecursionError,
    ) as error:  # fmt: skip
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        reason = getattr(error, "problem", None) or type(error).__name__
        raise DatasetError(f"{where}: not readable as YAML ({reason})") from error


def _fingerprint(ids: Sequence[str], matrix: NDArray[np.float32], model: str) -> str:
    digest = hashlib.sha256(f"given {matrix.shape} {model}\n".encode("utf-8", "surrogatepass"))
    digest.update("\n".join(ids).encode())
    digest.update(matrix.astype("<f4").tobytes())
    return digest.hexdigest()
