import subprocess
import sys

import pytest

from comis_eval.errors import ModelError
from comis_eval.models.cache import EmbeddingCache, cached
from comis_eval.models.hashing import HashingEmbedder
from comis_eval.models.load import load_embedder, load_reranker
from tests.models import tiny


@pytest.fixture
def folder(tmp_path):
    return str(tiny.embedder_folder(tmp_path / "tiny"))


def test_minilm_is_the_packaged_model():
    embedder = load_embedder("minilm", pooling="mean")
    assert (embedder.name, embedder.dim, embedder.pooling) == ("minilm", 384, "mean")


def test_a_path_is_a_model_folder(folder):
    embedder = load_embedder(folder, pooling="cls")
    assert (embedder.name, embedder.dim, embedder.pooling) == ("tiny", 3, "cls")


@pytest.mark.parametrize("spec", ["", " ", "bge-small", "/nowhere/at/all"])
def test_an_unknown_embedder_says_what_is_allowed(spec):
    with pytest.raises(ModelError, match=r"harness\.embedder: .* neither minilm nor a folder"):
        load_embedder(spec, pooling="mean")


def test_hashing_serves_no_reported_figure():
    with pytest.raises(ModelError, match=r"harness\.embedder: hashing is for unit tests"):
        load_embedder("hashing", pooling="mean")


def test_late_interaction_shares_the_embedders_graph_cached_or_not(folder, tmp_path):
    embedder = load_embedder(folder, pooling="mean")
    cache = EmbeddingCache(tmp_path / "c")
    prints = {
        load_reranker("late_interaction", None, embedder=embedder).fingerprint,
        load_reranker(
            "late_interaction", None, embedder=cached(embedder, cache), cache=cache
        ).fingerprint,
        load_reranker("late_interaction", folder, embedder=None).fingerprint,
    }
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("embedder", "found"), [(None, "none"), (HashingEmbedder(4), "hashing")], ids=str
)
def test_late_interaction_without_a_graph_says_what_to_set(embedder, found):
    with pytest.raises(ModelError, match=rf"needs an ONNX embedder, found {found}; set"):
        load_reranker("late_interaction", None, embedder=embedder)


def test_a_cross_encoder_is_loaded_from_its_folder(tmp_path):
    path = str(tiny.cross_encoder_folder(tmp_path))
    assert load_reranker("cross_encoder", path, embedder=None).name == "cross_encoder"


def test_a_cross_encoder_needs_a_folder(tmp_path):
    with pytest.raises(ModelError, match=r"harness\.reranker\.path: a cross_encoder needs one"):
        load_reranker("cross_encoder", None, embedder=None)
    with pytest.raises(ModelError, match="no such folder"):
        load_reranker("cross_encoder", str(tmp_path / "x"), embedder=None)


def test_an_unknown_kind_says_what_is_allowed():
    with pytest.raises(ModelError, match=r"'llm' is unknown; allowed are late_interaction and"):
        load_reranker("llm", None, embedder=None)


def test_importing_the_models_imports_no_runtime():
    code = (
        "import sys, comis_eval.models.load; "
        "print({'onnxruntime', 'tokenizers', 'onnx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
