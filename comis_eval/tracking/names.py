"""Names of metrics, params and tags as MLflow accepts them, one for one.

MLflow refuses ``@ % = , ( ) [ ] + # *``, names that are no plain path (``a//b``, ``/a``,
``../x``, nothing at all) and names longer than 250 characters; ``:`` it takes, but not on
Windows. One bad name in a batch and nothing of the batch is logged.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from comis_eval.text import sha256_text

LONGEST = 250
"""Characters of a name, as MLflow counts them."""

_WIDEST = len("_x10ffff_")
_KEPT = re.compile(r"[\w./ -]")
_KEPT_OFF_PATHS = re.compile(r"[\w -]")
_MARK = re.compile(r"_(at|x[0-9a-f]*)_")


@lru_cache(maxsize=4096)  # a thousand trials have the same sixty names
def mlflow_name(name: str) -> str:
    """Write a name with what MLflow accepts; two names never become one.

    ``@`` is written ``_at_``, any other character that is refused ``_x`` and its number in
    hex and ``_``, and so is an underscore that would be read as the start of such a mark.
    A name that is too long keeps its start and ends in ``_x_`` and half of its SHA-256.

    Example: ``recall@5`` becomes ``recall_at_5``, ``recall_at_5`` becomes
    ``recall_x5f_at_5``, ``rag.scoring.minScore`` stays.

    Args:
        name: Anything.
    """
    kept = _KEPT if _is_plain_path(name) else _KEPT_OFF_PATHS
    if 0 < len(name) <= LONGEST:
        written = _escaped(name, "", kept)
        if len(written) <= LONGEST:
            return written
    tail = f"_x_{sha256_text(name)[:32]}"
    length = min(len(name), LONGEST - len(tail))
    while (over := len(written := _escaped(name[:length], tail, _KEPT_OFF_PATHS)) - LONGEST) > 0:
        length -= -(-over // _WIDEST)
    return written


def _escaped(name: str, tail: str, kept: re.Pattern[str]) -> str:
    """Escape from the end on, where what follows an underscore is already known."""
    for character in reversed(name):
        if character == "@":
            tail = f"_at_{tail}"
        elif not kept.match(character) or (character == "_" and _MARK.match(f"_{tail}")):
            tail = f"_x{ord(character):x}_{tail}"
        else:
            tail = character + tail
    return tail


def _is_plain_path(name: str) -> bool:
    return posixpath.normpath(name) == name and not name.startswith(("/", "..")) and name != "."
