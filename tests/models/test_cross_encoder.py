import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comis_eval.errors import ModelError
from comis_eval.models.cross_encoder import OnnxCrossEncoder, sigmoid
from tests.models import tiny


@pytest.mark.parametrize("flat", [False, True], ids=["(1, 1)", "(1,)"])
@pytest.mark.parametrize(
    ("query", "memory", "logit"),
    [
        # [CLS] 0.1, the query's words once, the memory's words three times, [SEP] 0
        ("cat", "dog", 0.1 + 0.5 + 3 * -0.25),
        ("dog", "cat", 0.1 - 0.25 + 3 * 0.5),
        ("cat dog", "car cat", 0.1 + 0.5 - 0.25 + 3 * (2.0 + 0.5)),
        ("", "", 0.1),
    ],
)
def test_the_score_is_the_sigmoid_of_the_logit_worked_by_hand(tmp_path, flat, query, memory, logit):
    model = OnnxCrossEncoder(tiny.cross_encoder_folder(tmp_path, flat=flat))
    (score,) = model.score(query, [memory])
    assert score == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)


def test_query_and_memory_are_not_interchangeable(tmp_path):
    model = OnnxCrossEncoder(tiny.cross_encoder_folder(tmp_path))
    assert model.score("cat", ["dog"]) != model.score("dog", ["cat"])


def test_a_graph_without_token_types_is_fed_none(tmp_path):
    tiny.cross_encoder_folder(tmp_path)
    node = tiny.helper.make_node("ReduceMax", ["table"], ["logits"], axes=[0], keepdims=1)
    tiny.write_graph(
        tmp_path, [node], {"table": tiny.WORTH}, output="logits", inputs=("input_ids",), rank=2
    )
    assert OnnxCrossEncoder(tmp_path).score("a", ["b"])[0] == pytest.approx(sigmoid(2.0))


def test_a_model_that_is_no_cross_encoder_is_refused(tmp_path):
    tiny.embedder_folder(tmp_path)
    with pytest.raises(ModelError, match=r"has shape \(1, 5, 3\) for one pair, needs \(1, 1\)"):
        OnnxCrossEncoder(tmp_path)


def test_a_long_memory_is_cut_and_the_query_is_not(tmp_path):
    model = OnnxCrossEncoder(tiny.cross_encoder_folder(tmp_path))
    # 512 tokens: [CLS] cat [SEP] 508 words [SEP]; "void" is worth nothing
    long = "void " * 507 + "dog " + "car " * 50
    expected = sigmoid(0.1 + 0.5 + 3 * -0.25)
    assert model.score("cat", [long])[0] == pytest.approx(expected, abs=1e-6)


def test_weights_are_in_the_fingerprint(tmp_path, monkeypatch):
    a = OnnxCrossEncoder(tiny.cross_encoder_folder(tmp_path / "a"))
    monkeypatch.setattr(tiny, "WORTH", tiny.WORTH * 2)
    b = OnnxCrossEncoder(tiny.cross_encoder_folder(tmp_path / "b"))
    assert a.fingerprint != b.fingerprint


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_sigmoid_stays_between_0_and_1_and_is_symmetric(logit):
    assert 0 <= sigmoid(logit) <= 1
    assert sigmoid(logit) + sigmoid(-logit) == pytest.approx(1, abs=1e-15)


def test_sigmoid_by_hand():
    assert sigmoid(0) == 0.5
    assert sigmoid(math.log(3)) == pytest.approx(0.75)
    assert sigmoid(-math.log(3)) == pytest.approx(0.25)
    assert (sigmoid(1e9), sigmoid(-1e9)) == (1.0, 0.0)
