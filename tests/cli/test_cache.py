"""The cache listed and cleared."""

import numpy as np
import pytest

from comis_eval.cli.cache import size
from comis_eval.models.cache import EmbeddingCache
from tests.cli.world import document, error, output, run


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A cache of vectors and candidates tables, and files of somebody else."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(folder))
    EmbeddingCache(folder).file("embeddings", "a" * 64, name="m\x1b[2J").write(
        {b"k" * 32: np.zeros(4, dtype=np.float32).tobytes()}
    )
    tables = folder / "candidates"
    tables.mkdir()
    (tables / f"{'b' * 64}.candidates.npz").write_bytes(b"x" * 100)
    (tables / f".{'b' * 16}.x1_y2z3a.partial").write_bytes(b"x" * 10)
    (tables / "mine.npz").write_bytes(b"mine")
    (folder / "notes.txt").write_text("mine")
    return folder


def left(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_ls(folder):
    told = output("cache", "ls")
    assert str(folder) in told
    assert "m␛[2J" in told
    vectors, tables = document("cache", "ls")["entries"]
    assert (vectors["kind"], vectors["rows"]) == ("embeddings", 1)
    assert (tables["kind"], tables["files"], tables["bytes"]) == ("candidates", 2, 110)


def test_clear_says_what_it_freed_and_leaves_the_rest(folder):
    bytes_held = sum(entry["bytes"] for entry in document("cache", "ls")["entries"])
    assert f"3 files deleted, {size(bytes_held)} ({bytes_held} bytes) freed" in output(
        "cache", "clear", "--yes"
    )
    assert left(folder) == ["mine.npz", "notes.txt"]


def test_clear_does_not_ask_where_nobody_answers(folder):
    assert "there is no terminal to ask at; say --yes" in error("cache", "clear")
    assert len(left(folder)) == 5


def test_clear_asks_at_a_terminal(folder, monkeypatch):
    monkeypatch.setattr("comis_eval.cli.cache._asks", lambda: True)
    assert run("cache", "clear", input="n\n").exit_code == 130
    assert len(left(folder)) == 5
    assert run("cache", "clear", input="y\n").exit_code == 0
    assert left(folder) == ["mine.npz", "notes.txt"]


def test_an_empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(tmp_path / "none"))
    assert "0 bytes" in output("cache", "ls")
    assert "0 files deleted" in output("cache", "clear", "--yes")


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")],
)
def test_sizes(count, told):
    assert size(count) == told
