"""The cache listed and cleared."""

import numpy as np
import pytest

from comis_eval.cli.cache import size
from comis_eval.models.cache import EmbeddingCache
from tests.cli.world import document, error, output, run


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A cache with one model's vectors, and a file of somebody else."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("COMIS_EVAL_CACHE", str(folder))
    EmbeddingCache(folder).file("embeddings", "a" * 64, name="m\x1b[2J").write(
        {b"k" * 32: np.zeros(4, dtype=np.float32).tobytes()}
    )
    (folder / "notes.txt").write_text("mine")
    return folder


def test_ls(folder):
    told = output("cache", "ls")
    assert str(folder) in told
    assert "m␛[2J" in told
    (entry,) = document("cache", "ls")["entries"]
    assert (entry["kind"], entry["rows"]) == ("embeddings", 1)


def test_clear_says_what_it_freed_and_leaves_the_rest(folder):
    bytes_held = document("cache", "ls")["entries"][0]["bytes"]
    assert f"1 files deleted, {size(bytes_held)} ({bytes_held} bytes) freed" in output(
        "cache", "clear", "--yes"
    )
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_clear_does_not_ask_where_nobody_answers(folder):
    assert "there is no terminal to ask at; say --yes" in error("cache", "clear")
    assert len(list(folder.iterdir())) == 2


def test_clear_asks_at_a_terminal(folder, monkeypatch):
    monkeypatch.setattr("comis_eval.cli.cache._asks", lambda: True)
    assert run("cache", "clear", input="n\n").exit_code == 130
    assert len(list(folder.iterdir())) == 2
    assert run("cache", "clear", input="y\n").exit_code == 0
    assert len(list(folder.iterdir())) == 1


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
