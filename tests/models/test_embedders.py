"""What every embedder owes, whatever is inside."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comis_eval.models.cache import EmbeddingCache, cached
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.models.onnx_embedder import OnnxEmbedder, folder_embedder, packaged_minilm
from tests.models import tiny

TEXTS = ["cat dog", "", "dog", "x\ud800y", "[SEP]", "cat dog", " ", "car " * 3000, "\U0001f600"]


def _tiny(tmp_path):
    return folder_embedder(tiny.batch_mixing_folder(tmp_path / "m"), pooling="mean")


EMBEDDERS = {
    "hashing": lambda _: HashingEmbedder(32),
    "onnx": _tiny,
    "cached": lambda tmp: cached(_tiny(tmp), EmbeddingCache(tmp / "c")),
    "minilm": lambda _: packaged_minilm(),
}


@pytest.fixture(params=EMBEDDERS, scope="module")
def embedder(request, tmp_path_factory):
    return EMBEDDERS[request.param](tmp_path_factory.mktemp("embedder"))


def test_rows_are_float32_of_length_one_or_zero(embedder):
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dim)
    lengths = np.linalg.norm(vectors, axis=1)
    blank = np.array([not text.strip() for text in TEXTS])
    assert lengths[blank].tolist() == [0, 0]
    assert lengths[~blank] == pytest.approx(1, abs=1e-6)


def test_a_batch_and_single_calls_agree_to_the_last_bit(embedder):
    together = embedder.embed(TEXTS)
    apart = np.concatenate([embedder.embed([text]) for text in reversed(TEXTS)])[::-1]
    assert together.tobytes() == apart.tobytes()


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, embedder.dim)


def test_only_the_first_6144_units_are_seen(embedder):
    head = "cat " * 1536
    cut, whole = embedder.embed([head + "dog", head])
    assert cut.tobytes() == whole.tobytes()


def test_the_fingerprint_is_a_stable_sha256(embedder):
    assert len(embedder.fingerprint) == 64
    assert int(embedder.fingerprint, 16) >= 0


def test_only_hashing_is_not_reportable(embedder):
    assert embedder.reportable != isinstance(embedder, HashingEmbedder)
    assert embedder.name


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=[]), max_size=30), max_size=4))
def test_any_text_hashes_to_a_unit_vector_or_to_zero_when_blank(texts):
    lengths = np.linalg.norm(HashingEmbedder(8).embed(texts), axis=1)
    assert lengths == pytest.approx([1.0 if text.strip() else 0.0 for text in texts], abs=1e-6)


def test_hashing_counts_words_whatever_their_order_and_case():
    a, b, c = HashingEmbedder(64).embed(["a b", "B A", "c d"])
    assert a.tobytes() == b.tobytes()
    assert float(a @ c) < 1
    assert HashingEmbedder(8).fingerprint != HashingEmbedder(9).fingerprint


@settings(derandomize=True, deadline=None, max_examples=30)
@given(text=st.text(st.characters(exclude_categories=[]), max_size=200))
def test_minilm_takes_any_text(minilm: OnnxEmbedder, text):
    length = np.linalg.norm(minilm.embed([text])[0])
    assert length == pytest.approx(1, abs=1e-6) or length == 0


@pytest.fixture(scope="module")
def minilm():
    return packaged_minilm()
