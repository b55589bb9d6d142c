"""Dropping memories that say the same: equal fingerprints of their beginnings."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

HEAD = 200
"""How many characters of the content make the fingerprint."""

JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's trim removes."""

Units = Literal["code_points", "utf16"]


class Deduped(NamedTuple):
    """Who stays.

    Attributes:
        kept: Shape (q, c), in the order given.
        by: Column of the one that stays in its stead, shape (q, c); -1 for those kept.
    """

    kept: NDArray[np.bool_]
    by: NDArray[np.int32]


def fingerprint(content: str, *, units: Units) -> str:
    """The first 200 characters, then trimmed, then lower-cased.

    Example: ``"  Hello "`` -> ``"hello"``

    Args:
        content: The memory's text.
        units: What a character is: a code point, trimmed as Python does; or a UTF-16 unit,
            trimmed as JavaScript does (a surrogate pair may be cut in half).
    """
    if units == "code_points":
        return content[:HEAD].strip().lower()
    units16 = content.encode("utf-16-le", "surrogatepass")[: 2 * HEAD]
    return units16.decode("utf-16-le", "surrogatepass").strip(JS_SPACE).lower()


def drop(
    prints: NDArray[np.int32],
    alive: NDArray[np.bool_],
    created_at: NDArray[np.int64],
    *,
    keep: Literal["best", "newest"],
) -> Deduped:
    """Keep one candidate of each fingerprint, at its own position.

    Args:
        prints: A number per fingerprint, shape (q, c), columns in ranked order.
        alive: Candidates in the list, shape (q, c); the others are neither kept nor compared.
        created_at: When each was written, ms, shape (q, c).
        keep: The best ranked of equals, or the strictly newest (the best ranked of the
            equally new).
    """
    kept = alive.copy()
    by = np.full(prints.shape, -1, dtype=np.int32)
    # Give everything that is not alive a number of its own, then look for neighbours that are
    # equal once sorted: most queries have none and are done.
    columns = np.arange(prints.shape[1], dtype=np.int64)
    marks = np.where(alive, prints.astype(np.int64), -1 - columns)
    ordered = np.sort(marks, axis=1)
    repeats = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(repeats) == 0:
        return Deduped(kept, by)

    newest = created_at[repeats] if keep == "newest" else np.zeros((len(repeats), len(columns)))
    place = np.broadcast_to(columns, newest.shape)
    grouped = np.lexsort((place, -newest, marks[repeats]), axis=1)
    sorted_marks = np.take_along_axis(marks[repeats], grouped, axis=1)
    first = np.ones(sorted_marks.shape, dtype=bool)
    first[:, 1:] = sorted_marks[:, 1:] != sorted_marks[:, :-1]
    # Each run of equals points at its first element: the one that stays.
    heads = np.maximum.accumulate(np.where(first, columns, 0), axis=1)
    stays = np.take_along_axis(grouped, heads, axis=1)
    winner = np.empty_like(stays)
    np.put_along_axis(winner, grouped, stays, axis=1)
    lost = (winner != place) & alive[repeats]
    kept[repeats] &= ~lost
    by[repeats] = np.where(lost, winner, -1)
    return Deduped(kept, by)
