"""Files of stores: made private, and read without a trace."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from comis_eval.errors import StoreError

WAIT_S = 1.0
"""How long a writer waits for another before it gives up."""


def copy_into(path: Path, target: sqlite3.Connection) -> None:
    """Read a file into another database and leave nothing beside it.

    A reader of a file in WAL mode makes two companions and leaves them, unless it says that
    nobody writes meanwhile. So that is said, and checked afterwards, where nobody seems to.

    Raises:
        StoreError: If somebody wrote all the same.
    """
    journal = path.with_name(f"{path.name}-wal")
    alone = not journal.exists()
    before = path.stat()
    how = "immutable=1" if alone else "mode=ro"
    where = f"file:{quote(str(path.absolute()))}?{how}"
    with closing(sqlite3.connect(where, uri=True, timeout=WAIT_S)) as file:
        file.backup(target)
    after = path.stat()
    changed = (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)
    if alone and (changed or journal.exists()):
        raise StoreError(f"{path} was written while it was read; try again")


def create_private(path: Path) -> None:
    """Make an empty file that only its owner may read; one that is there stays.

    Raises:
        StoreError: If it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"{path} cannot be created: {error.strerror}") from error
