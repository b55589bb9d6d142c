import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from comis_eval.errors import ModelError
from comis_eval.models.onnx import MAX_UTF16_UNITS, OnnxModel, fingerprint, read_model, seen
from tests.models import tiny

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)


def load(folder, **settings_):
    settings_ = {"output": "last_hidden_state", "max_tokens": 256} | settings_
    return OnnxModel(read_model(folder), **settings_)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),  # the two halves of one character
        ("x" * 7000, "x" * 6144),
        ("x" * 6142 + "\U0001f600!", "x" * 6142 + "\U0001f600"),
        ("x" * 6143 + "\U0001f600!", "x" * 6143 + "\ufffd"),  # the cut falls inside
    ],
    ids=["plain", "lone high", "lone low", "halves", "long", "emoji fits", "emoji cut"],
)
def test_models_see_6144_utf16_units_of_valid_unicode(text, expected):
    assert seen(text) == expected


@settings(derandomize=True, deadline=None)
@given(text=ANY_TEXT)
def test_what_models_see_can_always_be_encoded(text):
    assert len(seen(text).encode("utf-16-le")) <= 2 * MAX_UTF16_UNITS


def test_states_are_those_of_the_graph_and_added_tokens_are_marked(tmp_path):
    tokens = load(tiny.embedder_folder(tmp_path)).token_states("cat car")
    assert tokens.states.tolist() == tiny.TABLE[[1, 3, 5, 2]].tolist()
    assert tokens.special.tolist() == [True, False, False, True]


@pytest.mark.parametrize("text", ["", " \n\t", "\u2003"])
def test_a_blank_text_is_not_run(tmp_path, text):
    assert load(tiny.embedder_folder(tmp_path)).token_states(text) is None


@pytest.mark.parametrize(
    ("own", "settings_", "tokens"),
    [
        (None, {"max_tokens": 5}, 5),
        (4, {"max_tokens": 5}, 4),
        (4, {"max_tokens": 5, "heed_tokenizer": False}, 5),
        (9, {"max_tokens": 5}, 5),
    ],
    ids=["none", "own is lower", "own is not heeded", "own is higher"],
)
def test_long_texts_are_cut_at_the_lower_limit(tmp_path, own, settings_, tokens):
    tiny.embedder_folder(tmp_path)
    tiny.write_tokenizer(tmp_path, max_length=own)
    model = load(tmp_path, **settings_)
    assert len(model.token_states("cat " * 50).states) == tokens


@pytest.mark.parametrize("inputs", [("input_ids",), tiny.IDS[:2]])
def test_only_declared_inputs_are_fed(tmp_path, inputs):
    model = load(tiny.embedder_folder(tmp_path, inputs=inputs))
    assert model.token_states("dog").states[1].tolist() == [3, 4, 0]


def test_graphs_with_32_bit_ids_work(tmp_path):
    model = load(tiny.embedder_folder(tmp_path, integer=TensorProto.INT32))
    assert model.token_states("dog").states[1].tolist() == [3, 4, 0]


def test_a_graph_that_asks_for_more_is_refused(tmp_path):
    tiny.embedder_folder(tmp_path, inputs=("input_ids", "pixel_values"))
    with pytest.raises(ModelError, match=r"asks for .*pixel_values.*allowed are input_ids"):
        load(tmp_path)


def test_every_part_is_in_the_digest(tmp_path):
    base = load(tiny.embedder_folder(tmp_path / "a"))
    other_weights = load(tiny.embedder_folder(tmp_path / "b", table=tiny.TABLE * 2))
    tiny.embedder_folder(tmp_path / "c")
    tiny.write_tokenizer(tmp_path / "c", max_length=200)
    digests = {
        base.digest,
        other_weights.digest,
        load(tmp_path / "c", heed_tokenizer=False).digest,
        load(tmp_path / "a", max_tokens=99).digest,
    }
    assert len(digests) == 4
    assert load(tmp_path / "a").digest == base.digest
    assert fingerprint("x", base, pooling="a") != fingerprint("x", base, pooling="b")
    assert fingerprint("x", base) != fingerprint("y", base)


def test_a_missing_folder_or_file_says_what_was_looked_for(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere: no such folder.*model\.onnx"):
        read_model(tmp_path / "nowhere")
    tiny.embedder_folder(tmp_path)
    (tmp_path / "model.onnx").rename(tmp_path / "model_quantized.onnx")
    with pytest.raises(ModelError, match=r"model\.onnx: cannot be read.*model_quantized\.onnx"):
        read_model(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"\x00garbage"])
def test_a_damaged_file_is_named(tmp_path, name, content):
    tiny.embedder_folder(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=name):
        load(tmp_path)


def test_a_truncated_graph_is_refused(tmp_path):
    path = tiny.embedder_folder(tmp_path) / "model.onnx"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ModelError, match=r"model\.onnx cannot be loaded"):
        load(tmp_path)


def test_weights_outside_the_hashed_file_are_refused(tmp_path, monkeypatch):
    path = tiny.embedder_folder(tmp_path) / "model.onnx"
    onnx.save(
        onnx.load(path), str(path), save_as_external_data=True, location="w.bin", size_threshold=0
    )
    monkeypatch.chdir(tmp_path)  # where onnxruntime would find them
    with pytest.raises(ModelError, match="weights inside, not in a second file"):
        load(tmp_path)


def test_a_limit_without_room_for_text_is_refused(tmp_path):
    tiny.embedder_folder(tmp_path)
    tiny.write_tokenizer(tmp_path, max_length=3)
    with pytest.raises(ModelError, match="3 tokens has no room for text beside 3 special"):
        load(tmp_path)


def test_a_tokenizer_that_cannot_name_a_word_is_an_error(tmp_path):
    tiny.embedder_folder(tmp_path)
    vocabulary = {word: i for word, i in tiny.VOCABULARY.items() if word != "[UNK]"}
    tiny.edit_tokenizer(
        tmp_path, model={"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    )
    with pytest.raises(ModelError, match=r"cannot cut .*zebra"):
        load(tmp_path).token_states("zebra")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_output_is_an_error(tmp_path, value):
    model = load(tiny.embedder_folder(tmp_path, table=tiny.TABLE + np.float32(value)))
    with pytest.raises(ModelError, match=r"last_hidden_state.*NaN or infinity"):
        model.token_states("cat")


def test_a_graph_of_another_shape_or_kind_is_an_error(tmp_path):
    flat = tiny.embedder_folder(tmp_path / "flat", table=tiny.TABLE[:, 0], rank=2)
    with pytest.raises(ModelError, match=r"shape \(1, 3\) for a text of 3 tokens"):
        load(flat).token_states("cat")
    whole = tiny.embedder_folder(
        tmp_path / "whole", table=tiny.TABLE.astype(np.int64), kind=TensorProto.INT64
    )
    with pytest.raises(ModelError, match="not an array of floats"):
        load(whole).token_states("cat")


def test_a_graph_that_fails_while_running_is_an_error(tmp_path):
    tiny.write_tokenizer(tmp_path)
    short = tiny.TABLE[:2]  # ids from 2 on are out of range
    node = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    tiny.write_graph(tmp_path, [node], {"table": short})
    with pytest.raises(ModelError, match="the graph failed on 3 tokens"):
        load(tmp_path).token_states("cat")
