"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
