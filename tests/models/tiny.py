"""Models small enough to compute by hand: a table of word vectors and a word tokenizer."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

VOCABULARY = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "cat": 3, "dog": 4, "car": 5, "void": 6}
TABLE = np.array(
    [[0, 0, 1], [0, 2, 0], [0, 0, 0], [4, 3, 0], [3, 4, 0], [0, 0, -1], [0, 0, 0]],
    dtype=np.float32,
)
"""One vector a word, in the vocabulary's order."""

WORTH = np.array([[0.0], [0.1], [0.0], [0.5], [-0.25], [2.0], [0.0]], dtype=np.float32)
"""What a word adds to the tiny cross-encoder's logit, three times as much in the memory."""

IDS = ("input_ids", "attention_mask", "token_type_ids")


def write_tokenizer(folder: Path, *, max_length: int | None = None) -> None:
    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.enable_padding(length=16)
    if max_length is not None:
        tokenizer.enable_truncation(max_length)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")


def write_graph(
    folder: Path,
    nodes: list,
    constants: dict,
    *,
    output: str = "last_hidden_state",
    inputs: tuple[str, ...] = IDS,
    integer: int = TensorProto.INT64,
    kind: int = TensorProto.FLOAT,
    rank: int = 3,
) -> None:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, integer, ["b", "t"]) for name in inputs],
        [helper.make_tensor_value_info(output, kind, [None] * rank)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))


def embedder_folder(folder: Path, *, table: np.ndarray = TABLE, **graph: object) -> Path:
    """A model whose token states are the words' rows in a table."""
    write_tokenizer(folder)
    look_up = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    write_graph(folder, [look_up], {"table": table}, **graph)
    return folder


def batch_mixing_folder(folder: Path) -> Path:
    """A model that scales by the largest state of the whole batch, as quantisation does."""
    write_tokenizer(folder)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("ReduceMax", ["rows"], ["largest"], keepdims=0),
        helper.make_node("Add", ["rows", "largest"], ["last_hidden_state"]),
    ]
    write_graph(folder, nodes, {"table": TABLE})
    return folder


def cross_encoder_folder(folder: Path, *, flat: bool = False) -> Path:
    """A model whose logit is the sum over tokens of worth x (1 + 2 x token type)."""
    write_tokenizer(folder)
    nodes = [
        helper.make_node("Gather", ["worth", "input_ids"], ["worths"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["types", "two"], ["doubled"]),
        helper.make_node("Add", ["doubled", "one"], ["weights"]),
        helper.make_node("Unsqueeze", ["weights", "last"], ["columns"]),
        helper.make_node("Mul", ["worths", "columns"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed", "axes"], ["logits"], keepdims=0),
    ]
    constants = {
        "worth": WORTH,
        "two": np.float32(2),
        "one": np.float32(1),
        "last": np.array([2], dtype=np.int64),
        "axes": np.array([1, 2] if flat else [1], dtype=np.int64),
    }
    write_graph(folder, nodes, constants, output="logits", rank=1 if flat else 2)
    return folder


def edit_tokenizer(folder: Path, **parts: object) -> None:
    path = folder / "tokenizer.json"
    tree = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(tree | parts), encoding="utf-8")
