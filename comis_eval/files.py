"""Files that are written whole or not at all, and files of others that have an end."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a new empty file beside ``path`` that takes its place when the block ends well.

    Its name cannot be guessed and it is never opened through a link, so that nobody who can
    write to the folder, or send a pull request, chooses what is overwritten; two writers at
    once do not share it.

    Raises:
        OSError: If it cannot be made or moved.
    """
    partial = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.partial")
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def open_regular(path: Path) -> BinaryIO:
    """Open a file of others to be read, in a folder that may have come from anywhere.

    There a pipe would be waited for without end, and a link to a device read without end. A
    link to a file is followed.

    Raises:
        OSError: If it cannot be opened or is no regular file.
    """
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
