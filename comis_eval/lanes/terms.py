"""Terms exactly as SQLite FTS5 makes them: by asking it.

Tokenizer ``porter unicode61``. Texts go into a scratch table and come back as the list of
every term occurrence, read from an ``fts5vocab`` table of the kind ``instance``.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_FEW = 64
"""How many texts a scratch table that stays is used for."""

_SCHEMA = """
CREATE VIRTUAL TABLE scratch USING fts5
  (content, content='', columnsize=0, tokenize='porter unicode61');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (scratch, row);
CREATE VIRTUAL TABLE instances USING fts5vocab (scratch, instance);
"""


class Occurrences(NamedTuple):
    """Every occurrence of every term in some texts, sorted by term, text and offset.

    Attributes:
        terms: The vocabulary, ascending, shape (t,).
        starts: Term i's occurrences are ``starts[i]:starts[i + 1]``, shape (t + 1,).
        texts: Which text, counted from 0, shape (n,).
        offsets: Which token of the text, counted from 0, shape (n,).
    """

    terms: tuple[str, ...]
    starts: NDArray[np.int64]
    texts: NDArray[np.int64]
    offsets: NDArray[np.int64]


def occurrences(texts: Sequence[str]) -> Occurrences:
    """Tokenise texts. Half a surrogate pair separates tokens, as in a query."""
    if len(texts) <= _FEW:
        scratch = _kept()
        try:
            return _occurrences(scratch, texts)
        finally:
            scratch.execute("INSERT INTO scratch (scratch) VALUES ('delete-all')")
            scratch.commit()
    with closing(_scratch()) as scratch:
        return _occurrences(scratch, texts)


def _occurrences(scratch: sqlite3.Connection, texts: Sequence[str]) -> Occurrences:
    numbered = ((number, _unicode(text)) for number, text in enumerate(texts))
    scratch.executemany("INSERT INTO scratch (rowid, content) VALUES (?, ?)", numbered)
    vocabulary = scratch.execute("SELECT term, cnt FROM vocabulary ORDER BY term").fetchall()
    found = scratch.execute("SELECT doc, offset FROM instances ORDER BY term")
    pairs = np.fromiter(chain.from_iterable(found), dtype=np.int64).reshape(-1, 2)
    counts = np.array([count for _, count in vocabulary], dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    return Occurrences(tuple(term for term, _ in vocabulary), starts, pairs[:, 0], pairs[:, 1])


def _scratch() -> sqlite3.Connection:
    scratch = sqlite3.connect(":memory:")
    # FTS5 cuts a term of over 32,767 bytes, in the midst of a character if it falls so.
    scratch.text_factory = lambda term: term.decode("utf-8", "surrogateescape")
    scratch.executescript(_SCHEMA)
    return scratch


class _Local(threading.local):
    scratch: sqlite3.Connection | None = None


_OF_THREAD = _Local()


def _kept() -> sqlite3.Connection:
    """A scratch table that stays, one a thread: to make one takes longer than a query's words."""
    if _OF_THREAD.scratch is None:
        _OF_THREAD.scratch = _scratch()
    return _OF_THREAD.scratch


def sequences(found: Occurrences, count: int) -> list[NDArray[np.int64]]:
    """Return each text's terms in the order of the text, as numbers into the vocabulary.

    Args:
        found: What :func:`occurrences` returned.
        count: How many texts there were.
    """
    if not count:
        return []
    terms = np.repeat(np.arange(len(found.terms)), np.diff(found.starts))
    order = np.lexsort((found.offsets, found.texts))
    ends = np.cumsum(np.bincount(found.texts, minlength=count))
    return np.split(terms[order], ends[:-1])


def _unicode(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
