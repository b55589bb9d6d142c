"""An ONNX graph and its tokenizer, run on one text (or one pair) at a time.

One at a time because graphs with dynamic quantisation scale the activations of a whole
batch together: there a text's numbers would depend on its neighbours. Speed comes from
several runs at once, each on one thread, which gives the same bits as one after another.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comis_eval.errors import ModelError

MAX_UTF16_UNITS = 6144
"""How much of a text a model sees; source: specification of MemoryRecall, section 3."""

CODE_VERSION = 1
"""Part of every fingerprint: raise it when the same files would give other numbers."""

_INPUTS = {
    "input_ids": "ids",
    "attention_mask": "attention_mask",
    "token_type_ids": "type_ids",
}
_INTEGERS: dict[str, np.dtype[Any]] = {
    "tensor(int64)": np.dtype(np.int64),
    "tensor(int32)": np.dtype(np.int32),
}
_SILENT_BUT_FATAL = 4


class ModelFiles(NamedTuple):
    """What a model is made of, read into memory so that what is hashed is what runs.

    Attributes:
        source: Where it came from, for messages.
        weights: The bytes of model.onnx.
        tokenizer: The bytes of tokenizer.json.
    """

    source: str
    weights: bytes
    tokenizer: bytes


class TokenStates(NamedTuple):
    """One text after the last layer.

    Attributes:
        states: One row a token, shape (t, dim), float32.
        special: True for tokens that the tokenizer added, such as [CLS], shape (t,).
    """

    states: NDArray[np.float32]
    special: NDArray[np.bool_]


def read_model(folder: Path) -> ModelFiles:
    """Read a model folder.

    Args:
        folder: Holds model.onnx, with its weights inside, and tokenizer.json.

    Raises:
        ModelError: If one of the two is missing or cannot be read.
    """
    if not folder.is_dir():
        raise ModelError(
            f"{folder}: no such folder; name one that holds model.onnx and tokenizer.json"
        )
    return ModelFiles(str(folder), _read(folder, "model.onnx"), _read(folder, "tokenizer.json"))


def seen(text: str) -> str:
    """The part of a text that models see: its first 6144 UTF-16 units, valid Unicode.

    A surrogate without its partner, in the text or left by the cut, becomes U+FFFD.
    """
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * MAX_UTF16_UNITS]
    return units.decode("utf-16-le", "replace")


def fingerprint(kind: str, model: OnnxModel, **settings: object) -> str:
    """The sha256, in hex, over a kind of use, a model's digest and further settings."""
    return _sha256_of({"kind": kind, "model": model.digest, **settings})


class OnnxModel:
    """A graph and its tokenizer. Can be used from several threads at once.

    Attributes:
        source: Where it came from, for messages.
        digest: sha256, in hex, over weights, tokenizer, token limit and code version.
    """

    def __init__(
        self,
        files: ModelFiles,
        *,
        output: str,
        max_tokens: int,
        heed_tokenizer: bool = True,
    ) -> None:
        """Load a model.

        Args:
            files: What :func:`read_model` read.
            output: The graph's output to read; its first one when none has this name.
            max_tokens: Where a text is cut, special tokens included, >= 1.
            heed_tokenizer: Whether a lower limit in tokenizer.json counts.

        Raises:
            ModelError: If a file is damaged, keeps its weights elsewhere, or asks for
                inputs that a tokenizer does not give.
        """
        self.source = files.source
        self._tokenizer = _load_tokenizer(files)
        own = self._tokenizer.truncation
        limit = min(max_tokens, own["max_length"]) if own and heed_tokenizer else max_tokens
        added = self._tokenizer.num_special_tokens_to_add(True)
        if limit <= added:
            raise ModelError(
                f"{files.source}: a limit of {limit} tokens has no room for text beside "
                f"{added} special ones; raise truncation.max_length in tokenizer.json"
            )
        self._tokenizer.enable_truncation(limit)

        self._session = _load_session(files)
        self._inputs = _inputs(self._session, files.source)
        outputs = [o.name for o in self._session.get_outputs()]
        self._output = output if output in outputs else outputs[0]
        self.digest = _sha256_of(
            {
                "weights": hashlib.sha256(files.weights).hexdigest(),
                "tokenizer": hashlib.sha256(files.tokenizer).hexdigest(),
                "max_tokens": limit,
                "max_utf16_units": MAX_UTF16_UNITS,
                "code": CODE_VERSION,
            }
        )

    def token_states(self, text: str) -> TokenStates | None:
        """Run one text; None when it is blank or has no token of its own.

        Raises:
            ModelError: If the graph fails or answers anything but finite (1, t, dim).
        """
        text = seen(text)
        if not text.strip():
            return None
        encoding = self._encode(text)
        special = np.array(encoding.special_tokens_mask, dtype=bool)
        if special.all():
            return None
        answer = self._run(encoding)
        if answer.ndim != 3 or answer.shape[:2] != (1, len(special)):
            raise ModelError(
                f"{self.source}: output {self._output!r} has shape {answer.shape} for a text of "
                f"{len(special)} tokens, needs (1, {len(special)}, dim); "
                "export the model with its last hidden state"
            )
        return TokenStates(answer[0], special)

    def logit(self, first: str, second: str) -> float:
        """Run one pair of texts through a graph that answers with one number.

        Raises:
            ModelError: If the graph fails or answers anything but one finite number.
        """
        answer = self._run(self._encode(seen(first), seen(second)))
        if answer.shape not in {(1,), (1, 1)}:
            raise ModelError(
                f"{self.source}: output {self._output!r} has shape {answer.shape} for one pair, "
                "needs (1, 1) or (1,); a cross-encoder answers with one relevance logit a pair"
            )
        return float(answer.reshape(()))

    def _encode(self, *texts: str) -> Any:
        try:
            return self._tokenizer.encode(*texts)
        except Exception as error:  # tokenizers raises bare exceptions
            raise ModelError(
                f"{self.source}: tokenizer.json cannot cut {texts!r:.80} into tokens: {error}"
            ) from error

    def _run(self, encoding: Any) -> NDArray[np.float32]:
        feed = {
            name: np.array([getattr(encoding, _INPUTS[name])], dtype=dtype)
            for name, dtype in self._inputs.items()
        }
        try:
            (answer,) = self._session.run([self._output], feed)
        except Exception as error:  # onnxruntime's errors have no base class of their own
            raise ModelError(
                f"{self.source}: the graph failed on {len(encoding.ids)} tokens: {error}"
            ) from error
        if getattr(answer, "dtype", None) not in (np.float16, np.float32, np.float64):
            raise ModelError(f"{self.source}: output {self._output!r} is not an array of floats")
        if not np.isfinite(answer).all():
            raise ModelError(
                f"{self.source}: output {self._output!r} holds NaN or infinity; "
                "the weights are damaged or their precision is too low"
            )
        return np.asarray(answer, dtype=np.float32)


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        return path.read_bytes()
    except OSError as error:
        others = sorted(p.name for p in folder.glob(f"*{path.suffix}"))
        hint = f"; found {', '.join(others)}: rename or link the right one" if others else ""
        raise ModelError(
            f"{path}: cannot be read ({error.strerror}); a model folder holds model.onnx and "
            f"tokenizer.json{hint}"
        ) from error


def _load_tokenizer(files: ModelFiles) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_buffer(files.tokenizer)
    except Exception as error:  # tokenizers raises bare exceptions
        raise ModelError(f"{files.source}: tokenizer.json is damaged: {error}") from error
    tokenizer.no_padding()
    # A memory may spell "[SEP]" to forge a border between query and memory.
    tokenizer.encode_special_tokens = True
    return tokenizer


def _load_session(files: ModelFiles) -> Any:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _SILENT_BUT_FATAL
    # Weights in a second file would escape the hash, and be looked for in the working
    # directory; below the null device no file can be.
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", os.devnull
    )
    try:
        return onnxruntime.InferenceSession(
            files.weights, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's errors have no base class of their own
        raise ModelError(
            f"{files.source}: model.onnx cannot be loaded: {error}; it must be a whole ONNX file "
            "with its weights inside, not in a second file"
        ) from error


def _inputs(session: Any, source: str) -> dict[str, np.dtype[Any]]:
    declared = {i.name: i.type for i in session.get_inputs()}
    foreign = {
        name: kind
        for name, kind in declared.items()
        if name not in _INPUTS or kind not in _INTEGERS
    }
    if foreign:
        raise ModelError(
            f"{source}: model.onnx asks for {foreign}; allowed are {', '.join(_INPUTS)} "
            f"as {' or '.join(_INTEGERS)}"
        )
    return {name: _INTEGERS[kind] for name, kind in declared.items()}


def _sha256_of(parts: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
