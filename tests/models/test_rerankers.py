"""What every reranker owes, whatever is inside."""

import numpy as np
import pytest

from comis_eval.models.cache import EmbeddingCache
from comis_eval.models.cross_encoder import OnnxCrossEncoder
from comis_eval.models.late_interaction import LateInteraction
from comis_eval.models.onnx_embedder import folder_embedder, packaged_minilm
from tests.models import tiny

CONTENTS = ["cat dog", "", "dog", "cat dog", "x\ud800", "car " * 3000, "[SEP] cat", "void"]


def _late(tmp, **settings):
    embedder = folder_embedder(tiny.batch_mixing_folder(tmp / "m"), pooling="mean")
    return LateInteraction(embedder, **settings)


RERANKERS = {
    "late interaction": _late,
    "late interaction, cached": lambda tmp: _late(tmp, cache=EmbeddingCache(tmp / "c")),
    "late interaction, minilm": lambda _: LateInteraction(packaged_minilm()),
    "cross-encoder": lambda tmp: OnnxCrossEncoder(tiny.cross_encoder_folder(tmp)),
    "cross-encoder, one thread": lambda tmp: OnnxCrossEncoder(
        tiny.cross_encoder_folder(tmp), threads=1
    ),
}


@pytest.fixture(params=RERANKERS)
def reranker(request, tmp_path):
    return RERANKERS[request.param](tmp_path)


def test_scores_are_float64_between_0_and_1(reranker):
    scores = reranker.score("cat", CONTENTS)
    assert scores.dtype == np.float64
    assert scores.shape == (len(CONTENTS),)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_pairs_score_does_not_depend_on_the_others_by_a_bit(reranker):
    together = reranker.score("cat dog", CONTENTS)
    apart = [reranker.score("cat dog", [content])[0] for content in reversed(CONTENTS)][::-1]
    assert together.tolist() == apart


def test_no_contents_give_no_scores(reranker):
    assert reranker.score("cat", []).shape == (0,)


@pytest.mark.parametrize("query", ["", " ", "\udfff", "cat " * 5000])
def test_any_query_can_be_scored(reranker, query):
    assert np.isfinite(reranker.score(query, CONTENTS)).all()


def test_a_deadline_stops_between_steps_and_a_later_call_succeeds(reranker):
    asked = []

    def deadline():
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(TimeoutError, match="deadline passed"):
        reranker.score("cat", CONTENTS, deadline=deadline)
    assert len(asked) < len(CONTENTS) + 1
    relaxed = reranker.score("cat", CONTENTS, deadline=lambda: False)
    assert relaxed.tolist() == reranker.score("cat", CONTENTS).tolist()


def test_a_deadline_that_has_passed_stops_at_once(reranker):
    reranker.score("cat", CONTENTS)  # nothing is left to encode
    with pytest.raises(TimeoutError):
        reranker.score("cat", CONTENTS, deadline=lambda: True)


def test_it_has_a_name_and_a_fingerprint(reranker):
    assert reranker.name in {"late_interaction", "cross_encoder"}
    assert len(reranker.fingerprint) == 64
