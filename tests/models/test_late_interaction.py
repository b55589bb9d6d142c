import logging
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from comis_eval.models.cache import EmbeddingCache, content_key, entries
from comis_eval.models.late_interaction import LateInteraction, max_sim
from comis_eval.models.onnx_embedder import folder_embedder, unit
from tests.models import tiny


def vectors(*rows):
    return np.array(rows, dtype=np.float16)


@pytest.fixture
def embedder(tmp_path):
    return folder_embedder(tiny.embedder_folder(tmp_path / "m"), pooling="mean")


class Noting:
    """Stands between late interaction and its model, and notes what is encoded."""

    def __init__(self, embedder, monkeypatch):
        self.encoded = []
        states = embedder.model.token_states

        def noted(text):
            self.encoded.append(text)
            return states(text)

        monkeypatch.setattr(embedder.model, "token_states", noted)


@pytest.mark.parametrize(
    ("query", "memory", "expected"),
    [
        (vectors([1, 0]), vectors([0, 1], [1, 0]), 1.0),
        (vectors([1, 0], [0, 1]), vectors([1, 0]), 0.5),  # best cosines 1 and 0
        (vectors([1, 0]), vectors([0.5, 0.5], [-1, 0]), 0.5),
        (vectors([1, 0]), vectors([-1, 0]), 0.0),  # -1, clamped
        (vectors([1, 0], [0, 1]), vectors([-0.25, 0.75]), 0.25),  # (-0.25 + 0.75) / 2
        (vectors([1.0009765625]), vectors([1]), 1.0),  # float16 rounding above 1
        (np.zeros((0, 2), np.float16), vectors([1, 0]), 0.0),
        (vectors([1, 0]), np.zeros((0, 2), np.float16), 0.0),
    ],
)
def test_max_sim_by_hand(query, memory, expected):
    assert max_sim(query, memory) == expected


UNIT = arrays(np.float64, st.tuples(st.integers(1, 5), st.just(7)), elements=st.floats(-1, 1)).map(
    lambda rows: unit(rows).astype(np.float16)
)


@settings(derandomize=True, deadline=None)
@given(query=UNIT, memory=UNIT, seed=st.integers(0, 2**16))
def test_max_sim_is_the_same_to_the_bit_in_any_order_of_tokens_and_dimensions(query, memory, seed):
    rng = np.random.default_rng(seed)
    columns = rng.permutation(query.shape[1])
    shuffled = max_sim(rng.permutation(query)[:, columns], rng.permutation(memory)[:, columns])
    assert shuffled == max_sim(query, memory)


@settings(derandomize=True, deadline=None)
@given(query=UNIT, memory=UNIT, more=UNIT)
def test_a_longer_memory_never_scores_lower(query, memory, more):
    assert max_sim(query, np.concatenate([memory, more])) >= max_sim(query, memory)


def test_special_tokens_take_no_part(embedder):
    # [CLS] (0,2,0) alone would match "cat" (4,3,0)/5 with 0.6; cat with dog is 24/25
    reranker = LateInteraction(embedder)
    scores = reranker.score("cat", ["dog", "void", "cat car", "", "zebra"])
    assert scores.tolist() == pytest.approx([0.96, 0, 1, 0, 0], abs=1e-3)
    assert reranker.score("", ["cat"]).tolist() == [0]


def test_scores_are_the_same_computed_kept_and_read_from_disk(embedder, tmp_path, monkeypatch):
    cache = EmbeddingCache(tmp_path / "c")
    contents = ["dog", "cat car", "", "dog"]
    bare = LateInteraction(embedder).score("cat dog", contents)
    first = LateInteraction(embedder, cache=cache)
    noting = Noting(embedder, monkeypatch)
    assert first.score("cat dog", contents).tolist() == bare.tolist()
    assert sorted(noting.encoded) == ["", "cat car", "cat dog", "dog"]
    assert first.score("cat dog", contents).tolist() == bare.tolist()
    second = LateInteraction(embedder, cache=cache)
    assert second.score("cat dog", contents).tolist() == bare.tolist()
    assert len(noting.encoded) == 4
    (entry,) = entries(tmp_path / "c")
    assert entry[:3] == ("tokens", "m", 1)
    assert entry.rows == 4


def test_kept_vectors_stay_within_their_room_and_the_least_used_go_first(embedder, monkeypatch):
    one = 3 * 2  # a word is 3 float16
    reranker = LateInteraction(embedder, kept_bytes=2 * one)
    reranker.score("cat", ["dog"])
    noting = Noting(embedder, monkeypatch)
    reranker.score("cat", ["car"])  # dog goes: cat was used since
    reranker.score("cat", ["car"])
    assert noting.encoded == ["car"]
    reranker.score("cat", ["dog"])
    assert noting.encoded == ["car", "dog"]


def test_no_room_still_gives_scores(embedder):
    reranker = LateInteraction(embedder, kept_bytes=0)
    assert reranker.score("cat", ["cat", "dog"]).tolist() == pytest.approx([1, 0.96], abs=1e-3)


def test_what_was_encoded_before_a_deadline_is_kept(embedder, monkeypatch):
    embedder.threads = 1
    reranker = LateInteraction(embedder)
    asked = iter([False, False, True])
    with pytest.raises(TimeoutError):
        reranker.score("cat", ["dog", "car"], deadline=lambda: next(asked))
    noting = Noting(embedder, monkeypatch)
    reranker.score("cat", ["dog", "car"])
    assert noting.encoded == ["car"]


@pytest.mark.parametrize("blob", [b"\0", b"\0\x7e" * 3], ids=["short", "nan"])
def test_damaged_token_vectors_are_said_and_encoded_again(embedder, tmp_path, caplog, blob):
    cache = EmbeddingCache(tmp_path / "c")
    whole = LateInteraction(embedder, cache=cache).score("cat", ["dog"])
    (path,) = (tmp_path / "c").glob("tokens-*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blobs SET value = ? WHERE key = ?", (blob, content_key("dog")))
    with caplog.at_level(logging.WARNING):
        again = LateInteraction(embedder, cache=cache).score("cat", ["dog"])
    assert again.tolist() == whole.tolist()
    assert "1 of 2 token lists are damaged" in caplog.text


def test_pooling_is_no_part_of_the_fingerprint(tmp_path):
    folder = tiny.embedder_folder(tmp_path)
    a, b = (LateInteraction(folder_embedder(folder, pooling=p)) for p in ("mean", "cls"))
    assert a.fingerprint == b.fingerprint
