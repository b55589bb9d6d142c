"""Files written whole or not at all, through nobody's links."""

import os
from pathlib import Path

import pytest

from comis_eval.files import open_regular, replacing


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_of_a_block_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def killed() -> None:
        with replacing(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_share_nothing_and_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".a.json.partial").symlink_to(victim)
    with replacing(tmp_path / "a.json") as one, replacing(tmp_path / "a.json") as two:
        assert one != two
        one.write_text("1")
        two.write_text("2")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "a.json").is_symlink()


def test_a_long_name_fits(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    with replacing(path) as partial:
        partial.write_text("x")
    assert path.read_text() == "x"


def test_the_umask_holds(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as partial:
        mode = partial.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    assert mode == 0o666 & ~umask


def test_only_what_has_an_end_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"x"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="no regular file"):
            open_regular(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")
