import logging
import multiprocessing
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from comis_eval.errors import ModelError
from comis_eval.models.cache import (
    CacheEntry,
    EmbeddingCache,
    cache_dir,
    cached,
    clear,
    content_key,
    entries,
)
from comis_eval.models.hashing import HashingEmbedder

TEXTS = [f"text {n}" for n in range(600)]


class Counting:
    """An embedder that notes what it embeds, and may give up."""

    name = "counting"
    reportable = False
    dim = 4
    fingerprint = "ab" * 32

    def __init__(self, *, most: int = 10**9, dim: int = 4) -> None:
        self.embedded: list[str] = []
        self._most = most
        self._inner = HashingEmbedder(dim)

    def embed(self, texts):
        if len(self.embedded) + len(texts) > self._most:
            raise RuntimeError("killed")
        self.embedded += texts
        return self._inner.embed(texts)


def the_file(folder: Path) -> Path:
    (path,) = folder.glob("embeddings-*.sqlite")
    return path


def test_a_text_is_embedded_once_and_its_vector_is_the_same(tmp_path):
    inner = Counting()
    embedder = cached(inner, EmbeddingCache(tmp_path))
    first = embedder.embed(["a", "b", "a"])
    again = cached(inner, EmbeddingCache(tmp_path)).embed(["b", "c", "a"])
    assert inner.embedded == ["a", "b", "c"]
    assert first.tobytes() == HashingEmbedder(4).embed(["a", "b", "a"]).tobytes()
    assert again.tobytes() == HashingEmbedder(4).embed(["b", "c", "a"]).tobytes()
    again[0] = 0  # what comes back belongs to the caller


def test_models_do_not_share_vectors(tmp_path):
    for dim in (4, 5):
        embedder = cached(HashingEmbedder(dim), EmbeddingCache(tmp_path))
        assert embedder.embed(["a"]).shape == (1, dim)
    assert len(list(tmp_path.iterdir())) == 2


def test_progress_counts_what_is_not_yet_known(tmp_path):
    cache = EmbeddingCache(tmp_path)
    cached(Counting(), cache).embed(TEXTS[:50])
    told = []
    cached(Counting(), cache, progress=lambda *step: told.append(step)).embed(TEXTS)
    assert told == [(256, 550), (512, 550), (550, 550)]


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    cache = EmbeddingCache(tmp_path)
    with pytest.raises(RuntimeError, match="killed"):
        cached(Counting(most=300), cache).embed(TEXTS)
    rest = Counting()
    vectors = cached(rest, cache).embed(TEXTS)
    assert rest.embedded == TEXTS[256:]
    assert vectors.tobytes() == HashingEmbedder(4).embed(TEXTS).tobytes()


def test_an_embedder_out_of_contract_stores_nothing(tmp_path):
    with pytest.raises(ModelError, match=r"counting gave shape \(1, 3\) for 1 texts, needs \(1, 4"):
        cached(Counting(dim=3), EmbeddingCache(tmp_path)).embed(["a"])
    assert entries(tmp_path)[0].rows == 0


@pytest.mark.parametrize("blob", [b"", b"\0" * 12, b"\0\0\xc0\x7f" * 4], ids=["0", "12", "nan"])
def test_a_damaged_vector_is_said_and_embedded_again(tmp_path, caplog, blob):
    embedder = cached(Counting(), EmbeddingCache(tmp_path))
    whole = embedder.embed(["a", "b"])
    with closing(sqlite3.connect(the_file(tmp_path))) as connection, connection:
        connection.execute("UPDATE blobs SET value = ? WHERE key = ?", (blob, content_key("b")))
    with caplog.at_level(logging.WARNING):
        assert embedder.embed(["a", "b"]).tobytes() == whole.tobytes()
    assert "1 of 2 vectors are damaged" in caplog.text
    assert embedder.embedder.embedded == ["a", "b", "b"]
    caplog.clear()
    embedder.embed(["b"])
    assert not caplog.text


@pytest.mark.parametrize("content", [b"not a database, but long enough" * 50, b"SQLite format 3\0"])
def test_a_damaged_file_is_an_error_with_the_remedy(tmp_path, content):
    embedder = cached(Counting(), EmbeddingCache(tmp_path))
    embedder.embed(["a"])
    the_file(tmp_path).write_bytes(content)
    with pytest.raises(ModelError, match=r"embeddings-abab.*comis-eval cache clear"):
        embedder.embed(["a"])
    assert entries(tmp_path) == [CacheEntry("embeddings", None, 1, len(content), None)]
    clear(tmp_path)
    assert embedder.embed(["a"]).shape == (1, 4)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="COMIS_EVAL_CACHE to a folder you can write"):
        cached(Counting(), EmbeddingCache(tmp_path / "file" / "cache")).embed(["a"])


def test_folder_and_files_are_for_their_owner_alone(tmp_path):
    folder = tmp_path / "cache"
    cached(Counting(), EmbeddingCache(folder)).embed(["a"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()] == [0o600]


def _embed_all(folder: Path) -> None:
    cached(Counting(), EmbeddingCache(folder)).embed(TEXTS)


def test_processes_may_fill_one_cache_together(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_embed_all, args=(tmp_path / "c",)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    reader = Counting()
    vectors = cached(reader, EmbeddingCache(tmp_path / "c")).embed(TEXTS)
    assert reader.embedded == []
    assert vectors.tobytes() == HashingEmbedder(4).embed(TEXTS).tobytes()


def test_entries_and_clear_touch_only_files_of_the_cache(tmp_path):
    cached(Counting(), EmbeddingCache(tmp_path)).embed(["a", "b"])
    foreign = ["notes.txt", "embeddings-short.sqlite", f"other-{'0' * 64}.sqlite"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
    (tmp_path / f"embeddings-{'0' * 64}.sqlite").mkdir()
    journal = tmp_path / f"{the_file_name(tmp_path)}-journal"
    journal.write_bytes(b"")
    (entry,) = entries(tmp_path)
    assert entry[:3] == ("embeddings", "counting", 2)
    assert entry.rows == 2
    assert entry.bytes > 0
    deleted = clear(tmp_path)
    assert {p.name for p in deleted} == {journal.name, journal.name.removesuffix("-journal")}
    assert {p.name for p in tmp_path.iterdir()} == {*foreign, f"embeddings-{'0' * 64}.sqlite"}


def the_file_name(folder: Path) -> str:
    (path,) = (p for p in folder.glob("embeddings-ab*.sqlite") if p.is_file())
    return path.name


def test_no_folder_is_an_empty_cache(tmp_path):
    assert entries(tmp_path / "nowhere") == []
    assert clear(tmp_path / "nowhere") == []


def test_a_link_is_removed_and_not_followed(tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine")
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / f"tokens-{'0' * 64}.sqlite").symlink_to(target)
    clear(folder)
    assert target.read_text() == "mine"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"COMIS_EVAL_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/comis_eval")),
        ({"COMIS_EVAL_CACHE": "", "XDG_CACHE_HOME": ""}, Path("/home/x/.cache/comis_eval")),
    ],
    ids=["own", "xdg", "home"],
)
def test_where_caches_are(monkeypatch, environment, expected):
    monkeypatch.setenv("HOME", "/home/x")
    for name in ("COMIS_EVAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == expected


def test_every_string_has_its_own_key():
    texts = ["", " ", "a", "\ud800", "\ufffd"]
    assert len({content_key(text) for text in texts}) == len(texts)
    assert np.frombuffer(content_key(""), np.uint8).shape == (32,)
